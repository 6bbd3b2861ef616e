#!/usr/bin/env python3
"""What a real Prometheus makes of `jouleprof serve` on a real NVIDIA GPU, held against the board's own counter.

    serve_prometheus.py JOULEPROF OUT [--intervals 5,15] [--seconds 60]

1. A constant load: power by rate() over four intervals, asked for each second.
2. A job of 20 s that begins and ends between: its user's energy by increase().
Needs nvcc, and Prometheus on the PATH. Changes no setting of the card.
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
def prometheus(folder, port, interval):
    """A function that asks it; None: no answer yet."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": [{
        "job_name": "jouleprof", "scrape_interval": f"{interval}s", "scrape_timeout": f"{min(interval, 5)}s",
        "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}]}))
    own = port + 1
    process = subprocess.Popen(
        ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
         f"--web.listen-address=127.0.0.1:{own}"], stdout=subprocess.DEVNULL, stderr=open(folder / "log", "w"))

    def ask(query, at=None):
        form = {"query": query, **({"time": f"{at:.3f}"} if at else {})}
        url = f"http://127.0.0.1:{own}/api/v1/query?{urllib.parse.urlencode(form)}"
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
    counter = Counter()
    results = []
    for interval in map(int, args.intervals.split(",")):
        service = Service(args.tool, "user,node")
        with prometheus(args.out / f"prometheus_{interval}", service.port, interval) as ask:
            time.sleep(3 * interval)  # scraped at rest
            before = counter.joules()
            subprocess.run([duty, str(SHORT), "100"], check=True, stdout=subprocess.DEVNULL)
            job = counter.joules() - before
            time.sleep(4 * interval + 10)
            span = f"{SHORT + 8 * interval + 20}s"
            user = ask(f'increase(jouleprof_user_energy_joules_total{{domain="gpu",uid="{os.getuid()}"}}[{span}])')
            load = subprocess.Popen([duty, str(args.seconds + 5 * interval + 5), "100"], stdout=subprocess.DEVNULL)
            time.sleep(5)
            seen, rates = [(time.time(), counter.joules())], []
            while load.poll() is None:
                time.sleep(1)
                seen.append((time.time(), counter.joules()))
                past = [one for one in seen if one[0] <= seen[-1][0] - 4 * interval]
                watts = ask(f'rate(jouleprof_energy_joules_total{{domain="gpu",device="gpu0"}}[{4 * interval}s])')
                if past and watts and load.poll() is None:
                    board = (seen[-1][1] - past[-1][1]) / (seen[-1][0] - past[-1][0])
                    rates.append(watts / board - 1)
        service.end()
        if not rates:
            raise SystemExit(f"every {interval} s: Prometheus gave no rate; see {args.out}/prometheus_{interval}/log")
        results.append({"interval": interval, "rates": rates, "user_joules": user, "job_joules": job})
        print(f"every {interval} s: rate() of {len(rates)} seconds {min(rates):+.2%} to {max(rates):+.2%}, median "
              f"{statistics.median(rates):+.2%} of the board's counter; a job of {SHORT} s, {job:.1f} J by the board: "
              f"increase() {user if user is None else round(user, 1)} J of its user", flush=True)
    (args.out / "serve_prometheus.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
