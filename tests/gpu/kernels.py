#!/usr/bin/env python3
"""Compares the attribution of a recording of kernel_loads.py with the loops in it; prints tables.

    kernels.py JOULEPROF MIX.jprof OUT.json [--lengths 10,30,60,120]

Each mix is attributed by itself: from a copy of the recording in which no kernel of the loops, nor of
another mix, is left.
"""

import argparse
import json
import pathlib
import shutil
import sqlite3
import subprocess
import tempfile

from compare import nanoseconds


def report(tool, recording, *more):
    return json.loads(subprocess.run([tool, "report", recording, "--json", *more],
                                     capture_output=True, text=True, check=True).stdout)


def gpu_power(args, begin, end):
    domains = report(args.tool, args.recording, "--from", f"{begin:.6f}s", "--to", f"{end:.6f}s")
    energy = next(d for d in domains["domains"] if d["domain"] == "gpu")["energy_joules"]
    return energy / (end - begin)


def truth(args, loops, start):
    """Joules of one call above idle, by operator: one for each loop."""
    out = {}
    for loop in loops:
        begin, end = (loop[k] / 1e9 - start for k in ("begin_ns", "end_ns"))
        idle = gpu_power(args, begin - 0.16, begin - 0.01)
        power = gpu_power(args, begin + 0.2, end - 0.02)
        out.setdefault(loop["name"], []).append((power - idle) * (end - begin) / loop["calls"])
    return out


def cut(recording, folder, begin_ns, end_ns):
    """A copy without the kernels outside of [begin, end]."""
    path = str(pathlib.Path(folder) / "cut.jprof")
    shutil.copy(recording, path)
    with sqlite3.connect(path) as db:
        db.execute("DELETE FROM activity_chunk WHERE begin_nanoseconds < ? OR end_nanoseconds > ?",
                   (begin_ns - 1_000_000_000, end_ns + 1_900_000_000))
        # As of an import, whose kernels are complete: the pauses around the mix give the idle power.
        db.execute("UPDATE run SET source = 'import:csv'")
    db.close()
    return path


def ranges(args, mix, seconds=None):
    end = mix["begin_ns"] + int(seconds * 1e9) if seconds else mix["end_ns"]
    with tempfile.TemporaryDirectory() as folder:
        path = cut(args.recording, folder, mix["begin_ns"], end)
        return report(args.tool, path, "--by", "range")["devices"][0]


def compare(device, launches_of_one_call, true):
    rows, all_joules, off, covered = [], 0, 0, 0
    for row in device["rows"]:
        name = row["name"]
        if name not in true or row["energy_joules"] is None:
            continue
        joules, half = row["energy_joules"], row["repeatability_joules"]
        calls = row["launches"] / launches_of_one_call[name]
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
            "width": sum(r[4] for r in rows) / sum(r[3] for r in rows),
            "explained": device["explained_ratio"]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("recording")
    parser.add_argument("loads")
    parser.add_argument("--lengths", default="")
    args = parser.parse_args()
    loads = json.load(open(args.loads))
    # A recording's times count from here, CLOCK_MONOTONIC.
    start_time = report(args.tool, args.recording)["start_time"]
    start = (nanoseconds(start_time) - loads["wall_minus_monotonic_ns"]) / 1e9
    true = truth(args, loads["loops"], start)

    print("| mix | energy-weighted | worst kernel signature of 2 % or more | balance | covered | R2 |")
    print("|---|---|---|---|---|---|")
    kept = []
    for mix in loads["mixes"]:
        whole = ranges(args, mix)
        one_call = {row["name"]: row["launches"] / mix["calls"][row["name"]]
                    for row in whole["rows"] if row["name"] in mix["calls"]}
        full = (mix["end_ns"] - mix["begin_ns"]) / 1e9
        lengths = [float(s) for s in args.lengths.split(",") if s and float(s) < full - 1]
        for seconds in [*lengths, None]:
            got = compare(ranges(args, mix, seconds) if seconds else whole, one_call, true)
            low, high = mix["bursts_seconds"]
            print(f"| bursts {1e3 * low:g}-{1e3 * high:g} ms, seed {mix['seed']}, {seconds or full:.0f} s "
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
