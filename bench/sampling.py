#!/usr/bin/env python3
"""The cost of one second of sampling: jouleprof compared with the usual ways of reading a GPU's power.

    sampling.py --build build/release [--simulated] [--rounds 3] [--seconds 20] [--json FILE]

A contender makes a file when it samples. Some seconds later, without the start-up, the benchmark reads
the CPU time of the contender's process tree at the begin and end of --seconds. Contenders take turns, so
that a change of the machine's speed affects all of them. Memory is the maximum of the tree's sum of
proportional set sizes.

NVML is the machine's own. With --simulated it is this project's simulated NVML, whose calls take as much
CPU time as an H100's (scenario h100_real_costs): the figures are then the cost of the tools without a
device. Prints a Markdown table.
"""

import argparse
import ctypes
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

POLL = """
import time, pynvml
pynvml.nvmlInit()
gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
open({ready!r}, "w").close()
end = time.monotonic() + {seconds}
while time.monotonic() < end:
    pynvml.nvmlDeviceGetPowerUsage(gpu)
    time.sleep(0.001)
"""

ZEUS = """
import time
from zeus.monitor import PowerMonitor
if __name__ == "__main__":
    monitor = PowerMonitor(gpu_indices=[0], update_period=0.02)
    open({ready!r}, "w").close()
    time.sleep({seconds})
    monitor.stop() if hasattr(monitor, "stop") else None
"""


SOURCE = pathlib.Path(__file__).resolve().parent.parent
SETTLE_SECONDS = 4  # jouleprof first reads more often, to find the counter's update times
START_SECONDS = 60  # at most, until a contender samples


def simulate(build):
    """Replaces the machine's NVML by the simulated H100 for every contender."""
    simulator = build / "tests/nvml_sim"
    scenario = SOURCE / "bench/h100_real_costs.json"
    os.environ["JOULEPROF_NVML_SCENARIO"] = str(scenario)
    os.environ["JOULEPROF_NVML_LIBRARY"] = str(simulator / "libjouleprof_nvml_sim.so")
    os.environ["LD_LIBRARY_PATH"] = str(simulator / "lib")
    ctypes.CDLL(os.environ["JOULEPROF_NVML_LIBRARY"])  # it exists


def tree(pid):
    """A process and its descendants."""
    todo = [pid]
    while todo:
        current = todo.pop()
        try:
            for thread in pathlib.Path(f"/proc/{current}/task").iterdir():
                todo += map(int, (thread / "children").read_text().split())
        except OSError:
            continue
        yield current


def tree_memory(pid):
    """Proportional memory of the tree now, in bytes."""
    total = 0
    for process in tree(pid):
        try:
            for line in open(f"/proc/{process}/smaps_rollup"):
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
        except OSError:
            pass
    return total


def tree_cpu(pid):
    """CPU seconds of the tree so far, to the nanosecond (/proc counts in 10 ms)."""
    total = 0
    for process in tree(pid):
        try:
            total += time.clock_gettime((~process << 3) | 2)  # clock_getcpuclockid(3)
        except OSError:
            pass
    return total


def attempt(command, seconds):
    """Runs a contender; (CPU of one core, peak memory in bytes), or None where it did not start."""
    with tempfile.TemporaryDirectory() as folder:
        ready = pathlib.Path(folder) / "ready"
        process = subprocess.Popen(command(folder, str(ready), SETTLE_SECONDS + seconds + 2),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + START_SECONDS
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                process.kill()
                process.wait()
                return None
            time.sleep(0.05)
        time.sleep(SETTLE_SECONDS)
        before, begin = tree_cpu(process.pid), time.monotonic()
        peak = 0
        while time.monotonic() < begin + seconds:
            peak = max(peak, tree_memory(process.pid))
            time.sleep(1)
        ratio = (tree_cpu(process.pid) - before) / (time.monotonic() - begin)
        return (ratio, peak) if process.wait() == 0 else None


def run(name, command, seconds):
    """As attempt(). On a busy machine a tool may give up while it starts: so it is tried several times."""
    for _ in range(6):
        result = attempt(command, seconds)
        if result:
            return result
    return sys.exit(f"{name}: it does not run here")


def contenders(tool):
    """name -> function of a folder, a file to make when it samples, and seconds: the command."""

    def script(text):
        def command(folder, ready, seconds):
            file = pathlib.Path(folder) / "contender.py"
            file.write_text(text.format(ready=ready, seconds=seconds))
            return [sys.executable, str(file)]
        return command

    def jouleprof(folder, ready, seconds):
        return [str(tool), "run", "-q", "--idle", "0s", "-o", f"{folder}/x.jprof", "--",
                "sh", "-c", f": >'{ready}'; exec sleep {seconds}"]

    found = {"jouleprof run": jouleprof}
    if installed("pynvml"):
        found["nvidia-ml-py, polled every 1 ms"] = script(POLL)
    if installed("zeus.monitor"):
        found["Zeus PowerMonitor, 50 Hz"] = script(ZEUS)
    return found


def installed(module):
    command = [sys.executable, "-c", f"import {module}"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def measure(found, rounds, seconds):
    """name -> {"cpu_ratio": of one core, "cpu_ratios": of each round, "memory_bytes": ...}"""
    costs = {name: [] for name in found}
    peaks = {name: 0 for name in found}
    for _ in range(rounds):
        for name, command in found.items():
            ratio, peak = run(name, command, seconds)
            costs[name].append(ratio)
            peaks[name] = max(peaks[name], peak)
    base = statistics.median(costs["jouleprof run"])
    results = {}
    for name in found:
        cost = statistics.median(costs[name])
        results[name] = {
            "cpu_ratio": cost,
            "cpu_ratios": costs[name],
            "against_jouleprof_ratio": cost / base if base > 0 else None,
            "memory_bytes": peaks[name],
        }
    return results


def table(results):
    lines = ["| what samples | CPU of one core | against jouleprof | memory |", "|---|---|---|---|"]
    for name, r in results.items():
        against = r["against_jouleprof_ratio"]
        ratio = f"{against:.1f} x" if against is not None else ""
        lines.append(f"| {name} | {r['cpu_ratio'] * 100:.3f} % | {ratio} | "
                     f"{r['memory_bytes'] / 1e6:.0f} MB |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--tool", type=pathlib.Path, help="another jouleprof than the build's")
    parser.add_argument("--simulated", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    tool = (args.tool or args.build / "src/apps/cli/jouleprof").resolve()
    if args.simulated:
        simulate(args.build.resolve())
    results = measure(contenders(tool), args.rounds, args.seconds)
    if args.simulated:
        print("Simulated device: these are costs of the tools; no energy is measured.\n")
    print(table(results))
    if args.json:
        args.json.write_text(json.dumps({"simulated": args.simulated, "sampling": results}, indent=2))


if __name__ == "__main__":
    main()
