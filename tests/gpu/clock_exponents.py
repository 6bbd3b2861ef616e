#!/usr/bin/env python3
"""By how much the energy of a kernel's launch changes with the SM clock, on a real NVIDIA GPU.

    clock_exponents.py OUT.json [--seconds 2] [--others]

No setting of the card is changed: a matrix product that meets the power limit runs in turns with each kernel, so that
the limit lowers the clock of both. The product's own energy at several clocks is that of itself in turns with pauses.
OUT.json has of each mixture its launches, the seconds of one of each, the watts between two updates of the counter, and
the mean SM clock. Prints a Markdown table: of each kernel in its mixtures, its share of the time, by which power of the
clock a launch became shorter, and by which its power above idle fell.
"""

import argparse
import json
import math
import sys
import threading
import time

import numpy
import torch

from ranks import Board

PERIOD = 0.006  # seconds of one turn of both
HEAVY = "gemm bf16 8192"
LEAST = 0.03  # logarithm of two clocks: closer ones say nothing of a power of their ratio


def kernels():
    dev = {"device": "cuda"}
    big = torch.randn(8192, 8192, dtype=torch.bfloat16, **dev)
    out = torch.empty_like(big)
    half = torch.randn(96 * 1024 * 1024, dtype=torch.bfloat16, **dev)
    half_out = torch.empty_like(half)
    single = torch.randn(64 * 1024 * 1024, **dev)
    single_out = torch.empty_like(single)
    rows = torch.randn(16384, 4096, dtype=torch.bfloat16, **dev)
    weight = torch.ones(4096, dtype=torch.bfloat16, **dev)
    f32 = torch.randn(4096, 4096, **dev)
    f32_out = torch.empty_like(f32)
    mid = torch.randn(2048, 2048, dtype=torch.bfloat16, **dev)
    mid_out = torch.empty_like(mid)
    small = torch.randn(4 * 1024 * 1024, **dev)
    thin = torch.randn(64, 8192, dtype=torch.bfloat16, **dev)
    thin_out = torch.empty_like(thin)
    q = torch.randn(8, 16, 2048, 64, dtype=torch.bfloat16, **dev)
    m = {}
    m["gemm bf16 8192"] = lambda: torch.mm(big, big, out=out)
    m["gemm bf16 2048"] = lambda: torch.mm(mid, mid, out=mid_out)
    m["gemm bf16 64 x 8192"] = lambda: torch.mm(thin, big, out=thin_out)
    m["gemm fp32"] = lambda: torch.mm(f32, f32, out=f32_out)
    m["attention"] = lambda: torch.nn.functional.scaled_dot_product_attention(q, q, q)
    m["copy"] = lambda: half_out.copy_(half)
    m["gelu bf16"] = lambda: torch.ops.aten.gelu.out(half, out=half_out)
    m["lgamma fp32"] = lambda: torch.lgamma(single, out=single_out)
    m["layer norm"] = lambda: torch.nn.functional.layer_norm(rows, (4096,), weight, weight)
    m["softmax"] = lambda: torch.softmax(rows, -1)
    m["sum"] = lambda: single.sum()
    m["add in L2"] = lambda: small.add_(1.0)
    return m


def others():
    """Kernels to which the rule was not fitted."""
    dev = {"device": "cuda"}
    image = torch.randn(64, 256, 56, 56, dtype=torch.bfloat16, **dev).to(memory_format=torch.channels_last)
    filters = torch.randn(256, 256, 3, 3, dtype=torch.bfloat16, **dev).to(memory_format=torch.channels_last)
    f16 = torch.randn(4096, 4096, dtype=torch.float16, **dev)
    f16_out = torch.empty_like(f16)
    int8 = torch.randint(-127, 127, (8192, 8192), dtype=torch.int8, **dev)
    flat = torch.randn(8192, 512, dtype=torch.bfloat16, **dev)
    flat_out = torch.empty(8192, 8192, dtype=torch.bfloat16, **dev)
    batch = torch.randn(512, 256, 64, dtype=torch.bfloat16, **dev)
    batch_out = torch.empty(512, 256, 256, dtype=torch.bfloat16, **dev)
    single = torch.randn(64 * 1024 * 1024, **dev)
    single_out = torch.empty_like(single)
    square = torch.randn(8192, 8192, **dev)
    square_out = torch.empty_like(square)
    vector = torch.randn(8192, **dev)
    table = torch.randn(65536, 1024, **dev)
    where = torch.randint(0, 65536, (65536,), **dev)
    chosen = torch.empty_like(table)
    f64 = torch.randn(2048, 2048, dtype=torch.float64, **dev)
    f64_out = torch.empty_like(f64)
    m = {}
    m["convolution bf16"] = lambda: torch.nn.functional.conv2d(image, filters, padding=1)
    m["gemm fp16 4096"] = lambda: torch.mm(f16, f16, out=f16_out)
    m["gemm int8 8192"] = lambda: torch._int_mm(int8, int8)
    m["gemm fp64"] = lambda: torch.mm(f64, f64, out=f64_out)
    m["gemm bf16 8192 x 512"] = lambda: torch.mm(flat, flat.t(), out=flat_out)
    m["batched gemm"] = lambda: torch.bmm(batch, batch.transpose(1, 2), out=batch_out)
    m["matrix by vector"] = lambda: torch.mv(square, vector)
    m["transposed copy"] = lambda: square_out.copy_(square.t())
    m["gather"] = lambda: torch.index_select(table, 0, where, out=chosen)
    m["exp fp32"] = lambda: torch.exp(single, out=single_out)
    m["cumulative sum"] = lambda: torch.cumsum(square, 1, out=square_out)
    m["erfinv fp32"] = lambda: torch.erfinv(single, out=single_out)
    return m


