#!/usr/bin/env python3
"""The slowdown of a program by tracing kernels and layers: a table of ratios to the plain program.

    slowdown.py JOULEPROF [--rounds 3] [--seconds 3] [--modes "run --kernels,run"] [--cases "graph 1"]
                [--cupti LIBRARY]

Each round runs every mode in a process of its own, in turns forwards and backwards. The ratio of a mode
is the geometric mean over the rounds; the interval is Student's t of the rounds' log ratios.
`--cupti` adds a mode "CUPTI alone": the program with this library injected, which records kernels and discards them.
"""

import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
CASES = "eager 64,eager 1,graph 1,training 8"
# Two-sided 95 % quantiles of Student's t, by degrees of freedom.
T95 = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201]


def modes_of(tool, cupti):
    run = [tool, "run", "--no-record", "-q", "--idle", "0s"]
    alone = {"CUPTI alone": (["env", f"CUDA_INJECTION64_PATH={os.path.abspath(cupti)}"], "plain")} if cupti else {}
    return alone | {
        "plain": ([], "plain"),
        "run": ([*run, "--"], "plain"),
        "run --kernels": ([*run, "--kernels", "--"], "plain"),
        "run --kernels --replay": ([*run, "--kernels", "--replay=1s", "--"], "plain"),
        "run --kernels --layers": ([*run, "--kernels", "--layers", "--"], "plain"),
        "run --layers": ([*run, "--layers", "--"], "plain"),
        "torch.profiler": ([], "torch-profiler"),
        "synchronising layer hooks": ([], "layer-hooks"),
    }


def measured(prefix, load, args):
    """Milliseconds by case; absent where the program failed."""
    command = [*prefix, sys.executable, str(HERE / "slowdown_load.py"), load, "--seconds", args.seconds,
               "--cases", args.cases]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        print(" ".join(command), "failed:", done.stderr[-500:], file=sys.stderr)
        return {}
    return json.loads(lines[-1])


def cell(plain, values):
    """Median, mean slowdown with its interval, range. Lists by round."""
    pairs = [(a, b) for a, b in zip(plain, values) if a and b]
    if not pairs:
        return ""
    own = [b for _, b in pairs]
    logs = [math.log(b / a) for a, b in pairs]
    text = f"{statistics.median(own):.3f} ({statistics.mean(logs):+.2%}"
    if len(logs) > 1:
        half = T95[min(len(logs) - 2, len(T95) - 1)] * statistics.stdev(logs) / len(logs) ** 0.5
        text += f" ± {half:.2%}"
    return text + f"; {min(own):.3f}-{max(own):.3f})"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", default="3")
    parser.add_argument("--modes", help="of the table, beside plain")
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--cupti", metavar="LIBRARY")
    args = parser.parse_args()
    modes = modes_of(args.tool, args.cupti)
    if args.modes:
        modes = {name: modes[name] for name in ["plain", *args.modes.split(",")]}
    cases = args.cases.split(",")
    times = {mode: {case: [] for case in cases} for mode in modes}
    for number in range(args.rounds):
        order = list(modes.items())
        for mode, (prefix, load) in order if number % 2 == 0 else reversed(order):
            found = measured(prefix, load, args)
            print(f"round {number + 1} of {args.rounds}, {mode}: {found}", file=sys.stderr, flush=True)
            for case in cases:
                times[mode][case].append(found.get(case))
    print("| DeiT-B, ms an iteration | " + " | ".join(cases) + " |\n|---|" + "---|" * len(cases))
    for mode in modes:
        cells = [cell(times["plain"][case], times[mode][case]) for case in cases]
        print(f"| {mode} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
