#!/usr/bin/env python3
"""What a real Prometheus makes of `jouleprof serve` on a real NVIDIA GPU, held against the board's own counter.

    serve_prometheus.py JOULEPROF OUT [--intervals 5,15] [--seconds 60]

One Prometheus scrapes the same service at all intervals at once. With 5 and 15 s it takes about 4 minutes.
1. A job of 20 s: its user's energy by increase().
2. A constant load: power by rate() over four intervals, asked for each second.
Needs nvcc (or --duty), and Prometheus on the PATH. Changes no setting of the card.
"""

import argparse
import contextlib
import ctypes
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time
import urllib.parse
import urllib.request

from owners import HERE, Service

SHORT = 20  # seconds of the job


class Counter:
    def __init__(self):
        self.nvml = ctypes.CDLL(os.environ.get("NVML_LIBRARY", "libnvidia-ml.so.1"))
        self.device = ctypes.c_void_p()
        assert self.nvml.nvmlInit_v2() == 0
        assert self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.device)) == 0

    def joules(self):
        value = ctypes.c_ulonglong()
        assert self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.device, ctypes.byref(value)) == 0
        return value.value / 1e3


@contextlib.contextmanager
def prometheus(folder, port, intervals):
    """A function that asks it; None: no answer yet."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": [{
        "job_name": f"every_{interval}", "scrape_interval": f"{interval}s", "scrape_timeout": f"{min(interval, 10)}s",
        "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]} for interval in intervals]}))
    own = port + 1
    process = subprocess.Popen(
        ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
         f"--web.listen-address=127.0.0.1:{own}"], stdout=subprocess.DEVNULL, stderr=open(folder / "log", "w"))

    def ask(query):
        url = f"http://127.0.0.1:{own}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        with contextlib.suppress(OSError):
            found = json.load(urllib.request.urlopen(url, timeout=10))["data"]["result"]
            return sum(float(one["value"][1]) for one in found) if found else None

    try:
        yield ask
    finally:
        process.kill()
        process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--intervals", default="5,15")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--duty", type=pathlib.Path, help="built from duty.cu, where there is no nvcc")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    duty = args.duty or args.out / "duty"
    if not args.duty:
        subprocess.run(["nvcc", "-O2", "-o", duty, HERE / "duty.cu"], check=True)
    intervals = [int(text) for text in args.intervals.split(",")]
    longest = max(intervals)
    counter = Counter()
    rates = {interval: [] for interval in intervals}
    service = Service(args.tool, "user,node")
    try:
        with prometheus(args.out / "prometheus", service.port, intervals) as ask:
            began = time.time()
            time.sleep(2 * longest + 2)  # scraped at rest
            before = counter.joules()
            subprocess.run([duty, str(SHORT), "100"], check=True, stdout=subprocess.DEVNULL)
            job = counter.joules() - before
            time.sleep(2 * longest + 5)
            user = {}
            for interval in intervals:
                series = (f'jouleprof_user_energy_joules_total{{job="every_{interval}",domain="gpu",uid="{os.getuid()}"}}'
                          f"[{time.time() - began:.0f}s]")
                user[interval] = {"increase": ask(f"increase({series})"),  # extrapolated beyond its samples
                                  "max_over_time": ask(f"max_over_time({series}) - min_over_time({series})")}
            load = subprocess.Popen([duty, str(args.seconds + 4 * longest + 8), "100"], stdout=subprocess.DEVNULL)
            time.sleep(5)
            seen = [(time.time(), counter.joules())]
            while load.poll() is None:
                time.sleep(1)
                seen.append((time.time(), counter.joules()))
                for interval in intervals:
                    past = [one for one in seen if one[0] <= seen[-1][0] - 4 * interval]
                    watts = past and ask(f'rate(jouleprof_energy_joules_total{{job="every_{interval}",domain="gpu",'
                                         f'device="gpu0"}}[{4 * interval}s])')
                    if watts and load.poll() is None:
                        board = (seen[-1][1] - past[-1][1]) / (seen[-1][0] - past[-1][0])
                        rates[interval].append(watts / board - 1)
    finally:
        service.process.terminate()
        service.process.wait()
    for interval, found in rates.items():
        power = (f"rate() of {len(found)} seconds {min(found):+.2%} to {max(found):+.2%}, median {statistics.median(found):+.2%} "
                 "of the board's counter" if found else f"no rate(); see {args.out}/prometheus/log")
        joules = ", ".join(f"{name}() {'no' if value is None else round(value, 1)} J" for name, value in user[interval].items())
        print(f"every {interval} s: {power}; a job of {SHORT} s, {job:.1f} J by the board, of its user {joules}", flush=True)
    (args.out / "serve_prometheus.json").write_text(json.dumps({"rates": rates, "user_joules": user, "job_joules": job},
                                                               indent=1))
    raise SystemExit(0 if all(rates.values()) else 1)


if __name__ == "__main__":
    main()
