#!/usr/bin/env python3
"""The slowdown of a program by tracing kernels and layers: a table of ratios to the plain program.

    slowdown.py JOULEPROF [--rounds 3] [--seconds 3]
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CASES = ("eager 64", "eager 1", "graph 1")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", default="3")
    args = parser.parse_args()
    run = [args.tool, "run", "--no-record", "-q", "--idle", "0s"]
    modes = {
        "plain": ([], "plain"),
        "run": ([*run, "--"], "plain"),
        "run --kernels": ([*run, "--kernels", "--"], "plain"),
        "run --kernels --layers": ([*run, "--kernels", "--layers", "--"], "plain"),
        "run --layers": ([*run, "--layers", "--"], "plain"),
        "torch.profiler": ([], "torch-profiler"),
        "synchronising layer hooks": ([], "layer-hooks"),
    }
    times = {mode: {case: [] for case in CASES} for mode in modes}
    for _ in range(args.rounds):
        for mode, (prefix, load) in modes.items():
            done = subprocess.run(
                [*prefix, sys.executable, str(HERE / "slowdown_load.py"), load, "--seconds",
                 args.seconds], capture_output=True, text=True)
            lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
            if not lines:
                print(mode, "failed:", done.stderr[-500:], file=sys.stderr)
                continue
            for case, value in json.loads(lines[-1]).items():
                times[mode][case].append(value)
    print("| DeiT-B, ms an iteration | " + " | ".join(CASES) + " |\n|---|---|---|---|")
    plain = {case: statistics.median(times["plain"][case]) for case in CASES}
    for mode in modes:
        cells = []
        for case in CASES:
            values = times[mode][case]
            if not values:
                cells.append("")
                continue
            median = statistics.median(values)
            cells.append(f"{median:.3f} ({median / plain[case] - 1:+.1%}; {min(values):.3f}-{max(values):.3f})")
        print(f"| {mode} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
