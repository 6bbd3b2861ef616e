#!/usr/bin/env python3
"""Energy tools on the same loads of one NVIDIA GPU, in turns in one run: a table with figures or "cannot" in each cell.

    peers.py OUT.json [--within 480] [--only jobs,windows,costs,slowdown,layers] [--jobs 1,10,60] [--quick]

bench/peers/README.md says what is measured and how. Without CUDA the loads sleep: that tries the script out, and its
figures are of no device.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

import costs
import tools
from loads import busy, load, square
from reference import Reference

HERE = pathlib.Path(__file__).resolve().parent
REST_SECONDS = 2.0


class Run:
    """Results, the deadline, and what could not be measured for want of time."""

    def __init__(self, within):
        self.began = time.monotonic()
        self.within = within
        self.left_out = []
        self.results = {}

    def room(self, seconds, what):
        """Whether `seconds` are left; if not, it is noted what is left out."""
        if time.monotonic() - self.began + seconds <= self.within:
            return True
        self.left_out.append(what)
        print(f"left out for want of time: {what}", file=sys.stderr, flush=True)
        return False


def measure(kinds, do):
    """Runs `do` once while all tools of `kinds` measure: (begin, end, name -> joules, name -> why not)."""
    opened, cannot = tools.open_tools(kinds)
    running = []
    for tool in opened:
        try:
            tool.begin()
            running.append(tool)
        except Exception as error:
            cannot[tool.name] = f"{type(error).__name__}: {error}"[:120]
    begin = time.perf_counter()
    do()
    end = time.perf_counter()
    found = {}
    for tool in reversed(running):
        try:
            found[tool.name] = tool.end()
        except Exception as error:
            cannot[tool.name] = f"{type(error).__name__}: {error}"[:120]
    time.sleep(REST_SECONDS)
    joules = {}
    for name, value in found.items():
        try:
            joules[name] = value() if callable(value) else value
        except Exception as error:
            cannot[name] = f"{type(error).__name__}: {error}"[:120]
    for tool in opened:
        tool.close()
    return begin, end, joules, cannot


def jobs(run, work, lengths, rounds, square_seconds):
    """Errors of the totals of jobs: all tools measure the same job at the same time."""
    plan = [(f"job of {length:g} s", lambda length=length: busy(work, length), length, rounds.get(length, 1))
            for length in lengths]
    plan.append(("square wave, 30 of 100 ms", lambda: square(work, square_seconds), square_seconds, 2))
    rows = []
    measure(tools.AROUND_A_JOB, lambda: time.sleep(0.2))  # a tool's first start takes seconds
    with Reference() as reference:
        for title, do, length, count in plan:
            for turn in range(count):
                if not run.room(length + 6, f"{title}, round {turn + 1}"):
                    break
                begin, end, joules, cannot = measure(tools.AROUND_A_JOB, do)
                rows.append({"title": title, "begin": begin, "end": end, "joules": joules, "cannot": cannot})
                print(f"{title}: {joules} {cannot}", file=sys.stderr, flush=True)
    for row in rows:
        try:
            row["rest_watts"] = reference.watts(row["end"] + 0.35, row["end"] + REST_SECONDS)
            row["truth_joules"] = reference.energy(row["begin"], row["end"], row["rest_watts"])
        except ValueError as error:
            row["no_truth"] = str(error)
    return rows


def window_series(kinds, work, length, count):
    """`count` windows of `length` with pauses of 20 to 120 ms; all tools around each of them."""
    opened, cannot = tools.open_tools(kinds)
    n = max(1, round(length / work.seconds))
    found = {tool.name: [] for tool in opened}
    busy_spans = []
    first = time.perf_counter()
    for i in range(count):
        time.sleep(0.02 + 0.1 * (i * 0.618 % 1))
        for tool in opened:
            tool.begin()
        begin = time.perf_counter()
        work.repeat(n)
        work.wait()
        busy_spans.append((begin, time.perf_counter()))
        for tool in reversed(opened):
            found[tool.name].append(tool.end())
    last = time.perf_counter()
    time.sleep(REST_SECONDS)
    joules = {}
    for name, values in found.items():
        try:
            joules[name] = [value() if callable(value) else value for value in values]
        except Exception as error:
            cannot[name] = f"{type(error).__name__}: {error}"[:120]
    for tool in opened:
        tool.close()
    return {"length_seconds": length, "begin": first, "end": last, "joules": joules, "cannot": cannot,
            "busy_seconds": sum(end - begin for begin, end in busy_spans), "count": count}


WINDOW_GROUPS = ((tools.ZeusInstant, tools.Zeus, tools.PyJoules, tools.Smi, tools.Dmon, tools.Jouleprof),
                 (tools.CodeCarbonTask, tools.Smi, tools.Jouleprof))


def windows(run, work, lengths, counts):
    """Errors of short windows, against the mean energy of one: the counter over the series, less its pauses."""
    rows = []
    with Reference() as reference:
        for length in lengths:
            for kinds in WINDOW_GROUPS:
                count = counts[length]
                if run.room(count * (length + 0.2) + 4, f"windows of {length:g} s"):
                    rows.append(window_series(kinds, work, length, count))
    for row in rows:
        try:
            row["rest_watts"] = reference.watts(row["end"] + 0.35, row["end"] + REST_SECONDS)
            joules, seconds = reference.span(row["begin"], row["end"])
            row["truth_joules"] = (joules - row["rest_watts"] * (seconds - row["busy_seconds"])) / row["count"]
        except ValueError as error:
            row["no_truth"] = str(error)
    return rows


def layers(run):
    """Joules of layers and kernels against loops: layers.py in processes of its own."""
    if not run.room(100, "layers and kernels"):
        return {}
    file = HERE / "layers.out.json"
    done = subprocess.run([sys.executable, str(HERE / "layers.py"), str(file)], timeout=170, check=False)
    if done.returncode or not file.exists():
        return {"cannot": f"layers.py ended with {done.returncode}"}
    result = json.loads(file.read_text())
    file.unlink()
    return result


def errors(pairs):
    """Bias and rms of values against their truths, as a cell."""
    values = [value / truth - 1 for value, truth in pairs if truth > 0]
    if not values:
        return "not measured"
    if len(values) == 1:
        return f"{100 * values[0]:+.2f} %"
    rms = math.sqrt(statistics.mean(value * value for value in values))
    return f"{100 * statistics.mean(values):+.2f} %, {100 * rms:.2f} %"


def job_cell(rows, name):
    pairs = [(row["joules"][name], row["truth_joules"]) for row in rows
             if name in row["joules"] and "truth_joules" in row]
    if pairs:
        return errors(pairs)
    return next((f"cannot: {row['cannot'][name]}" for row in rows if name in row["cannot"]), "not measured")


def window_cell(rows, name):
    for row in rows:
        if row["joules"].get(name) and "truth_joules" in row:
            cell = errors([(value, row["truth_joules"]) for value in row["joules"][name]])
            zeros = sum(value == 0 for value in row["joules"][name])
            return cell + (f"; {zeros} of {len(row['joules'][name])} are 0" if zeros else "")
    return next((f"cannot: {row['cannot'][name]}" for row in rows if name in row["cannot"]), "not measured")


def cost_cell(found, value):
    if not found:
        return "not measured"
    return f"cannot: {found['cannot']}" if "cannot" in found else value(found)


NO_WINDOWS = {tools.Perun.name: "cannot: a region has the mean power of all devices, no energy"}


def table(results):
    names = [kind.name for kind in tools.JOB_TOOLS]
    lines = ["| figure | " + " | ".join([*names, "jouleprof run", "GPUPP's method"]) + " |",
             "|---" * (len(names) + 3) + "|"]

    def line(title, cells, run="as jouleprof", gpupp="cannot: measures a model's forward pass only"):
        lines.append("| " + " | ".join([title, *cells, run, gpupp]) + " |")

    for title in dict.fromkeys(row["title"] for row in results.get("jobs", [])):
        rows = [row for row in results["jobs"] if row["title"] == title]
        line(f"{title}: error (of several: bias, rms)", [job_cell(rows, name) for name in names])
    for length in dict.fromkeys(row["length_seconds"] for row in results.get("windows", [])):
        rows = [row for row in results["windows"] if row["length_seconds"] == length]
        line(f"window of {1000 * length:g} ms: bias, rms",
             [NO_WINDOWS.get(name) or window_cell(rows, name) for name in names], "cannot: measures a command")
    found = results.get("costs", {})
    if found:
        for title, value in (
                ("seconds to the first number, beyond the job", lambda f: f"{f['seconds_beyond_sleep']:.2f} s"),
                ("CPU time of the tool around a job of "
                 f"{next((f['sleep_seconds'] for f in found.values() if 'sleep_seconds' in f), 0):g} s",
                 lambda f: f"{f['cpu_seconds']:.2f} s"),
                ("memory of the tool", lambda f: f"{f['memory_bytes'] / 1e6:.0f} MB")):
            line(title, [cost_cell(found.get(name), value) for name in names],
                 cost_cell(found.get("jouleprof run"), value))
    slow = results.get("slowdown", {})
    if slow:
        def value(f):
            return f"{100 * f['slower_ratio']:+.2f} ± {100 * f['half_width_ratio']:.2f} %"
        of_layers = results.get("layers", {}).get("slower", {})
        line("slow-down of inference at batch 1", ["as Zeus" if name == tools.ZeusInstant.name else
                                                   cost_cell(slow.get(name), value) for name in names],
             *(f"{of_layers[key]:+.1%} (by layer)" if key in of_layers else "not measured"
               for key in ("jouleprof", "GPUPP")))
    for what in ("layer", "kernel"):
        of = results.get("layers", {}).get(what)
        if of:
            line(f"joules of a {what} against its loop: energy-weighted mean error, worst",
                 ["cannot: no layers or kernels"] * len(names), of["jouleprof"]["cell"], of["GPUPP"]["cell"])
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--within", type=float, default=480)
    parser.add_argument("--only", default="layers,jobs,windows,costs,slowdown")
    parser.add_argument("--jobs", default="1,10,60")
    parser.add_argument("--quick", action="store_true", help="few and short: tries the script out")
    args = parser.parse_args()
    run, work = Run(args.within), None
    lengths = [float(length) for length in args.jobs.split(",")]
    rounds = {1.0: 2, 10.0: 1} if args.quick else {1.0: 5, 10.0: 2}
    counts = {0.05: 8, 0.5: 4} if args.quick else {0.05: 60, 0.5: 20}
    parts = {
        "layers": lambda: layers(run),
        "jobs": lambda: jobs(run, work, lengths, rounds, 3 if args.quick else 10),
        "windows": lambda: windows(run, work, list(counts), counts),
        "costs": lambda: costs.of_tools(2 if args.quick else 4) if run.room(70, "costs") else {},
        "slowdown": lambda: (costs.slow_down(2, 0.5) if args.quick else costs.slow_down(4, 0.5))
        if run.room(60, "slow-down") else {},
    }
    for name in args.only.split(","):
        if name != "layers" and work is None:
            work = load()
            run.results["device"] = device(work)
        began = time.monotonic()
        try:
            run.results[name] = parts[name]()
        except Exception as error:  # the other parts are worth having
            run.results[name] = {}
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
        run.results["left_out"] = run.left_out
        args.out.write_text(json.dumps(run.results, indent=1) + "\n")
    print(run.results.get("device", ""))
    print(table(run.results))
    for what in run.left_out:
        print(f"Not measured, for want of time: {what}")


def device(work):
    if type(work).__name__ == "Sleeps":
        return "No CUDA: the loads slept. These figures are of no device."
    import torch

    driver = subprocess.run(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
                            capture_output=True, text=True, check=False).stdout.strip()
    return f"{torch.cuda.get_device_name()}, driver {driver}, PyTorch {torch.__version__}"


if __name__ == "__main__":
    main()
