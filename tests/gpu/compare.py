#!/usr/bin/env python3
"""Compares a recording of loads.py with the figures of the loads; prints Markdown tables.

    compare.py JOULEPROF RECORDING LOADS.json           every span, as a part of one recording
    compare.py --runs JOULEPROF (RECORDING LOADS.json)...   whole runs of one load each
"""

import datetime
import json
import subprocess
import sys


def report(tool, recording, begin, end):
    """The profile of [begin, end], in seconds since the work began."""
    text = subprocess.run(
        [tool, "report", recording, "--json", "--from", f"{begin:.9f}s", "--to", f"{end:.9f}s"],
        capture_output=True, text=True, check=True).stdout
    return json.loads(text)


def nanoseconds(stamp):
    """An ISO 8601 stamp with up to nine digits of fraction, as ns since 1970."""
    whole, fraction = stamp.rstrip("Z").split(".") if "." in stamp else (stamp.rstrip("Z"), "0")
    seconds = datetime.datetime.fromisoformat(whole + "+00:00").timestamp()
    return int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])


def whole_runs(tool, pairs):
    """One line a run: jouleprof against the counter over the script's whole life."""
    print("| run of | seconds of load | counter, J | jouleprof, J | difference, of the load's energy |")
    print("|---|---|---|---|---|")
    for recording, loads_file in pairs:
        start = nanoseconds(json.loads(subprocess.run(
            [tool, "report", recording, "--json"], capture_output=True, text=True,
            check=True).stdout)["start_time"])
        load, whole = json.load(open(loads_file))["spans"]
        begin, end = ((whole[k] - start) / 1e9 for k in ("begin_ns", "end_ns"))
        gpu = next(d for d in report(tool, recording, begin, end)["domains"] if d["domain"] == "gpu")
        apart = gpu["energy_joules"] - whole["counter_joules"]
        print(f"| {load['kind']} {load['name']} | {(load['end_ns'] - load['begin_ns']) / 1e9:.2f} "
              f"| {whole['counter_joules']:.1f} | {gpu['energy_joules']:.1f} "
              f"| {100 * apart / load['counter_joules']:+.2f} % |")


def main():
    if sys.argv[1] == "--runs":
        whole_runs(sys.argv[2], list(zip(sys.argv[3::2], sys.argv[4::2])))
        return
    tool, recording, loads_file = sys.argv[1:4]
    whole = json.loads(subprocess.run([tool, "report", recording, "--json"], capture_output=True,
                                      text=True, check=True).stdout)
    start = nanoseconds(whole["start_time"])
    loads = json.load(open(loads_file))
    print(f"{loads['device']}, driver {loads['driver']}\n")
    print("| load | seconds | counter, W | jouleprof, W | difference | stated ± (same board) | instant field polled, W |")
    print("|---|---|---|---|---|---|---|")
    for span in loads["spans"]:
        if span["kind"] == "whole":
            continue
        begin, end = ((span[k] - start) / 1e9 for k in ("begin_ns", "end_ns"))
        gpu = next(d for d in report(tool, recording, begin, end)["domains"] if d["domain"] == "gpu")
        seconds = end - begin
        counter = span["counter_joules"]
        instant = span["instant_mean_watts"]
        print(f"| {span['kind']} {span['name']} | {seconds:.2f} | {counter / seconds:.2f} "
              f"| {gpu['energy_joules'] / seconds:.2f} "
              f"| {100 * (gpu['energy_joules'] / counter - 1):+.2f} % "
              f"| {100 * gpu['repeatability_joules'] / gpu['energy_joules']:.2f} % "
              f"| {instant:.1f} ({100 * (instant * seconds / counter - 1):+.0f} %) |")


if __name__ == "__main__":
    main()
