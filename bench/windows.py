#!/usr/bin/env python3
"""The cost of a window around each step of a Python program, compared with ZeusMonitor and counter reads.

    windows.py [--build BUILD] [--rounds 5] [--loop] [--pairs 120] [--turn 50] [--batches 1,64]
               [--json FILE]

Times one begin and end; contenders take turns. Without a GPU, the simulated NVML of BUILD replaces the
driver; its calls take as long as a real driver's. --loop (needs CUDA, timm): iterations of DeiT-B in
bf16 at batch 1 and 64 with a window around each. The speed of a launch-bound loop varies by
a third from second to second. So --turn plain iterations alternate with as many with windows, in either
order, --pairs times. The result is the median of the pairs' ratios with its 95 % interval from order
statistics (no distribution assumed). "Nothing", an empty `with`, shows the error of that method.
Contenders that are not installed are left out.
"""

import argparse
import contextlib
import ctypes
import json
import math
import os
import pathlib
import statistics
import sys
import time


def has_driver():
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
        return True
    except OSError:
        return False


def simulate(build):
    """Restarts this program with the simulated NVML, which must be in the loader's path before Python starts."""
    library = build / "tests/nvml_sim/lib"
    here = pathlib.Path(__file__).resolve().parent.parent
    scenario = here / "bench/h100_real_costs.json"
    os.environ["LD_LIBRARY_PATH"] = f"{library}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    os.environ["JOULEPROF_NVML_SCENARIO"] = str(scenario)
    os.environ["JOULEPROF_BENCH_SIMULATED"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])


def has_cuda():
    try:
        import torch

        return torch.cuda.is_available()
    except ImportError:
        return False


def contenders(monitor):
    """name -> (begin, end) of one window."""
    found = {}
    found["jouleprof, `with`"] = (None, lambda: monitor.window("step", sync_execution=False))
    if has_cuda():
        import torch

        torch.zeros(1, device="cuda")  # marks are for programs that use CUDA already
        found["jouleprof, `with`, the GPU's own marks"] = (None, lambda: monitor.window("marked"))
    found["jouleprof, begin_window / end_window"] = (
        lambda: monitor.begin_window("step", sync_execution=False),
        lambda: monitor.end_window("step"),
    )
    try:
        import pynvml

        pynvml.nvmlInit()
        gpu = pynvml.nvmlDeviceGetHandleByIndex(0)

        def read():
            return pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)

        found["two bare counter reads (nvidia-ml-py)"] = (read, read)
    except Exception as error:  # not installed, or no device
        print(f"nvidia-ml-py is left out: {error}", file=sys.stderr)
    try:
        from zeus.monitor import ZeusMonitor

        zeus = ZeusMonitor(gpu_indices=[0])
        found["ZeusMonitor"] = (
            lambda: zeus.begin_window("step", sync_execution=False),
            lambda: zeus.end_window("step", sync_execution=False),
        )
    except Exception as error:
        print(f"ZeusMonitor is left out: {error}", file=sys.stderr)
    return found


def time_pairs(begin, end, seconds=0.5):
    """Nanoseconds of each begin and end together."""
    times = []
    clock = time.perf_counter_ns
    until = clock() + int(seconds * 1e9)
    if begin is None:  # a `with` statement, many in a row: too short to be timed one by one
        window = end
        while clock() < until:
            first = clock()
            for _ in range(1000):
                with window():
                    pass
            times.append((clock() - first) / 1000)
        return times
    while clock() < until:
        first = clock()
        begin()
        end()
        times.append(clock() - first)
    return times


def pairs(rounds):
    import jouleprof

    monitor = jouleprof.Monitor()
    found = contenders(monitor)
    times = {name: [] for name in found}
    for _ in range(rounds):
        for name, (begin, end) in found.items():
            times[name] += time_pairs(begin, end)
    medians = {name: statistics.median(all) for name, all in times.items()}
    monitor.close()
    base = medians["jouleprof, `with`"]
    print("| one window | caller's time, median | 99th percentile | against jouleprof |")
    print("|---|---|---|---|")
    rows = {}
    for name, all in times.items():
        high = sorted(all)[int(0.99 * len(all))]
        rows[name] = {"median_nanoseconds": medians[name], "p99_nanoseconds": high}
        print(f"| {name} | {medians[name] / 1e3:.2f} us | {high / 1e3:.2f} us | "
              f"{medians[name] / base:,.1f} x |")
    return rows


