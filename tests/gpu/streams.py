#!/usr/bin/env python3
"""Kernels of two streams at once on a real GPU: compares the energies of `run --kernels` with the sensors.

    streams.py JOULEPROF OUT.jprof [--rounds 8]

Runs one kernel, another, and both at once in turn, a second each; each kernel has half of the GPU and its
own stream. The three are NVTX ranges; the energy of each above idle is computed twice: from its kernels,
and from the recording's power in its seconds. Prints a Markdown table.
"""

import argparse
import json
import subprocess
import sys
import time

SECONDS = 1.0


def load(rounds):
    import torch

    x, y = (torch.randn(n, n, device="cuda") for n in (512, 768))
    wide = torch.randn(1 << 20, device="cuda")
    out = torch.empty_like(wide)
    works = [lambda: torch.mm(x, x), lambda: torch.exp(wide, out=out), lambda: torch.mm(y, y)]
    streams = [torch.cuda.Stream() for _ in works]
    kinds = {"one": [0], "other": [1], "both": [0, 1], "three": [0, 1, 2]}
    graphs = []
    for work, stream in zip(works, streams):
        with torch.cuda.stream(stream):
            work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(200):
                work()
        graphs.append(graph)
    spans = []
    for _ in range(rounds):
        for name, which in kinds.items():
            time.sleep(0.3)
            begin = time.time_ns()
            torch.cuda.nvtx.range_push(name)
            end = time.perf_counter() + SECONDS
            while time.perf_counter() < end:
                for _ in range(3):
                    for i in which:
                        with torch.cuda.stream(streams[i]):
                            graphs[i].replay()
                torch.cuda.synchronize()
            torch.cuda.nvtx.range_pop()
            spans.append((name, begin, time.time_ns()))
    print(json.dumps(spans))


def report(tool, file, *more):
    return json.loads(subprocess.run([tool, "report", file, "--json", *more], check=True,
                                     capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", nargs="?")
    parser.add_argument("file", nargs="?")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--load", type=int)
    args = parser.parse_args()
    if args.load:
        load(args.load)
        return
    from compare import nanoseconds

    done = subprocess.run([args.tool, "run", "--kernels", "--force", "-o", args.file, "--idle", "2s",
                           "--", sys.executable, __file__, "--load", str(args.rounds)],
                          check=True, stdout=subprocess.PIPE, text=True)
    spans = json.loads(done.stdout.splitlines()[-1])
    start = nanoseconds(report(args.tool, args.file)["start_time"])
    device = report(args.tool, args.file, "--by", "range")["devices"][0]
    measured = {}
    for name, begin, end in spans:
        begin, end = ((stamp - start) / 1e9 for stamp in (begin, end))
        part = report(args.tool, args.file, "--from", f"{begin:.6f}s", "--to", f"{end:.6f}s")
        joules = next(d for d in part["domains"] if d["domain"] == "gpu")["energy_joules"]
        measured[name] = measured.get(name, 0) + joules - device["idle_watts"] * (end - begin)
    print("| range | launches | from its kernels, J | 95 % | by the sensors, J | difference |"
          "\n|---|---|---|---|---|---|")
    for row in device["rows"]:
        if row["name"] in measured:
            joules, truth = row["energy_joules"], measured[row["name"]]
            print(f"| {row['name']} | {row['launches']} | {joules:.1f} "
                  f"| +-{row['repeatability_joules']:.1f} | {truth:.1f} | {100 * (joules / truth - 1):+.1f} % |")
    parts = sum(round(device[f"{part}_joules"] * 1e6)
                for part in ("idle", "kernels", "idle_between_launches", "unattributed"))
    print(f"\nexplained {device['explained_ratio']:.4f}; unattributed {device['unattributed_joules']:.1f} "
          f"of {device['measured_joules']:.1f} J; parts sum to the whole: "
          f"{parts == round(device['measured_joules'] * 1e6)}")


if __name__ == "__main__":
    main()
