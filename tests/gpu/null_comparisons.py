#!/usr/bin/env python3
"""Compares a program with itself, and with one that does 3 % more work, on a real NVIDIA GPU.

    null_comparisons.py JOULEPROF OUT [--comparisons 20] [--pairs 4] [--within SECONDS]

Builds load.cu with nvcc. Prints the verdicts, the changes and their half-widths, and how many gates at 3 % failed.
Comparisons that do not fit within the time are left out, and counted. Changes no setting of the card.
"""

import argparse
import collections
import json
import pathlib
import statistics
import subprocess
import sys
import time


def compared(tool, pairs, before, after):
    done = subprocess.run([tool, "compare", "--pairs", str(pairs), "--json", "-q", "--fail-if", "energy>+3%", "--",
                           *before, "---", *after], capture_output=True, text=True)
    if not done.stdout:
        sys.exit(done.stderr)
    return done.returncode, json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--comparisons", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=4)
    parser.add_argument("--within", type=float, default=1e9)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    load = str(options.out / "load")
    subprocess.run(["nvcc", "-O2", "-arch=sm_90", "-o", load, pathlib.Path(__file__).with_name("load.cu")], check=True)
    begin = time.monotonic()
    subprocess.run([load, "100"], check=True)
    print(f"one run of the program: {time.monotonic() - begin:.2f} s", flush=True)
    status, verdicts, widths, changes = collections.Counter(), collections.Counter(), [], []
    left_out = 0
    for i in range(options.comparisons + 1):
        if time.monotonic() - begin > options.within:
            left_out += 1
            continue
        last = i == options.comparisons
        code, found = compared(options.tool, 10 if last else options.pairs, [load, "100"], [load, "103" if last else "100"])
        (options.out / f"comparison-{i}.json").write_text(json.dumps(found))
        total = found["energy"]
        low, high = total["interval_ratio"]
        print(f"{'103 %' if last else 'same'}: {total['verdict']} ({total['reason']}), {100 * total['change_ratio']:+.3f} % "
              f"[{100 * low:+.3f}, {100 * high:+.3f}], status {code}", flush=True)
        if not last:
            status[code] += 1
            verdicts[total["verdict"]] += 1
            widths.append((high - low) / 2)
            changes.append(total["change_ratio"])
    print(f"verdicts {dict(verdicts)}, exit status {dict(status)}, {left_out} left out; standard deviation of the change "
          f"{100 * statistics.stdev(changes):.3f} %, median half-width {100 * statistics.median(widths):.3f} %")


if __name__ == "__main__":
    main()