def median_and_interval(values):
    """The median and its 95 % interval: the order statistics that bound it, by the binomial law."""
    values = sorted(values)
    n = len(values)
    tail, k = 0.5 ** n, 0  # the probability that at most k values lie below the median
    while tail + math.comb(n, k + 1) * 0.5 ** n < 0.025:
        k += 1
        tail += math.comb(n, k) * 0.5 ** n
    return statistics.median(values), values[k], values[n - 1 - k]


class OneEvent:
    """Records a CUDA event at its end, and never reads it."""

    def __init__(self):
        import torch

        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(64)]
        self._next = 0

    def __enter__(self):
        pass

    def __exit__(self, *_):
        self._next = (self._next + 1) % len(self._events)
        self._events[self._next].record()


def loop_variants(monitor, pairs):
    """name -> (a context manager's maker, pairs of turns)"""
    one_event = OneEvent()
    variants = {
        "jouleprof, the GPU's own marks (default)": (lambda: monitor.window("step"), pairs),
        "jouleprof, the host's stamps": (
            lambda: monitor.window("step", sync_execution=False), pairs),
        "jouleprof, synchronised": (
            lambda: monitor.window("step", sync_execution=True), max(8, pairs // 3)),
        "one CUDA event": (lambda: one_event, pairs),
        "nothing": (contextlib.nullcontext, pairs),
    }
    try:
        from zeus.monitor import ZeusMonitor

        zeus = ZeusMonitor(gpu_indices=[0])

        @contextlib.contextmanager
        def zeus_window():
            zeus.begin_window("step")
            yield
            zeus.end_window("step")

        variants["ZeusMonitor"] = (zeus_window, max(8, pairs // 6))
    except Exception as error:
        print(f"ZeusMonitor is left out: {error}", file=sys.stderr)
    return variants


def loop(pairs, batches, iterations):
    """A window around each iteration of an inference loop on the GPU."""
    import timm
    import torch

    import jouleprof

    monitor = jouleprof.Monitor()
    variants = loop_variants(monitor, pairs)
    model = timm.create_model("deit_base_patch16_224").cuda().bfloat16().eval()
    results = {}
    print("\n| DeiT-B, bf16, eager | batch | pairs | plain | with windows | slower by (95 %) | "
          "in time |\n|---|---|---|---|---|---|---|")
    for batch in batches:
        images = torch.randn(batch, 3, 224, 224, device="cuda", dtype=torch.bfloat16)

        def turn(window, images=images):
            """Seconds of an iteration."""
            torch.cuda.synchronize()
            first = time.perf_counter()
            if window is None:
                for _ in range(iterations):
                    model(images)
            else:
                for _ in range(iterations):
                    with window():
                        model(images)
            torch.cuda.synchronize()
            return (time.perf_counter() - first) / iterations

        with torch.inference_mode():
            for name, (window, count) in variants.items():
                turn(None), turn(window)
                rows = []
                for i in range(count):
                    if i % 2:
                        with_window, plain = turn(window), turn(None)
                    else:
                        plain, with_window = turn(None), turn(window)
                    rows.append((plain, with_window))
                ratio, low, high = median_and_interval([w / p - 1 for p, w in rows])
                apart, least, most = median_and_interval([w - p for p, w in rows])
                plain = statistics.median(p for p, _ in rows)
                slowed = statistics.median(w for _, w in rows)
                results[f"{name}, batch {batch}"] = {
                    "pairs_seconds": rows, "slower_ratio": [ratio, low, high],
                    "slower_seconds": [apart, least, most]}
                print(f"| {name} | {batch} | {count} | {1e3 * plain:.3f} ms | {1e3 * slowed:.3f} ms | "
                      f"{100 * ratio:+.2f} % ({100 * low:+.2f} to {100 * high:+.2f}) | "
                      f"{1e6 * apart:+.1f} us ({1e6 * least:+.1f} to {1e6 * most:+.1f}) |", flush=True)
    monitor.close()
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loop", action="store_true")
    parser.add_argument("--pairs", type=int, default=120, help="of turns in --loop")
    parser.add_argument("--turn", type=int, default=50, help="iterations of one, in --loop")
    parser.add_argument("--batches", default="1,64", help="of --loop")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    if not has_driver() and not os.environ.get("JOULEPROF_BENCH_SIMULATED"):
        simulate(args.build.resolve())
    if os.environ.get("JOULEPROF_BENCH_SIMULATED"):
        print("On a simulated NVML whose calls take as long as a driver's.\n")
    results = {"pairs": pairs(args.rounds)}
    if args.loop:
        results["loop"] = loop(args.pairs, [int(size) for size in args.batches.split(",")],
                               args.turn)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
