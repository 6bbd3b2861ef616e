#!/usr/bin/env python3
"""Compares the energies of short windows on a real NVIDIA GPU with the energy of one repetition.

    windows.py OUT.json [--count 200] [--long-count 40] [--lengths 0.01,0.05,0.1,0.5,5] [--zeus]
                        [--within SECONDS] [--log FILE]

Work is an fp32 matrix product, repeated as often as fills the length; pauses of 20 to 120 ms lie
between. The energy of a repetition is measured twice: looped alone for eight seconds before and after
(`looped`; the table takes the first), and from the energy counter over the whole series, less what
the pauses draw (`balance`: the counter's difference between two of its update edges; the pauses'
power is measured in a long pause of the same kind). Both are independent of jouleprof.

With --log FILE, windows have one name for each hundred of one length and way, and a second table has the
mean of each name as `jouleprof report FILE` gives it.

Jouleprof measures every second window with the caller waiting for the GPU (`synchronised`), and the
others with the GPU's own marks (`device`); with --zeus, ZeusMonitor with and without
approx_instant_energy lies around all of them. Windows of 2 s and more: --long-count. After --within
seconds the windows that are left are left out. Prints a Markdown table, the errors against both
truths; changes no setting of the card.
"""

import argparse
import json
import random
import statistics
import subprocess
import threading
import time

import pynvml
import torch

import jouleprof

HOWS = ("synchronised", "device")


def counter_edge(gpu):
    """Waits for the energy counter to step; returns (seconds, joules)."""
    first = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
    while True:
        before = time.perf_counter()
        value = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
        if value != first:
            return before, value / 1000


class Work:
    """Repetitions of one matrix product."""

    def __init__(self, size=2048):
        self.a = torch.randn(size, size, device="cuda")
        self.b = torch.randn(size, size, device="cuda")
        self.out = torch.empty_like(self.a)
        self.repeat(200)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        self.repeat(2000)
        torch.cuda.synchronize()
        self.seconds = (time.perf_counter() - begin) / 2000  # of one repetition

    def repeat(self, n):
        for _ in range(n):
            torch.mm(self.a, self.b, out=self.out)


def looped(work, gpu, seconds):
    """Joules of one repetition, from the counter while it loops without a pause."""
    stop = threading.Event()
    count = [0]

    def loop():
        chunk = max(1, int(0.01 / work.seconds))
        while not stop.is_set():
            work.repeat(chunk)
            torch.cuda.synchronize()
            count[0] += chunk

    thread = threading.Thread(target=loop)
    thread.start()
    time.sleep(1)
    first, from_joules = counter_edge(gpu)
    first_count = count[0]
    time.sleep(seconds)
    last, to_joules = counter_edge(gpu)
    last_count = count[0]
    stop.set()
    thread.join()
    per_second = (last_count - first_count) / (last - first)
    return (to_joules - from_joules) / (last - first) / per_second


def pause_power(gpu, seconds):
    """Watts while the GPU waits as it does between two windows."""
    time.sleep(0.3)
    first, from_joules = counter_edge(gpu)
    time.sleep(seconds)
    last, to_joules = counter_edge(gpu)
    return (to_joules - from_joules) / (last - first)


def series(work, gpu, length, count, monitor, zeus, deadline):
    """Measures `count` windows; returns their figures, the counter's joules and seconds of pauses."""
    n = max(1, round(length / work.seconds))
    rows = []
    random.seed(int(length * 1e6))
    first, from_joules = counter_edge(gpu)
    busy = 0.0
    for i in range(count):
        if time.monotonic() > deadline and rows:
            break
        time.sleep(random.uniform(0.02, 0.12))
        row = {"repetitions": n, "how": HOWS[i % len(HOWS)]}
        for name, other in zeus.items():
            other.begin_window(f"w{i}", sync_execution=False)
        name = f"{1000 * length:g} ms, {row['how']}, {i // (100 * len(HOWS)) + 1}"
        monitor.begin_window(name, sync_execution=row["how"] == "synchronised" or None)
        begin = time.perf_counter()
        work.repeat(n)
        torch.cuda.synchronize()
        row["seconds"] = time.perf_counter() - begin
        busy += row["seconds"]
        row["window"] = monitor.end_window(name)
        for name, other in zeus.items():
            row[name] = other.end_window(f"w{i}", sync_execution=False).gpu_energy[0]
        rows.append(row)
    last, to_joules = counter_edge(gpu)
    for row in rows:  # resolved now, so that reading disturbs no window
        measurement = row.pop("window").energy
        energy = measurement["gpu0"]
        row["jouleprof"] = energy.joules
        row["half_width"] = energy.repeatability
        row["edges"] = measurement.edges
    return rows, to_joules - from_joules, last - first - busy


