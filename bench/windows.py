#!/usr/bin/env python3
"""What a window around each step costs a Python program, beside ZeusMonitor and bare counter reads.

    windows.py [--build BUILD] [--rounds 5] [--loop] [--json FILE]

Times one begin and end, contenders taking turns. Without a GPU the simulated NVML of BUILD stands in,
with calls that take as long as a real driver's. --loop (needs CUDA, timm): iterations of DeiT-B in
bf16 at batch 1 and 64 with a window around each. Contenders that are not installed are left out.
"""

import argparse
import ctypes
import json
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
    """Restarts this program on the simulated NVML, which must be found before Python starts."""
    library = build / "src/apps/nvml_sim/lib"
    here = pathlib.Path(__file__).resolve().parent.parent
    scenario = here / "src/apps/nvml_sim/scenarios/h100_real_costs.json"
    os.environ["LD_LIBRARY_PATH"] = f"{library}:{os.environ.get('LD_LIBRARY_PATH', '')}"
    os.environ["JOULEPROF_NVML_SCENARIO"] = str(scenario)
    os.environ["JOULEPROF_BENCH_SIMULATED"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])


def contenders(monitor):
    """name -> (begin, end) of one window."""
    found = {}
    found["jouleprof, `with`"] = (None, monitor)
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
        print(f"no nvidia-ml-py here: {error}", file=sys.stderr)
    try:
        from zeus.monitor import ZeusMonitor

        zeus = ZeusMonitor(gpu_indices=[0])
        found["ZeusMonitor"] = (
            lambda: zeus.begin_window("step", sync_execution=False),
            lambda: zeus.end_window("step", sync_execution=False),
        )
    except Exception as error:
        print(f"no ZeusMonitor here: {error}", file=sys.stderr)
    return found


def time_pairs(begin, end, seconds=0.5):
    """Nanoseconds of each begin and end together."""
    times = []
    clock = time.perf_counter_ns
    until = clock() + int(seconds * 1e9)
    if begin is None:  # a `with` statement, many in a row: too short to be timed one by one
        monitor = end
        while clock() < until:
            first = clock()
            for _ in range(1000):
                with monitor.window("step", sync_execution=False):
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

    monitor = jouleprof.Monitor(cuda=False)
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


def loop(rounds, iterations=50):
    """A window around each iteration of an inference loop on the GPU."""
    import timm
    import torch

    import jouleprof

    monitor = jouleprof.Monitor()
    variants = {
        "no window": None,
        "jouleprof, the GPU's own marks (default)": lambda: monitor.window("step"),
        "jouleprof, synchronised": lambda: monitor.window("step", sync_execution=True),
    }
    try:
        from zeus.monitor import ZeusMonitor

        zeus = ZeusMonitor(gpu_indices=[0])
    except Exception as error:
        zeus = None
        print(f"no ZeusMonitor here: {error}", file=sys.stderr)
    if zeus is not None:
        variants["ZeusMonitor"] = "zeus"
    model = timm.create_model("deit_base_patch16_224").cuda().bfloat16().eval()
    results = {}
    print("\n| DeiT-B, bf16, eager | batch | an iteration | slower by |")
    print("|---|---|---|---|")
    for batch in (1, 64):
        images = torch.randn(batch, 3, 224, 224, device="cuda", dtype=torch.bfloat16)
        times = {name: [] for name in variants}

        def iterate(variant, count, images=images):
            for _ in range(count):
                if variant is None:
                    model(images)
                elif variant == "zeus":
                    zeus.begin_window("step")
                    model(images)
                    zeus.end_window("step")
                else:
                    with variant():
                        model(images)

        with torch.inference_mode():
            iterate(None, 20)
            for turn in range(rounds):
                names = list(variants)
                for name in names[turn % len(names):] + names[:turn % len(names)]:
                    iterate(variants[name], 10)
                    torch.cuda.synchronize()
                    first = time.perf_counter()
                    iterate(variants[name], iterations)
                    torch.cuda.synchronize()
                    times[name].append((time.perf_counter() - first) / iterations)
        plain = statistics.median(times["no window"])
        for name, all in times.items():
            median = statistics.median(all)
            results[f"{name}, batch {batch}"] = median
            print(f"| {name} | {batch} | {1e3 * median:.3f} ms | {100 * (median / plain - 1):+.1f} % |")
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--loop", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    if not has_driver() and not os.environ.get("JOULEPROF_BENCH_SIMULATED"):
        simulate(args.build.resolve())
    if os.environ.get("JOULEPROF_BENCH_SIMULATED"):
        print("On a simulated NVML whose calls take as long as a driver's.\n")
    results = {"pairs": pairs(args.rounds)}
    if args.loop:
        results["loop"] = loop(args.rounds)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
