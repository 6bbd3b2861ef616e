#!/usr/bin/env python3
"""DeiT-B in bf16, timed: prints milliseconds an iteration as JSON (batch 64, batch 1, CUDA graph, training).

    slowdown_load.py [plain|torch-profiler|layer-hooks] [--seconds 3] [--cases "eager 64,eager 1,training 8"]

`torch-profiler` runs inside torch.profiler; `layer-hooks` synchronises and takes the time before and
after every leaf module, the usual method for energy by layer.
"""

import argparse
import contextlib
import json
import statistics
import time

import timm
import torch


def timed(work, seconds):
    for _ in range(10):
        work()
    torch.cuda.synchronize()
    rounds = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(20):
            work()
        torch.cuda.synchronize()
        rounds.append((time.perf_counter() - begin) / 20 * 1e3)
    return statistics.median(rounds)


def add_layer_hooks(model):
    stamps = []

    def stamp(*_):
        torch.cuda.synchronize()
        stamps.append(time.perf_counter())

    for module in model.modules():
        if not list(module.children()):
            module.register_forward_pre_hook(stamp)
            module.register_forward_hook(stamp)


def training(model):
    optimizer = torch.optim.AdamW(model.parameters(), fused=False, foreach=True)
    x = torch.randn(8, 3, 224, 224, device="cuda", dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad()
        model(x).float().square().mean().backward()
        optimizer.step()

    return step


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", nargs="?", default="plain")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--cases", default="eager 64,eager 1,graph 1,training 8")
    args = parser.parse_args()
    cases = args.cases.split(",")
    model = timm.create_model("deit_base_patch16_224").cuda().bfloat16().eval()
    if args.mode == "layer-hooks":
        add_layer_hooks(model)
    out = {}
    profiler = contextlib.nullcontext()
    if args.mode == "torch-profiler":
        profiler = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA,
                                                      torch.profiler.ProfilerActivity.CPU])
    with torch.inference_mode():
        for batch in (64, 1):
            x = torch.randn(batch, 3, 224, 224, device="cuda", dtype=torch.bfloat16)
            if f"eager {batch}" not in cases:
                continue
            with profiler:
                out[f"eager {batch}"] = timed(lambda x=x: model(x), args.seconds)
        if args.mode != "layer-hooks" and "graph 1" in cases:
            x = torch.randn(1, 3, 224, 224, device="cuda", dtype=torch.bfloat16)
            for _ in range(10):
                model(x)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                model(x)
            with profiler:
                out["graph 1"] = timed(graph.replay, args.seconds)
    if args.mode != "layer-hooks" and "training 8" in cases:
        out["training 8"] = timed(training(model.train()), args.seconds)
    print(json.dumps(out))


if __name__ == "__main__":
    main()
