#!/usr/bin/env python3
"""What one second of sampling costs: jouleprof beside the usual ways of reading a GPU's power.

    sampling.py --tool build/release/src/apps/cli/jouleprof [--rounds 3] [--seconds 20]

Each contender runs for a short and for a long time; the difference of their CPU times, over the
difference of their durations, is the cost of a second, start-up left out. Contenders take turns, so
that a change of the machine's speed meets them all. Memory is the peak of the largest process, and
the sum over a contender's processes where it starts several.

The library that NVML is read from is the machine's own, or the one that the environment names
(JOULEPROF_NVML_LIBRARY for jouleprof, LD_LIBRARY_PATH for the others). Prints a Markdown table.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

POLL = """
import time, pynvml
pynvml.nvmlInit()
gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
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
    time.sleep({seconds})
    monitor.stop() if hasattr(monitor, "stop") else None
"""


def tree_memory(pid):
    """Proportional memory of a process and its descendants now, in bytes."""
    total = 0
    todo = [pid]
    while todo:
        current = todo.pop()
        try:
            for line in open(f"/proc/{current}/smaps_rollup"):
                if line.startswith("Pss:"):
                    total += int(line.split()[1]) * 1024
            for task in os.listdir(f"/proc/{current}/task"):
                todo += map(int, open(f"/proc/{current}/task/{task}/children").read().split())
        except OSError:
            pass
    return total


def run(arguments, seconds):
    """Runs a command; returns (CPU seconds of its whole tree, peak PSS bytes, wall seconds)."""
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, 1)
        os.dup2(devnull, 2)
        os.execvp(arguments[0], arguments)
    peak = 0
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            break
        if time.monotonic() - begin < seconds + 30:
            peak = max(peak, tree_memory(pid))
        time.sleep(0.5)
    if status != 0:
        sys.exit(f"{' '.join(arguments[:3])} ... ended with status {status}")
    return usage.ru_utime + usage.ru_stime, peak, time.monotonic() - begin


def contenders(tool):
    """name -> function of seconds that gives the command."""
    python = sys.executable

    def script(text):
        file = tempfile.NamedTemporaryFile("w", suffix=".py", delete=False)
        file.write(text)
        file.close()
        return file.name

    def jouleprof(seconds):
        folder = tempfile.mkdtemp()
        return [tool, "run", "-q", "--idle", "0s", "-o", f"{folder}/x.jprof", "--", "sleep",
                str(seconds)]

    found = {
        "jouleprof run": jouleprof,
        "nvidia-ml-py, polled every 1 ms": lambda s: [python, script(POLL.format(seconds=s))],
    }
    if os.system(f"{python} -c 'import zeus.monitor' >/dev/null 2>&1") == 0:
        found["Zeus PowerMonitor, 50 Hz"] = lambda s: [python, script(ZEUS.format(seconds=s))]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tool", required=True, type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=20)
    args = parser.parse_args()
    short = 3
    found = contenders(str(args.tool.resolve()))
    costs = {name: [] for name in found}
    peaks = {name: 0 for name in found}
    for _ in range(args.rounds):
        for name, command in found.items():
            cpu_short, _, wall_short = run(command(short), short)
            cpu_long, peak, wall_long = run(command(short + args.seconds), short + args.seconds)
            costs[name].append((cpu_long - cpu_short) / (wall_long - wall_short))
            peaks[name] = max(peaks[name], peak)
    base = statistics.median(costs["jouleprof run"])
    print("| what samples | CPU of one core | against jouleprof | memory |")
    print("|---|---|---|---|")
    for name in found:
        cost = statistics.median(costs[name])
        ratio = f"{cost / base:.1f} x" if base > 0 else ""
        print(f"| {name} | {cost * 100:.3f} % | {ratio} | {peaks[name] / 1e6:.0f} MB |")


if __name__ == "__main__":
    main()
