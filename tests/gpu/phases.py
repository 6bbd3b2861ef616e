#!/usr/bin/env python3
"""Compares the energies of a step's phases on a real NVIDIA GPU with the steps that lack each of them.

    phases.py LOG.jprof [--scales 0.25,0.5,1,2,4,8] [--seconds 8]

A step has four phases: data (the GPU waits), forward and backward (matrix products in fp32, bf16) and
optimizer (element by element), of 6, 20, 40 and 10 ms times each scale. The truth of a phase is the energy
counter's difference per step between whole steps and steps without it, each for --seconds seconds, between
two of its updates. The four truths of a scale should add up to the step, which the last lines show. Prints a
Markdown table: the phase's energy by `total(name)` in the running program and by `jouleprof report
LOG.jprof`, with their repeatability, against the truth. Changes no setting of the card.
"""

import argparse
import json
import subprocess
import time

import pynvml
import torch
from windows import counter_edge

import jouleprof

SECONDS = {"data": 0.006, "forward": 0.020, "backward": 0.040, "optimizer": 0.010}


class Phases:
    def __init__(self):
        # Small, so that the card keeps its clocks: at a power limit a phase costs more or less by what runs next to it.
        single = torch.randn(512, 512, device="cuda")
        half = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)
        wide = torch.randn(4 << 20, device="cuda")
        outs = torch.empty_like(single), torch.empty_like(half)
        launches = {"forward": lambda: torch.mm(single, single, out=outs[0]),
                    "backward": lambda: torch.mm(half, half, out=outs[1]),
                    "optimizer": lambda: wide.mul_(1.0)}
        self.work, self.each = {}, {}
        for name, launch in launches.items():
            launch()
            graph = torch.cuda.CUDAGraph()  # so that the host is never what a phase waits for
            with torch.cuda.graph(graph):
                for _ in range(20):
                    launch()
            self.work[name] = graph.replay
            for n in (100, 1000):
                begin = time.perf_counter()
                for _ in range(n):
                    graph.replay()
                torch.cuda.synchronize()
                self.each[name] = (time.perf_counter() - begin) / n

    def run(self, name, scale):
        end = time.perf_counter() + SECONDS[name] * scale
        if name == "data":
            while time.perf_counter() < end:
                pass
        else:
            for _ in range(max(1, round(SECONDS[name] * scale / self.each[name]))):
                self.work[name]()
            torch.cuda.synchronize()


def steps(monitor, phases, scale, names, suffix, length):
    """Runs steps of these phases, each in a window; returns how many, and when they ended."""
    end = time.perf_counter() + length
    count = 0
    while time.perf_counter() < end:
        for name in names:
            with monitor.window(f"{name} {suffix}"):
                phases.run(name, scale)
        count += 1
    return count, time.perf_counter()


def per_step(gpu, monitor, phases, scale, without, seconds):
    """Joules of a step by the counter; the steps of half a second before do not count. Their windows cost time."""
    names = [name for name in SECONDS if name != without]
    steps(monitor, phases, scale, names, f"without {without}", 0.5)
    before = counter_edge(gpu)
    count, end = steps(monitor, phases, scale, names, f"without {without}", seconds)
    after = counter_edge(gpu)
    return (after[1] - before[1] - idle_watts(gpu) * (after[0] - end)) / count


IDLE = []


def idle_watts(gpu):
    if not IDLE:
        time.sleep(0.5)
        first = counter_edge(gpu)
        time.sleep(2)
        last = counter_edge(gpu)
        IDLE.append((last[1] - first[1]) / (last[0] - first[0]))
    return IDLE[0]


def looped_watts(gpu, phases, name):
    begin, joules = counter_edge(gpu)
    while time.perf_counter() < begin + 2:
        phases.run(name, 1)
    return (pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu) / 1000 - joules) / (time.perf_counter() - begin)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("log")
    parser.add_argument("--scales", default="0.25,0.5,1,2,4,8")
    parser.add_argument("--seconds", type=float, default=8)
    args = parser.parse_args()
    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    phases = Phases()
    idle_watts(gpu)
    alone = {name: looped_watts(gpu, phases, name) for name in phases.work}
    truths = {}
    live = {}
    with jouleprof.Monitor(log=args.log, overwrite=True) as monitor:
        for scale in map(float, args.scales.split(",")):
            counts, _ = steps(monitor, phases, scale, SECONDS, f"x{scale:g}", 2 * args.seconds)
            time.sleep(0.3)
            for name in SECONDS:
                live[name, scale] = monitor.total(f"{name} x{scale:g}")["gpu0"], counts
            whole = per_step(gpu, monitor, phases, scale, None, args.seconds)
            for name in SECONDS:
                truths[name, scale] = whole - per_step(gpu, monitor, phases, scale, name, args.seconds)
            truths["step", scale] = whole
    report = json.loads(subprocess.run(["jouleprof", "report", args.log, "--json"], check=True,
                                       stdout=subprocess.PIPE, text=True).stdout)
    reported = {w["name"]: next(e for e in w["energy"] if e["domain"] == "gpu") | {"count": w["count"]}
                for w in report["windows"]}
    watts = ", ".join(f"{name} {looped:.0f} W" for name, looped in alone.items())
    print(f"{pynvml.nvmlDeviceGetName(gpu)}; waiting {IDLE[0]:.1f} W; in loops of their own {watts}\n\n"
          "| scale | phase | truth, J | of the step | live | repeatability | report | repeatability | method |\n"
          "|---|---|---|---|---|---|---|---|---|")
    inside = 0
    for (name, scale), (energy, count) in live.items():
        truth = truths[name, scale]
        row = reported[f"{name} x{scale:g}"]
        mean, half = row["energy_joules"] / row["count"], row["repeatability_joules"] / row["count"]
        # The counts err by some 0.2 % of a step.
        inside += abs(mean - truth) <= half + 0.002 * truths["step", scale]
        print(f"| {scale:g} | {name} | {truth:.4f} | {100 * truth / truths['step', scale]:.1f} % | "
              f"{100 * (energy.joules / count / truth - 1):+.1f} % | "
              f"+-{100 * energy.repeatability / count / truth:.1f} % | {100 * (mean / truth - 1):+.1f} % | "
              f"+-{100 * half / truth:.1f} % | {row['method']} |")
    print()
    for scale in sorted({scale for _, scale in truths}):
        parts = sum(truths[name, scale] for name in SECONDS) / truths["step", scale]
        print(f"scale {scale:g}: the phases' truths add up to {parts:.3f} of the step")
    print(f"\n{inside} of {len(live)} within the report's repeatability, and 0.2 % of the step")


if __name__ == "__main__":
    main()