def seconds_of(run, count=20):
    run()
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    for _ in range(count):
        run()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000 / count


class Clock:
    """Mean SM clock, polled."""

    def __init__(self, board):
        import ctypes

        self.board, self.values, self.on = board, [], True

        def poll():
            value = ctypes.c_uint()
            while self.on:
                board.nvml.nvmlDeviceGetClockInfo(board.handle, 1, ctypes.byref(value))
                self.values.append((time.monotonic(), value.value))
                time.sleep(0.01)

        self.thread = threading.Thread(target=poll)
        self.thread.start()

    def mean(self, begin, end):
        inside = [v for t, v in self.values if begin <= t <= end]
        return sum(inside) / max(len(inside), 1)

    def close(self):
        self.on = False
        self.thread.join()


def measure(board, parts, seconds):
    """`parts`: (function, count) of one turn. Joules, seconds and launches between two updates of the counter."""
    clock = Clock(board)
    ahead = []
    times = []  # of single launches, by part

    def turn(timed):
        marks = []
        for run, count in parts:
            if timed:
                marks.append(torch.cuda.Event(enable_timing=True))
                marks[-1].record()
            for _ in range(count):
                run()
        done = torch.cuda.Event(enable_timing=True)
        done.record()
        ahead.append(done)
        if timed:
            times.append([*marks, done])

    def until(done, timed):
        while not done():
            turn(timed)
            if len(ahead) > 4:
                ahead.pop(0).synchronize()

    def after(wait):
        end = time.monotonic() + wait
        return lambda: time.monotonic() >= end

    def edge():
        # Awaited in a thread of its own, so that the GPU stays busy.
        watcher = threading.Thread(target=lambda: edges.append(board.edge()))
        watcher.start()
        until(lambda: not watcher.is_alive(), True)

    edges = []
    until(after(0.6), False)  # the limit settles
    edge()
    until(after(seconds), True)
    edge()
    torch.cuda.synchronize()
    clock.close()
    (t0, j0, *_), (t1, j1, *_) = edges
    lengths = [[a.elapsed_time(b) / 1000 for a, b in zip(marks, marks[1:])] for marks in times]
    mean = [sum(column) / len(column) / count for column, (_, count) in zip(zip(*lengths), parts)]
    whole = sum(sum(row) for row in lengths) / len(lengths)
    return {"watts": (j1 - j0) / (t1 - t0) * 1e9, "turn": whole, "seconds": mean,
            "counts": [count for _, count in parts], "mhz": clock.mean(t0 / 1e9, t1 / 1e9)}


def table(found):
    """The product's energy at each of its times, and from it what the others take in the mixtures."""
    idle = next(row["watts"] for row in found if row["name"] == "pause")
    heavy = []
    for row in found:
        if row["name"] == "heavy":
            paused = sum(n * t for n, t in zip(row["counts"][1:], row["seconds"][1:]))
            heavy.append((row["seconds"][0], (row["watts"] * row["turn"] - idle * paused) / row["counts"][0]))
    times, joules = zip(*sorted(heavy))
    alone = {row["name"]: row for row in found if len(row["parts"]) == 1}
    print("| kernel | share | clock, MHz | x | exponent |\n|---|---|---|---|---|")
    for row in found:
        if row["parts"][0] != HEAVY or row["name"] == "heavy":
            continue
        first = alone[row["name"]]
        (product, kernel), (seconds_product, seconds) = row["counts"], row["seconds"]
        energy = (row["watts"] * row["turn"] - product * numpy.interp(seconds_product, times, joules)) / kernel
        clock = math.log(row["mhz"] / first["mhz"])
        if abs(clock) < LEAST:
            continue
        x = -math.log(seconds / first["seconds"][0]) / clock
        exponent = math.log((energy / seconds - idle) / (first["watts"] - idle)) / clock
        print(f"| {row['name']} | {kernel * seconds / row['turn']:.0%} | {first['mhz']:.0f} -> {row['mhz']:.0f} "
              f"| {x:.1f} | {exponent:.1f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--others", action="store_true", help="kernels to which the rule was not fitted")
    args = parser.parse_args()
    properties = torch.cuda.get_device_properties(0)
    uuid = str(properties.uuid)
    board = Board(uuid if uuid.startswith("GPU-") else "GPU-" + uuid)
    runs = kernels()
    if args.others:
        runs = {HEAVY: runs[HEAVY], **others()}
    took = {name: seconds_of(run) for name, run in runs.items()}
    pause = lambda: torch.cuda._sleep(200_000)
    took["pause"] = seconds_of(pause)
    found = []

    def add(name, parts):
        counts = [(run, max(1, round(share * PERIOD / took[part]))) for part, run, share in parts]
        row = {"name": name, "parts": [part for part, _, _ in parts], **measure(board, counts, args.seconds)}
        found.append(row)
        print(f"{name}: {row['watts']:.0f} W at {row['mhz']:.0f} MHz", file=sys.stderr, flush=True)
        with open(args.out, "w") as file:
            json.dump(found, file)

    add("pause", [("pause", pause, 1.0)])
    for share in (1.0, 0.85, 0.7, 0.55, 0.4, 0.25):
        parts = [(HEAVY, runs[HEAVY], share)]
        add("heavy", parts if share == 1 else [*parts, ("pause", pause, 1 - share)])
    for name, run in runs.items():
        if name == HEAVY:
            continue
        add(name, [(name, run, 1.0)])
        for share in (0.3, 0.55):
            add(name, [(HEAVY, runs[HEAVY], 1 - share), (name, run, share)])
    table(found)


if __name__ == "__main__":
    main()