def against(values, truth, half_widths=None):
    """Bias, rms error and coverage, as cells."""
    errors = [v / truth - 1 for v in values]
    rms = (sum(e * e for e in errors) / len(errors)) ** 0.5
    covered = "none stated"
    if half_widths:
        inside = sum(abs(v - truth) <= h for v, h in zip(values, half_widths))
        covered = f"{100 * inside / len(values):.0f} %"
    return f"{100 * statistics.mean(errors):+.2f} % | {100 * rms:.2f} % | {covered}"


def table_row(length, what, rows, name, truths):
    values = [row[name] for row in rows]
    widths = [row["half_width"] for row in rows] if name == "jouleprof" else None
    interval = ""
    if widths:
        interval = f"+-{100 * statistics.median(widths) / truths[0]:.1f} %"
    zeros = sum(v == 0 for v in values)
    return (f"| {1000 * length:g} ms | {what} | {len(values)} | "
            f"{' | '.join(against(values, truth, widths) for truth in truths)} | {interval} | {zeros} |")


def print_series(length, rows, truths, others):
    for how in HOWS:
        some = [row for row in rows if row["how"] == how]
        for edges in sorted({row["edges"] for row in some}):  # without a device mark: the host's
            print(table_row(length, f"jouleprof, {edges}", [r for r in some if r["edges"] == edges],
                            "jouleprof", truths))
    if len(rows) > 1:
        print(table_row(length, "jouleprof, both", rows, "jouleprof", truths))
    for name in others:
        print(table_row(length, name, rows, name, truths))
    print(end="", flush=True)


def print_report(log, all_series):
    """The mean of each name of windows, as the report has it."""
    report = json.loads(subprocess.run(["jouleprof", "report", log, "--json"], check=True,
                                       stdout=subprocess.PIPE, text=True).stdout)
    print("\n| windows | method | mean | interval (repeatability) | bias (looped) | bias (balance) |\n"
          "|---|---|---|---|---|---|")
    for window in report["windows"]:
        length = window["name"].split(" ms")[0]
        one = next(s for s in all_series if f"{1000 * s['length']:g}" == length)
        energy = next(e for e in window["energy"] if e["domain"] == "gpu")
        mean = energy["energy_joules"] / window["count"]
        half = energy["repeatability_joules"] / energy["energy_joules"]
        biases = [mean / one[truth] - 1 for truth in ("looped_joules", "balance_joules")]
        print(f"| {window['count']} of {window['name']} | {energy['method']} | {mean:.4f} J | "
              f"+-{100 * half:.1f} % | {' | '.join(f'{100 * bias:+.2f} %' for bias in biases)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--long-count", type=int, default=40)
    parser.add_argument("--within", type=float, default=float("inf"))
    parser.add_argument("--lengths", default="0.01,0.05,0.1,0.5,5")
    parser.add_argument("--zeus", action="store_true")
    parser.add_argument("--log", help="record the sensors' readings into this *.jprof")
    args = parser.parse_args()
    deadline = time.monotonic() + args.within

    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    work = Work()
    monitor = jouleprof.Monitor(log=args.log, overwrite=True)
    result = {"device": pynvml.nvmlDeviceGetName(gpu), "repetition_seconds": work.seconds}
    zeus = {}
    if args.zeus:
        from zeus.monitor import ZeusMonitor

        zeus["zeus"] = ZeusMonitor(gpu_indices=[0], approx_instant_energy=False)
        zeus["zeus_approx"] = ZeusMonitor(gpu_indices=[0], approx_instant_energy=True)

    before = looped(work, gpu, 8)
    idle = pause_power(gpu, 3)
    print(f"{result['device']}; looped: {1000 * before:.4f} mJ a repetition of "
          f"{1e6 * work.seconds:.1f} us; in pauses {idle:.1f} W\n")
    print("| length | by | windows | bias (looped) | rms | covered | bias (balance) | rms | covered "
          "| interval, median | zeros |")
    print("|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    result["series"] = []
    for length in (float(text) for text in args.lengths.split(",")):
        count = args.count if length < 2 else args.long_count
        rows, joules, paused = series(work, gpu, length, count, monitor, zeus, deadline)
        balance = (joules - idle * paused) / len(rows)
        looped_joules = rows[0]["repetitions"] * before
        result["series"].append({"length": length, "rows": rows, "balance_joules": balance,
                                 "looped_joules": looped_joules})
        print_series(length, rows, (looped_joules, balance), zeus)
    result["looped_before"] = before
    result["looped_after"] = looped(work, gpu, 8)
    result["pause_watts"] = idle
    print(f"\nlooped after: {1000 * result['looped_after']:.4f} mJ "
          f"({100 * (result['looped_after'] / before - 1):+.2f} %)")
    monitor.close()
    if args.log:
        print_report(args.log, result["series"])
    with open(args.out, "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
