#!/usr/bin/env python3
"""Isolated re-runs of a program that goes on, on a real NVIDIA GPU: are its results bit for bit those without?

    replay_now.py JOULEPROF OUT [--steps 40] [--model wide]

Trains a model with random weights under `run --kernels --replay`, three times: without a request, with
`jouleprof.replay()` in the middle (through libjouleprof_inject.so), and with `jouleprof replay --pid` while it
pauses. Compares the losses of all steps, and prints what was re-run, and which share of the kernels' energy is
resolved. Changes no setting of the card.
"""

import argparse
import ctypes
import json
import os
import pathlib
import subprocess
import sys
import time

from resolved import MODELS, shares, tensor_of


def train(model_name, steps, at, how):
    import torch

    torch.manual_seed(0)
    model, make = MODELS[model_name](torch)
    model = model.cuda().to(torch.bfloat16)
    inputs = make(32)
    args = (inputs.pop("x"),) if "x" in inputs else ()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(steps):
        loss = tensor_of(model(*args, **inputs)).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"loss {step} {loss.item().hex()}", flush=True)
        if step == at and how == "call":
            torch.cuda.synchronize()
            now = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).jouleprof_replay_now
            now.argtypes = [ctypes.c_double, ctypes.c_double, ctypes.c_char_p, ctypes.c_size_t]
            said = ctypes.create_string_buffer(4096)
            begin = time.monotonic()
            status = now(0.0, 30.0, said, 4096)
            print(f"said {status} {time.monotonic() - begin:.1f} s: {said.value.decode()}", file=sys.stderr)
        elif step == at and how == "pause":
            torch.cuda.synchronize()
            print(f"pid {os.getpid()}", file=sys.stderr, flush=True)
            time.sleep(8)  # less than re-runs take: the next step waits


def run(args, how):
    file = args.out / f"replay-{how}.jprof"
    program = [sys.executable, __file__, "--load", how, "--model", args.model, "--steps", str(args.steps)]
    child = subprocess.Popen([args.tool, "run", "--kernels", "--replay", "-q", "--force", "-o", str(file), "--", *program],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = []
    for line in child.stderr:
        said.append(line.rstrip())
        if line.startswith("pid "):
            pid = line.split()[1]
            asked = subprocess.Popen([args.tool, "replay", "--pid", pid], stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True)
    out = child.stdout.read()
    status = child.wait()
    if how == "pause":
        said.append(f"replay --pid: {asked.communicate()[0].strip()} (status {asked.returncode})")
    losses = [line for line in out.splitlines() if line.startswith("loss ")]
    done = subprocess.run([args.tool, "report", str(file), "--by", "kernel", "--json"], capture_output=True, text=True)
    device = json.loads(done.stdout)["devices"][0]
    share, widest = shares(device)[:2]
    print(f"{how}: status {status}, {len(losses)} losses, last {losses[-1] if losses else '-'}; resolved "
          f"{100 * share:.0f} %, widest of 5 % ±{100 * widest:.0f} %; {'; '.join(said)[:1500]}", flush=True)
    return losses


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", nargs="?")
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--model", default="wide")
    parser.add_argument("--load")
    args = parser.parse_args()
    if args.load:
        return train(args.model, args.steps, args.steps // 2, args.load)
    all_losses = {how: run(args, how) for how in ("none", "call", "pause")}
    for how in ("call", "pause"):
        same = sum(a == b for a, b in zip(all_losses["none"], all_losses[how]))
        print(f"{how}: {same} of {len(all_losses['none'])} losses are those without re-runs, bit for bit")


if __name__ == "__main__":
    main()
