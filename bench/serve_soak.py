#!/usr/bin/env python3
"""Checks that `jouleprof serve` stays exact and small while processes come and go.

    bench/serve_soak.py BUILD [--minutes 60] [--processes-per-second 2] [--boards 4]

Starts the service with simulated boards, starts short processes, and scrapes every five seconds. At every scrape, for
every device and family: entities + outside + other + ended + new + unattributed + rest = energy, to the microjoule; no
counter is lower than before. Prints memory, descriptors, series and CPU time ten times. Exits with 1 where a sum is
not exact, a counter fell, or memory grew by more than 3 MB after the first tenth.
"""

import argparse
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time

from serve import scrape, value

MOST_GROWTH_BYTES = 3e6
FAMILIES = ("process", "container", "pod", "job", "unit", "user")
LINE = re.compile(r"^(\w+_joules_total|jouleprof_new_energy_joules)\{(.*)\} (\S+)$", re.M)
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def microjoules(text):
    whole, _, part = text.partition(".")
    return int(whole + (part + "000000")[:6])


def counters(text):
    """{(name, labels): microjoules}, and the one gauge that belongs to their sums."""
    return {(name, tuple(sorted(LABEL.findall(labels)))): microjoules(number)
            for name, labels, number in LINE.findall(text)}


def sums_that_differ(series):
    """Lines about devices and families whose parts are not the whole."""
    def by_device(name, keep=lambda labels: True):
        out = {}
        for (found, labels), energy in series.items():
            labels = dict(labels)
            if found == f"jouleprof_{name}_joules_total" and keep(labels):
                key = labels["domain"], labels["device"]
                out[key] = out.get(key, 0) + energy
        return out

    def of_new(device, family):
        return sum(energy for (found, labels), energy in series.items() if found == "jouleprof_new_energy_joules"
                   and {("domain", device[0]), ("device", device[1]), ("family", family)} <= set(labels))

    whole = by_device("energy")
    rest = by_device("energy", lambda labels: labels.get("level") == "rest")
    unattributed = by_device("unattributed_energy")
    for family in FAMILIES:
        divided = by_device(f"{family}_energy")
        if not divided:
            yield f"there are no series of the family {family}"
        for device, parts in divided.items():
            found = parts + of_new(device, family) + unattributed.get(device, 0) + rest.get(device, 0)
            if found != whole[device]:
                yield f"{family} of {device}: {found} of {whole[device]} uJ"


def counters_that_fell(before, after):
    return [f"{key} fell by {before[key] - energy} uJ" for key, energy in after.items()
            if key[0].endswith("_total") and energy < before.get(key, 0)]


class Churn:
    """Short processes, some of them with children."""

    def __init__(self, rate):
        self._pause, self._next, self._running, self.started = 1 / rate, time.monotonic(), [], 0

    def step(self):
        while time.monotonic() >= self._next:
            self._next += self._pause
            work = f"i=0; while [ $i -lt {2000 * (self.started % 7)} ]; do i=$((i+1)); done; sleep {self.started % 11}"
            self._running.append(subprocess.Popen(["sh", "-c", work]))
            self.started += 1
        self._running = [process for process in self._running if process.poll() is None]

    def end(self):
        for process in self._running:
            process.kill()
            process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--processes-per-second", type=float, default=2)
    parser.add_argument("--boards", type=int, default=4)
    options = parser.parse_args()
    failures = scrapes = 0
    churn = Churn(options.processes_per_second)
    with tempfile.TemporaryDirectory() as folder:
        scenario = pathlib.Path(folder) / "scenario.json"
        scenario.write_text(json.dumps({"devices": [
            {"generation": "hopper", "idle_watts": 80, "power": {"shape": "constant", "watts": 300},
             "processes": [{"pid": os.getpid(), "sm_utilisation_ratio": 0.2, "memory_mib": 100}]}
            for _ in range(options.boards)]}))
        service = subprocess.Popen(
            [options.build / "src/apps/cli/jouleprof", "serve", "--listen", "127.0.0.1:0", "--keep-ended", "1min",
             "--level", ",".join(FAMILIES)],
            stderr=subprocess.PIPE, text=True,
            env={**os.environ, "JOULEPROF_NVML_SCENARIO": str(scenario),
                 "JOULEPROF_NVML_LIBRARY": str(options.build / "tests/nvml_sim/libjouleprof_nvml_sim.so")})
        try:
            connection = socket.create_connection(
                ("127.0.0.1", int(re.search(r":(\d+)/", service.stderr.readline()).group(1))))
            while "jouleprof_process_energy_joules_total{" not in scrape(connection)[1]:
                time.sleep(0.5)  # the first tick divides nothing
            begin = time.monotonic()
            before, first_size, shown = {}, None, -1
            print("minutes  MB     descriptors  series  processes  CPU time of a core", flush=True)
            while (passed := time.monotonic() - begin) < 60 * options.minutes:
                for _ in range(50):
                    churn.step()
                    time.sleep(0.1)
                text = scrape(connection)[1]
                scrapes += 1
                series = counters(text)
                wrong = list(sums_that_differ(series))
                wrong += counters_that_fell(before, series)
                failures += len(wrong)
                for line in wrong[:5]:
                    print(line, file=sys.stderr)
                before = series
                tenth = int(10 * passed / (60 * options.minutes))
                if tenth > shown:
                    shown = tenth
                    size = value(text, "process_resident_memory_bytes")
                    if tenth == 1:
                        first_size = size
                    descriptors = len(os.listdir(f"/proc/{service.pid}/fd"))
                    cpu = value(text, "process_cpu_seconds_total") / (passed + 5)
                    print(f"{passed / 60:7.1f}  {size / 1e6:5.1f}  {descriptors:11}  "
                          f"{sum(not line.startswith('#') for line in text.splitlines()):6}  {churn.started:9}  "
                          f"{100 * cpu:.2f} %", flush=True)
        finally:
            service.kill()
            service.wait()
            churn.end()
    grown = size - first_size if first_size else 0
    print(f"{scrapes} scrapes, {failures} sums that differ or counters that fell; memory grew by {grown / 1e6:.1f} MB")
    return 1 if failures or grown > MOST_GROWTH_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
