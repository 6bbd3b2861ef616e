#!/usr/bin/env python3
"""`jouleprof serve` against a real GPU's energy counter: at several intervals of scrapes, and over a restart.

    serve_scrapes.py JOULEPROF OUT [--intervals 5,10,15,30] [--load]

Scrapes at each interval for at least four of them and 60 s, and reads the board's counter at each scrape. Prints how far
the power of the service's counter is from that of the board's, over each span of four intervals (the counter is up to
0.1 s old at either end), and the CPU time of the service. Then kills the service, starts it again after 6 s, and prints
the energy of both counters over that time. `--load`: while a program trains an MLP. Changes no setting of the card.
Needs nvidia-ml-py, and PyTorch for `--load`.
"""

import argparse
import json
import pathlib
import re
import subprocess
import time
import urllib.request

from serve import started  # of this folder

SHORTEST_SECONDS, SPAN, PAUSE_SECONDS = 60, 4, 6


def value(text, name):
    return float(re.search(rf"^{name} (\S+)$", text, re.M).group(1))


def board_joules():
    import pynvml

    pynvml.nvmlInit()
    return pynvml.nvmlDeviceGetTotalEnergyConsumption(pynvml.nvmlDeviceGetHandleByIndex(0)) / 1e3


class Service:
    def __init__(self, tool, state):
        self.process = subprocess.Popen(
            [tool, "serve", "--listen", "127.0.0.1:0", "--level", "node", "--state", str(state)],
            stderr=subprocess.PIPE, text=True)
        line = ""
        while not (found := re.search(r"127\.0\.0\.1:(\d+)", line)):
            line = self.process.stderr.readline()
        self.port = int(found.group(1))

    def figures(self):
        """(seconds, joules by the service, joules by the board, text), as one moment."""
        begin = time.time()
        board = board_joules()
        text = urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=30).read().decode()
        energy = sum(float(number) for number in re.findall(
            r'^jouleprof_energy_joules_total\{domain="gpu",device="gpu0"[^}]*\} (\S+)$', text, re.M))
        return begin, energy, board, text


def at_interval(service, interval):
    found = []
    begin = time.monotonic()
    count = max(SPAN + 1, int(SHORTEST_SECONDS / interval) + 1)
    for number in range(count):
        time.sleep(max(0, begin + number * interval - time.monotonic()))
        found.append(service.figures())
    spans = [(b[1] - a[1]) / (b[2] - a[2]) - 1 for a, b in zip(found, found[SPAN:])]
    seconds = found[-1][0] - found[0][0]
    cpu = value(found[-1][3], "process_cpu_seconds_total") - value(found[0][3], "process_cpu_seconds_total")
    print(f"every {interval:g} s: {(found[-1][2] - found[0][2]) / seconds:.1f} W by the board; over {len(spans)} spans "
          f"{100 * min(spans):+.2f} to {100 * max(spans):+.2f} %; CPU {100 * cpu / seconds:.3f} % of a core", flush=True)
    return {"interval": interval, "spans": spans, "cpu_ratio": cpu / seconds, "points": [f[:3] for f in found]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--intervals", default="5,10,15,30")
    parser.add_argument("--load", action="store_true")
    options = parser.parse_args()
    intervals = [float(word) for word in options.intervals.split(",")]
    options.out.mkdir(parents=True, exist_ok=True)
    length = 100 + sum(max(SPAN * interval, SHORTEST_SECONDS) for interval in intervals)
    work = started(17, "train", length)[0] if options.load else None
    state = options.out / "state.json"
    service = Service(options.tool, state)
    time.sleep(70)  # its first minute is livelier
    result = {"intervals": [at_interval(service, interval) for interval in intervals]}
    before = service.figures()
    service.process.kill()
    service.process.wait()
    time.sleep(PAUSE_SECONDS)
    service = Service(options.tool, state)
    time.sleep(8)
    after = service.figures()
    gap = sum(float(number) for number in re.findall(r"^jouleprof_gap_joules_total\{[^}]*\} (\S+)$", after[3], re.M))
    print(f"restart, {after[0] - before[0]:.1f} s: {after[1] - before[1]:.1f} J by the service, of it {gap:.1f} J between "
          f"the two; {after[2] - before[2]:.1f} J by the board")
    result["restart"] = {"before": before[:3], "after": after[:3], "gap_joules": gap}
    (options.out / "serve_scrapes.json").write_text(json.dumps(result, indent=1) + "\n")
    service.process.kill()
    if work is not None:
        work.kill()


if __name__ == "__main__":
    main()
