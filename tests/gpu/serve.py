#!/usr/bin/env python3
"""`jouleprof serve` while a training job and two notebooks share a real NVIDIA GPU.

    serve.py JOULEPROF OUT [--seconds 200] [--tick 5s]

The job trains an MLP without a pause; each notebook holds a context and works for two of ten seconds. They are
Slurm jobs by their control groups where these can be made, and different users where not. Checks at each scrape
that all families sum to the GPU's energy, to the microjoule, and that no counter fell; prints the joules of each job
and user, the GPU's energy against the counter over the same seconds, and against the recording. Changes no
setting of the card. The service's CPU time is that after its first minute. Needs PyTorch and nvidia-ml-py.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

CGROUPS = pathlib.Path("/sys/fs/cgroup")
FIRST_USER, BETWEEN_SCRAPES, FIRST_MINUTE = 4001, 10, 65


def load(kind, seconds):
    """The work of one process: `train` or `notebook`."""
    import torch

    net = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(4)]).cuda().bfloat16()
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-6)
    data = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    end = time.time() + seconds
    while time.time() < end:
        if kind == "notebook" and time.time() % 10 > 2:
            time.sleep(0.05)
            continue
        net(data).float().pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()


def group_of(job):
    """A control group as Slurm makes it, or None."""
    for root in (CGROUPS, CGROUPS / "cpuacct", CGROUPS / "systemd"):
        folder = root / "system.slice/slurmstepd.scope" / f"job_{job}" / "step_0" / "user" / "task_0"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if (folder / "cgroup.procs").exists():
            return folder
    return None


def started(job, kind, seconds):
    group, user = group_of(job), FIRST_USER + job

    def enter():
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()))
        else:
            os.setgroups([])
            os.setuid(user)

    environment = dict(os.environ, HOME="/tmp", USER=f"user{user}", TORCHINDUCTOR_CACHE_DIR="/tmp")
    return subprocess.Popen([sys.executable, "-", kind, str(seconds)], stdin=open(__file__), env=environment,
                            preexec_fn=enter), group is not None


def counter():
    """(seconds since 1970, joules) at an update of the energy counter."""
    import pynvml

    pynvml.nvmlInit()
    device = pynvml.nvmlDeviceGetHandleByIndex(0)
    first = pynvml.nvmlDeviceGetTotalEnergyConsumption(device)
    while (now := pynvml.nvmlDeviceGetTotalEnergyConsumption(device)) == first:
        time.sleep(0.001)
    return time.time(), now / 1e3


def thread_times(pid):
    """Seconds of CPU time by thread, from the scheduler's clock."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return {task.name: int((task / "schedstat").read_text().split()[0]) / 1e9 for task in tasks}


def joules(series, name, **labels):
    """{all other labels: joules}."""
    found = {}
    for (family, pairs), energy in series.items():
        have = dict(pairs)
        if family == f"jouleprof_{name}_joules_total" and all(have.get(k) == v for k, v in labels.items()):
            found[tuple(sorted((k, v) for k, v in have.items() if k not in labels and k not in ("uuid", "device")))] = energy / 1e6
    return found


def main():
    sys.path[0] = str(pathlib.Path(__file__).resolve().parents[2] / "bench")  # which has another serve.py
    from serve import scrape, value
    from serve_soak import FAMILIES, counters, counters_that_fell, sums_that_differ

    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=200)
    parser.add_argument("--tick", help="of the service; without it, its default")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    records = options.out / "records"
    service = subprocess.Popen([options.tool, "serve", "--listen", "127.0.0.1:0", "--record", str(records),
                                "--level", ",".join(FAMILIES),
                                *(["--tick", options.tick] if options.tick else [])], stderr=subprocess.PIPE, text=True)
    said = []
    while not (found := re.search(r"127\.0\.0\.1:(\d+)", said[-1] if said else "")):
        said.append(service.stderr.readline())

    def asked(page="/metrics"):
        with socket.create_connection(("127.0.0.1", int(found.group(1)))) as connection:
            return scrape(connection, page)

    def window(edge):
        request = urllib.request.Request(f"http://127.0.0.1:{found.group(1)}/api/v1/windows/job/{edge}", method="POST")
        return json.loads(urllib.request.urlopen(request, timeout=30).read())

    started_at, cpu_before = time.monotonic(), None
    time.sleep(10)  # the GPU rests
    work = [started(17, "train", options.seconds - 40), started(18, "notebook", options.seconds - 20),
            started(19, "notebook", options.seconds - 20)]
    family = "job" if work[0][1] else "user"
    begin, failures, before = time.monotonic(), 0, {}
    times = []
    first_counter = counter()
    window("begin")
    while time.monotonic() < begin + options.seconds:
        time.sleep(BETWEEN_SCRAPES)
        took, text = asked()
        times.append(took)
        now, cpu = time.monotonic(), value(text, "process_cpu_seconds_total")
        if cpu_before is None and now > started_at + FIRST_MINUTE:
            cpu_before = now, cpu, thread_times(service.pid)
        series = counters(text)
        wrong = list(sums_that_differ(series)) + counters_that_fell(before, series)
        failures += len(wrong)
        print("".join(f"{line}\n" for line in wrong[:3]), end="", file=sys.stderr)
        before = series
        threads = thread_times(service.pid)
        snapshot = json.loads(asked("/api/v1/snapshot")[1])
    last_counter = counter()
    (gpu,) = (device for device in window("end")["devices"] if device["domain"] == "gpu")
    (options.out / "last.txt").write_text(text)
    (options.out / "last.json").write_text(json.dumps(snapshot))
    seconds, polled = (b - a for a, b in zip(first_counter, last_counter))
    print(f"divided by {family}; {len(times)} scrapes, {failures} failures; "
          f"median {1e3 * sorted(times)[len(times) // 2]:.2f} ms")
    print(f"GPU, {seconds:.1f} s: {gpu['energy_joules']:.1f} J by the service's window, {polled:.1f} J by the counter "
          f"({100 * (gpu['energy_joules'] / polled - 1):+.2f} %)")
    for name in (family, "process", "user"):
        for labels, energy in sorted(joules(series, f"{name}_energy", domain="gpu").items(), key=lambda pair: -pair[1])[:8]:
            print(f"  {name} {dict(labels)}: {energy:.1f} J")
    for name in ("unattributed_energy", "energy"):
        for labels, energy in joules(series, name, domain="gpu").items():
            print(f"  {name} {dict(labels)}: {energy:.1f} J")
    if cpu_before is not None and now > cpu_before[0]:
        seconds = now - cpu_before[0]
        print(f"CPU {100 * (cpu - cpu_before[1]) / seconds:.3f} % of a core in {seconds:.0f} s; by thread: "
              + ", ".join(f"{thread} {100 * (took - cpu_before[2].get(thread, 0)) / seconds:.3f} %"
                          for thread, took in threads.items()))
    print(f"{value(text, 'process_resident_memory_bytes') / 1e6:.1f} MB resident")
    service.send_signal(signal.SIGTERM)
    print(f"exit status {service.wait()}")
    for process, _ in work:
        process.wait()
    for file in sorted(records.glob("*.jprof")):
        report = json.loads(subprocess.run([options.tool, "report", str(file), "--json"], capture_output=True,
                                           text=True, check=True).stdout)
        for domain in report["domains"]:
            if domain["domain"] == "gpu":
                served = sum(joules(series, "energy", domain="gpu").values())
                print(f"{file.name}: {domain['energy_joules']:.3f} J recorded, {served:.3f} J at the last scrape")
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[0] == "-":
        load(sys.argv[1], float(sys.argv[2]))
    else:
        sys.exit(main())
