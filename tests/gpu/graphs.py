#!/usr/bin/env python3
"""CUDA graphs on a real GPU: `run --kernels` records every launch and its duration, and the program succeeds.

    graphs.py JOULEPROF OUT.jprof [--seconds 12]

A program replays graphs of 20 matrix products for some seconds, and makes another graph every 20 ms,
and launches it twice, so that some are made while launches are recorded node by node. Compares the record
of `run --kernels` with the program's own count and with the duration of a launch by CUDA's events.
Exits with 1 on a difference.
"""

import argparse
import json
import subprocess
import sys
import time

from streams import report

NODES = 20


def load(seconds):
    import torch

    x = torch.randn(1024, 1024, device="cuda")
    y, z = torch.empty_like(x), torch.empty_like(x)

    def made(work):
        work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(NODES):
                work()
        return graph

    main = made(lambda: torch.mm(x, x, out=y))
    main.replay()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(100):
        main.replay()
    end.record()
    torch.cuda.synchronize()
    one = begin.elapsed_time(end) / 1e3 / 100 / NODES
    replays, others = 101, []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(NODES):
                torch.exp(x, out=z)
        others = [*others[-20:], graph]
        made_at = time.perf_counter()
        while time.perf_counter() < made_at + 0.02:
            for _ in range(5):
                main.replay()
                replays += 1
            torch.cuda.synchronize()
        others[0].replay()
        graph.replay()
    torch.cuda.synchronize()
    print(json.dumps({"launches": replays * NODES + 1, "seconds": one}))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", nargs="?")
    parser.add_argument("file", nargs="?")
    parser.add_argument("--seconds", type=float, default=12)
    parser.add_argument("--load", type=float)
    args = parser.parse_args()
    if args.load:
        load(args.load)
        return
    done = subprocess.run([args.tool, "run", "--kernels", "--force", "-o", args.file, "--idle", "2s", "--",
                           sys.executable, __file__, "--load", str(args.seconds)],
                          stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"WRONG: the program ended with status {done.returncode}")
    counted = json.loads(done.stdout.splitlines()[-1])
    device = report(args.tool, args.file, "--by", "kernel")["devices"][0]
    launches = seconds = whole = 0
    for row in device["rows"]:
        if "gemm" in row["name"] or "Kernel2" in row["name"]:
            seconds += row["busy_seconds"]
            launches = max(launches, row["launches"])
        whole += row["launches"] if row["name"].startswith(("graph ", "other graphs")) else 0
    each = seconds / launches
    print(f"{launches} matrix products recorded, {counted['launches']} launched; {1e6 * each:.2f} us each, "
          f"{1e6 * counted['seconds']:.2f} us by CUDA's events; {whole} launches of graphs whose nodes were never seen; "
          f"explained {device['explained_ratio']:.4f}")
    for text in device["warnings"]:
        print(f"warning: {text}")
    if launches != counted["launches"] or abs(each / counted["seconds"] - 1) > 0.05:
        sys.exit("WRONG: that is not what ran")


if __name__ == "__main__":
    main()
