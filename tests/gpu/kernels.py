#!/usr/bin/env python3
"""Holds the attribution of a recording of kernel_loads.py against the loops in it; prints tables.

    kernels.py JOULEPROF MIX.jprof OUT.json [--lengths 10,30,60,120]
"""

import argparse
import json
import subprocess

from compare import nanoseconds


def report(args, begin, end, *more):
    text = subprocess.run([args.tool, "report", args.recording, "--json", "--from", f"{begin:.6f}s",
                           "--to", f"{end:.6f}s", *more], capture_output=True, text=True, check=True)
    return json.loads(text.stdout)


def gpu_power(args, begin, end):
    domains = report(args, begin, end)["domains"]
    return next(d for d in domains if d["domain"] == "gpu")["energy_joules"] / (end - begin)


def truth(args, loops, start):
    """Joules of one call above idle, by operator: one for each loop."""
    out = {}
    for loop in loops:
        begin, end = (loop[k] / 1e9 - start for k in ("begin_ns", "end_ns"))
        idle = gpu_power(args, begin - 0.16, begin - 0.01)
        power = gpu_power(args, begin + 0.2, end - 0.02)
        out.setdefault(loop["name"], []).append((power - idle) * (end - begin) / loop["calls"])
    return out


def compare(args, mix, true, start, seconds=None):
    begin = mix["begin_ns"] / 1e9 - start - 0.05
    end = mix["end_ns"] / 1e9 - start + 0.05
    part = min(1.0, seconds / (end - begin)) if seconds else 1.0
    found = report(args, begin, begin + part * (end - begin), "--by", "range")
    device = found["devices"][0]
    rows, all_joules, off, covered = [], 0, 0, 0
    for row in device["rows"]:
        name = row["name"]
        if name not in true or row["energy_joules"] is None:
            continue
        joules, half = row["energy_joules"], row["repeatability_joules"]
        calls = mix["calls"][name] * part
        alone = [t * calls for t in true[name]]
        mean, spread = sum(alone) / len(alone), (max(alone) - min(alone)) / 2
        rows.append((mean, name, calls, joules, half, spread))
        all_joules += mean
        off += abs(joules - mean)
        covered += abs(joules - mean) <= half + spread
    rows.sort(reverse=True)
    worst = max((abs(j / m - 1) for m, _, _, j, _, _ in rows if m >= 0.02 * all_joules), default=0)
    return {"rows": rows, "weighted": off / all_joules, "worst": worst,
            "balance": sum(r[3] for r in rows) / all_joules - 1, "covered": covered,
            "width": sum(r[4] for r in rows) / sum(r[3] for r in rows), "explained": device["explained_ratio"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("recording")
    parser.add_argument("loads")
    parser.add_argument("--lengths", default="")
    args = parser.parse_args()
    loads = json.load(open(args.loads))
    text = subprocess.run([args.tool, "report", args.recording, "--json"], capture_output=True,
                          text=True, check=True).stdout
    # A recording's times count from here, CLOCK_MONOTONIC.
    start = (nanoseconds(json.loads(text)["start_time"]) - loads["wall_minus_monotonic_ns"]) / 1e9
    true = truth(args, loads["loops"], start)

    print("| mix | energy-weighted | worst class of 2 % or more | balance | covered | R2 |")
    print("|---|---|---|---|---|---|")
    kept = []
    for mix in loads["mixes"]:
        lengths = [] if mix is not loads["mixes"][0] else [float(s) for s in args.lengths.split(",") if s]
        for seconds in [*lengths, None]:
            got = compare(args, mix, true, start, seconds)
            low, high = mix["bursts_seconds"]
            length = seconds or (mix["end_ns"] - mix["begin_ns"]) / 1e9
            print(f"| bursts {1e3 * low:g}-{1e3 * high:g} ms, seed {mix['seed']}, {length:.0f} s "
                  f"| {got['weighted']:.1%} | {got['worst']:.1%} | {got['balance']:+.1%} "
                  f"| {got['covered']}/{len(got['rows'])}, +-{got['width']:.1%} | {got['explained']:.4f} |")
        kept.append(got)
    for mix, got in zip(loads["mixes"], kept):
        print(f"\nbursts {mix['bursts_seconds']} s, seed {mix['seed']}\n")
        print("| operator | calls | in place, J | alone, J | difference |\n|---|---|---|---|---|")
        for mean, name, calls, joules, half, spread in got["rows"]:
            print(f"| {name} | {calls:.0f} | {joules:.1f} +- {half:.1f} | {mean:.1f} +- {spread:.1f} "
                  f"| {joules / mean - 1:+.1%} |")


if __name__ == "__main__":
    main()
