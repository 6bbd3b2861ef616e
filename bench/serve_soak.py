#!/usr/bin/env python3
"""Checks that `jouleprof serve` stays exact and small while processes come and go.

    bench/serve_soak.py BUILD [--minutes 60] [--processes-per-second 2] [--boards 4] [--prometheus] [--kill-seconds 0]

Starts the service with simulated boards, starts short processes, and scrapes every five seconds. At every scrape, for
every device and family: entities + outside + other + ended + new + unattributed + rest = energy, to the microjoule; no
counter is lower than before. With --prometheus, one scrapes it too, and each of the samples that it has stored is
checked in the same way. With --kill-seconds, the service is killed (SIGKILL) and started again after each such time.
Prints memory, descriptors, series, CPU time and what was written to its state ten times. Exits with 1 where a sum is not
exact, a counter fell, or memory grew by more than 3 MB after the first tenth.
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
import threading
import time
import urllib.parse
import urllib.request

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
    """A process that got the pid of one that ended begins at zero: a reset, as Prometheus takes it."""
    return [f"{key} fell by {before[key] - energy} uJ" for key, energy in after.items()
            if key[0].endswith("_total") and energy < before.get(key, 0)
            and (energy or key[0] != "jouleprof_process_energy_joules_total")]


class Prometheus:
    """One that scrapes the service; check() looks at what it has stored since the check before."""

    INTERVAL = 5

    def __init__(self, folder, port):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        folder.mkdir()
        (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": [{
            "job_name": "jouleprof", "scrape_interval": f"{self.INTERVAL}s", "scrape_timeout": f"{self.INTERVAL}s",
            "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}]}))
        self._process = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address=127.0.0.1:{self._port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._from, self._before = time.time(), {}
        self.scrapes = self.samples = 0

    def check(self):
        """Lines about what is wrong."""
        until = time.time() - 2 * self.INTERVAL  # what is stored by now
        query = f'{{__name__=~".+_joules_total|jouleprof_new_energy_joules"}}[{max(1, round(until - self._from))}s]'
        form = urllib.parse.urlencode({"query": query, "time": f"{until:.3f}"})
        url = f"http://127.0.0.1:{self._port}/api/v1/query?{form}"
        found = json.load(urllib.request.urlopen(url, timeout=120))["data"]["result"]
        scrapes = {}
        for series in found:
            labels = series["metric"]
            name = labels.pop("__name__")
            labels = tuple(sorted((key, value) for key, value in labels.items() if key not in ("instance", "job")))
            for when, number in series["values"]:
                if self._from < when <= until:
                    scrapes.setdefault(when, {})[name, labels] = microjoules(number)
        self._from = until
        wrong = []
        for when in sorted(scrapes):
            wrong += sums_that_differ(scrapes[when]) if self.scrapes > 1 else []  # the first tick divides nothing
            wrong += counters_that_fell(self._before, scrapes[when])
            self._before = scrapes[when]
            self.scrapes += 1
            self.samples += len(scrapes[when])
        return [f"Prometheus: {line}" for line in wrong]

    def end(self):
        self._process.kill()
        self._process.wait()


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
    parser.add_argument("--prometheus", action="store_true")
    parser.add_argument("--kill-seconds", type=float, default=0)
    options = parser.parse_args()
    failures = scrapes = 0
    prometheus = None
    churn = Churn(options.processes_per_second)
    with tempfile.TemporaryDirectory() as folder:
        scenario = pathlib.Path(folder) / "scenario.json"
        scenario.write_text(json.dumps({"devices": [
            {"generation": "hopper", "idle_watts": 80, "power": {"shape": "constant", "watts": 300},
             "processes": [{"pid": os.getpid(), "sm_utilisation_ratio": 0.2, "memory_mib": 100}]}
            for _ in range(options.boards)]}))
        def start(port):
            service = subprocess.Popen(
                [options.build / "src/apps/cli/jouleprof", "serve", "--listen", f"127.0.0.1:{port}", "--keep-ended", "1min",
                 "--state", f"{folder}/state.json", "--level", ",".join(FAMILIES)],
                stderr=subprocess.PIPE, text=True,
                env={**os.environ, "JOULEPROF_NVML_SCENARIO": str(scenario),
                     # Its boards go on while the service is away.
                     "JOULEPROF_NVML_EPOCH": str(epoch),
                     "JOULEPROF_NVML_LIBRARY": str(options.build / "tests/nvml_sim/libjouleprof_nvml_sim.so")})
            port = int(re.search(r"http://.*:(\d+)/", service.stderr.readline()).group(1))
            threading.Thread(target=service.stderr.read, daemon=True).start()
            return service, port, time.monotonic()

        epoch = time.time()
        service, port, started = start(0)
        kills = 0
        try:
            if options.prometheus:
                prometheus = Prometheus(pathlib.Path(folder) / "prometheus", port)
                time.sleep(3 * Prometheus.INTERVAL)
            def scraped():
                # Another address than Prometheus': a series is zero until both have seen it. A connection that is
                # kept would be closed where a check takes long.
                with socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.2", 0)) as connection:
                    return scrape(connection)[1]

            while "jouleprof_process_energy_joules_total{" not in scraped():
                time.sleep(0.5)  # the first tick divides nothing
            begin = time.monotonic()
            before, first_size, shown = {}, None, -1
            print("minutes  MB     descriptors  series  processes  CPU time of a core  written, MB/day", flush=True)
            while (passed := time.monotonic() - begin) < 60 * options.minutes:
                for _ in range(50):
                    churn.step()
                    time.sleep(0.1)
                if options.kill_seconds and time.monotonic() - started > options.kill_seconds:
                    service.kill()
                    service.wait()
                    service, _, started = start(port)
                    kills += 1
                    while "jouleprof_process_energy_joules_total{" not in scraped():
                        time.sleep(0.5)
                text = scraped()
                scrapes += 1
                series = counters(text)
                wrong = list(sums_that_differ(series))
                wrong += counters_that_fell(before, series)
                tenth = int(10 * passed / (60 * options.minutes))
                if prometheus and tenth > shown:
                    wrong += prometheus.check()
                failures += len(wrong)
                for line in wrong[:5]:
                    print(line, file=sys.stderr)
                before = series
                if tenth > shown:
                    shown = tenth
                    size = value(text, "process_resident_memory_bytes")
                    if tenth == 1:
                        first_size = size
                    descriptors = len(os.listdir(f"/proc/{service.pid}/fd"))
                    cpu = value(text, "process_cpu_seconds_total") / (time.monotonic() - started)
                    written = int(re.search(r"write_bytes: (\d+)", pathlib.Path(f"/proc/{service.pid}/io").read_text())[1])
                    written *= 86400 / (time.monotonic() - started)
                    print(f"{passed / 60:7.1f}  {size / 1e6:5.1f}  {descriptors:11}  "
                          f"{sum(not line.startswith('#') for line in text.splitlines()):6}  {churn.started:9}  "
                          f"{100 * cpu:17.2f} %  {written / 1e6:15.1f}", flush=True)
            if prometheus:
                wrong = prometheus.check()
                failures += len(wrong)
                print("\n".join(wrong[:5]), file=sys.stderr)
                print(f"Prometheus stored {prometheus.scrapes} scrapes, {prometheus.samples} samples of energy")
        finally:
            if prometheus:
                prometheus.end()
            service.kill()
            service.wait()
            churn.end()
    grown = size - first_size if first_size else 0
    print(f"{scrapes} scrapes, {kills} kills, {failures} sums that differ or counters that fell; memory grew by {grown / 1e6:.1f} MB")
    return 1 if failures or grown > MOST_GROWTH_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())
