#!/usr/bin/env python3
"""Loads of known shape for validating jouleprof on a real GPU; writes their times and energies as JSON.

    loads.py OUT.json [--seconds 8] [--only "phase 20 ms"]

Spans: `steady` operators looped, `square` waves, and `phase`: 30 ms on and 70 ms off, locked to the
100 ms grid of the wall clock at five phases. For each, begin and end (CLOCK_REALTIME, ns) and the
energy counter's difference between its own update edges around the span, scaled to it: a reading
independent of jouleprof. `whole` is the same from the script's first moment to its last. A
sibling process polls the instant power field the way most tools do.
"""

import argparse
import json
import multiprocessing
import time

import pynvml

GRID = 100_000_000  # ns


def poll_instant(queue, stop):
    """Polls field 186 at 100 Hz and hands back (time, watts) pairs."""
    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    rows = []
    while not stop.is_set():
        value = pynvml.nvmlDeviceGetFieldValues(gpu, [186])[0]
        rows.append((time.time_ns(), value.value.uiVal / 1000))
        time.sleep(0.01)
    queue.put(rows)


def counter_edge(gpu):
    """Waits for the energy counter to step; returns (time seen, joules)."""
    first = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
    while True:
        before = time.time_ns()
        value = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
        if value != first:
            return before, value / 1000


def burst(work, seconds):
    """Runs `work` over and over for so long, never more than about a millisecond ahead."""
    import torch

    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        work()
        torch.cuda.synchronize()


def make_work():
    import torch

    a = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(64 << 20, device="cuda", dtype=torch.bfloat16)
    y = torch.empty_like(x)

    def matmul():
        for _ in range(20):
            torch.mm(a, b)

    def copy():
        for _ in range(5):
            y.copy_(x)

    def gelu():
        for _ in range(5):
            torch.nn.functional.gelu(x)

    return {"matmul": matmul, "copy": copy, "gelu": gelu}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--only", default="", help="one load, as its table row is named")
    args = parser.parse_args()
    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    first = counter_edge(gpu)
    work = make_work()
    for w in work.values():
        burst(w, 0.3)

    queue, stop = multiprocessing.Queue(), multiprocessing.Event()
    poller = multiprocessing.Process(target=poll_instant, args=(queue, stop))
    poller.start()

    spans = []

    def add(kind, name, begin, end):
        spans.append({"kind": kind, "name": name, "begin_ns": begin[0], "end_ns": end[0],
                      "counter_joules": end[1] - begin[1]})

    def measured(kind, name, body):
        """Runs `body` between two counter edges, which bracket the span exactly."""
        if args.only not in ("", f"{kind} {name}"):
            return
        t0, e0 = counter_edge(gpu)
        body(args.seconds)
        t1, e1 = counter_edge(gpu)
        add(kind, name, (t0, e0), (t1, e1))

    for name, w in work.items():
        measured("steady", name, lambda s, w=w: burst(w, s))
        if not args.only:
            time.sleep(1)

    def square(period):
        def body(seconds):
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                burst(work["matmul"], period / 2)
                time.sleep(period / 2)
        return body

    for period in (2.0, 0.5, 0.1, 0.03):
        measured("square", f"{period:g} s", square(period))

    def phased(phase_ms):
        def body(seconds):
            end = time.time_ns() + int(seconds * 1e9)
            while time.time_ns() < end:
                now = time.time_ns()
                start = now - now % GRID + phase_ms * 1_000_000
                if start <= now:
                    start += GRID
                time.sleep(max(0, (start - time.time_ns() - 500_000) / 1e9))
                while time.time_ns() < start:
                    pass
                burst(work["matmul"], 0.030)
        return body

    for phase in (0, 20, 40, 60, 80):
        measured("phase", f"{phase} ms", phased(phase))

    time.sleep(0.5)
    add("whole", "", first, counter_edge(gpu))
    stop.set()
    instant = queue.get()
    poller.join()
    for span in spans:
        rows = [w for t, w in instant if span["begin_ns"] <= t < span["end_ns"]]
        span["instant_mean_watts"] = sum(rows) / len(rows) if rows else None
    with open(args.out, "w") as f:
        json.dump({"device": pynvml.nvmlDeviceGetName(gpu),
                   "driver": pynvml.nvmlSystemGetDriverVersion(), "spans": spans}, f, indent=1)


if __name__ == "__main__":
    main()
