#!/usr/bin/env python3
"""Kernels of many kinds, looped alone and mixed in bursts; writes the times of each as JSON.

    jouleprof run --kernels -o MIX.jprof -- kernel_loads.py OUT.json [--seconds 60] [--seeds 2]

`loops`: each operator alone in a CUDA graph, before and after the mixes, after a pause: the energy of
one call. `mixes`: the same operators launched one by one in bursts of random length, in random order,
each burst an NVTX range with the operator's name, so that a report by range has each operator's
energy in place. Times are CLOCK_MONOTONIC nanoseconds.
"""

import argparse
import json
import random
import time

import torch
import torch.nn.functional as F

LONG, SHORT = (5e-3, 80e-3), (0.3e-3, 6e-3)


def operators():
    def randn(*shape, dtype=torch.bfloat16):
        return torch.randn(*shape, device="cuda", dtype=dtype)

    f32 = torch.float32
    x = randn(64, 197, 768)
    y = randn(64, 197, 768)
    wide = randn(32 << 20)
    sink = torch.empty_like(wide)
    v32 = randn(4 << 20, dtype=f32)
    a16, b16 = randn(1024, 1024), randn(1024, 1024)
    a32, b32 = randn(1024, 1024, dtype=f32), randn(1024, 1024, dtype=f32)
    small = randn(512, 512)
    norm = torch.nn.LayerNorm(768, device="cuda", dtype=torch.bfloat16)
    q = randn(8, 12, 197, 64)
    rows = randn(4096, 1024, dtype=f32)
    table, index = randn(50000, 256), torch.randint(50000, (8192,), device="cuda")
    image, kernel = randn(16, 64, 56, 56), randn(64, 64, 3, 3)
    bn = torch.nn.BatchNorm2d(64, device="cuda", dtype=torch.bfloat16).eval()
    flip = randn(4096, 4096, dtype=f32)
    return {
        "copy 64 MiB": lambda: sink.copy_(wide),
        "layer norm": lambda: norm(x),
        "softmax": lambda: torch.softmax(rows, 1),
        "log softmax": lambda: torch.log_softmax(rows, 1),
        "gelu": lambda: F.gelu(x),
        "add": lambda: x + y,
        "multiply f32": lambda: v32 * 1.5,
        "exp f32": lambda: torch.exp(v32),
        "sin f32": lambda: torch.sin(v32),
        "gemm bf16 1024": lambda: a16 @ b16,
        "gemm bf16 512": lambda: small @ small,
        "gemm f32 1024": lambda: a32 @ b32,
        "gather": lambda: table[index],
        "max pool": lambda: F.max_pool2d(image, 2),
        "convolution": lambda: F.conv2d(image, kernel, padding=1),
        "batch norm": lambda: bn(image),
        "cumulative sum": lambda: torch.cumsum(rows, 1),
        "transpose": lambda: flip.t().contiguous(),
        "sum of rows": lambda: x.sum(-1),
        "attention": lambda: F.scaled_dot_product_attention(q, q, q),
        "roll": lambda: torch.roll(rows, 7, 1),
        "lower triangle": lambda: torch.tril(flip),
    }


def eager_seconds(work, calls=200):
    for _ in range(20):
        work()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(calls):
        work()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / calls


def loop_alone(work, seconds):
    """Begin, end and calls of a loop with almost no idle time between launches."""
    repeats = max(1, min(400, int(2e-3 / eager_seconds(work, 50))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            work()
    torch.cuda.synchronize()
    time.sleep(0.3)
    begin = time.monotonic_ns()
    calls, event = 0, torch.cuda.Event()
    while time.monotonic_ns() - begin < seconds * 1e9:
        event.synchronize()
        event.record()
        graph.replay()
        calls += repeats
    torch.cuda.synchronize()
    return begin, time.monotonic_ns(), calls


def loops(work, seconds):
    out = []
    for name, w in work.items():
        begin, end, calls = loop_alone(w, seconds)
        out.append({"name": name, "begin_ns": begin, "end_ns": end, "calls": calls})
    time.sleep(0.5)
    return out


def mix(work, cost, seconds, lengths, seed):
    rng = random.Random(seed)
    names = list(work)
    calls = dict.fromkeys(names, 0)
    time.sleep(1.0)
    begin = time.monotonic_ns()
    while time.monotonic_ns() - begin < seconds * 1e9:
        name = rng.choice(names)
        length = lengths[0] * (lengths[1] / lengths[0]) ** rng.random()
        count = max(1, round(length / cost[name]))
        w = work[name]
        torch.cuda.nvtx.range_push(name)
        for _ in range(count):
            w()
        torch.cuda.nvtx.range_pop()
        calls[name] += count
        torch.cuda.synchronize()
        if rng.random() < 0.25:
            time.sleep(rng.uniform(1e-3, 10e-3))
    end = time.monotonic_ns()
    time.sleep(1.0)
    return {"bursts_seconds": lengths, "seed": seed, "begin_ns": begin, "end_ns": end, "calls": calls}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--first", type=float, help="seconds of the first mix, if not the same")
    parser.add_argument("--loop", type=float, default=1.3)
    parser.add_argument("--seeds", type=int, default=2)
    args = parser.parse_args()
    with torch.inference_mode():
        work = operators()
        cost = {name: eager_seconds(w) for name, w in work.items()}
        before = loops(work, args.loop)
        mixes = []
        for seed in range(args.seeds):
            for lengths in (LONG, SHORT):
                seconds = args.first if args.first and not mixes else args.seconds
                mixes.append(mix(work, cost, seconds, lengths, seed))
        after = loops(work, args.loop)
    with open(args.out, "w") as f:
        json.dump({"device": torch.cuda.get_device_name(),
                   "wall_minus_monotonic_ns": time.time_ns() - time.monotonic_ns(), "loops": before + after,
                   "mixes": mixes}, f, indent=1)


if __name__ == "__main__":
    main()
