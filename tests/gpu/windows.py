#!/usr/bin/env python3
"""Holds the energies of short windows on a real NVIDIA GPU against what one repetition takes.

    windows.py OUT.json [--count 200] [--lengths 0.01,0.05,0.1,0.5,5] [--zeus]

Work is an fp32 matrix product, repeated as often as fills the length; pauses of 20 to 120 ms lie
between. What a repetition takes is found twice: looped alone for eight seconds before and after
(`looped`; the table takes the first), and from the energy counter over the whole series, less what the pauses draw (`balance`:
the counter's difference between two of its update edges; the pauses' power is measured in a long
pause of the same kind). Neither owes anything to jouleprof.

Each window is measured by jouleprof with the caller waiting for the GPU (`synchronised`), by
jouleprof with the GPU's own marks (`device`), and, with --zeus, by ZeusMonitor with and without
approx_instant_energy around it. Prints a Markdown table; changes no setting of the card.
"""

import argparse
import json
import random
import statistics
import threading
import time

import pynvml
import torch

import jouleprof


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


def series(work, gpu, length, count, how, monitor, zeus):
    """Measures `count` windows; returns their figures and the counter's balance."""
    n = max(1, round(length / work.seconds))
    rows = []
    random.seed(int(length * 1e6))
    first, from_joules = counter_edge(gpu)
    busy = 0.0
    for i in range(count):
        time.sleep(random.uniform(0.02, 0.12))
        row = {"repetitions": n}
        for name, other in zeus.items():
            other.begin_window(f"w{i}", sync_execution=False)
        monitor.begin_window("w", sync_execution=how == "synchronised" or None)
        begin = time.perf_counter()
        work.repeat(n)
        torch.cuda.synchronize()
        row["seconds"] = time.perf_counter() - begin
        busy += row["seconds"]
        row["window"] = monitor.end_window("w")
        for name, other in zeus.items():
            row[name] = other.end_window(f"w{i}", sync_execution=False).gpu_energy[0]
        rows.append(row)
    last, to_joules = counter_edge(gpu)
    for row in rows:  # resolved now, so that asking disturbs no window
        measurement = row.pop("window").energy
        energy = measurement["gpu0"]
        row["jouleprof"] = energy.joules
        row["half_width"] = energy.repeatability
        row["edges"] = measurement.edges
    return rows, to_joules - from_joules, last - first - busy


def table_row(length, what, values, truth, half_widths=None):
    errors = [v / truth - 1 for v in values]
    rms = (sum(e * e for e in errors) / len(errors)) ** 0.5
    covered = ""
    if half_widths:
        inside = sum(abs(v - truth) <= h for v, h in zip(values, half_widths))
        covered = f"{100 * inside / len(values):.0f} %"
    zero = sum(v == 0 for v in values)
    return (
        f"| {1000 * length:g} ms | {what} | {len(values)} | {truth:.3f} J | "
        f"{100 * statistics.mean(errors):+.2f} % | {100 * rms:.2f} % | {covered} | {zero} |"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--lengths", default="0.01,0.05,0.1,0.5,5")
    parser.add_argument("--zeus", action="store_true")
    parser.add_argument("--log", help="record what the sensors said into this *.jprof")
    args = parser.parse_args()

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
    print(f"looped: {1000 * before:.4f} mJ a repetition of {1e6 * work.seconds:.1f} us; ", end="")
    print(f"in pauses {idle:.1f} W", flush=True)
    print("| length | by | windows | truth | bias | rms | covered | zeros |")
    print("|---|---|---|---|---|---|---|---|")
    result["series"] = []
    for length in (float(text) for text in args.lengths.split(",")):
        count = args.count if length < 2 else max(8, args.count // 10)
        for how in ("synchronised", "device"):
            some = count if how == "synchronised" else max(8, count // 2)
            others = zeus if how == "synchronised" else {}
            rows, joules, paused = series(work, gpu, length, some, how, monitor, others)
            balance = (joules - idle * paused) / len(rows)
            result["series"].append(
                {"length": length, "how": how, "rows": rows, "balance_joules": balance}
            )
            truth = rows[0]["repetitions"] * before
            values = [row["jouleprof"] for row in rows]
            widths = [row["half_width"] for row in rows]
            print(table_row(length, f"jouleprof, {rows[0]['edges']}", values, truth, widths))
            print(table_row(length, "the same, against balance", values, balance, widths))
            for name in others:
                print(table_row(length, name, [row[name] for row in rows], truth))
            print(end="", flush=True)
    result["looped_before"] = before
    result["looped_after"] = looped(work, gpu, 8)
    result["pause_watts"] = idle
    print(f"looped after: {1000 * result['looped_after']:.4f} mJ")
    monitor.close()
    with open(args.out, "w") as file:
        json.dump(result, file)


if __name__ == "__main__":
    main()
