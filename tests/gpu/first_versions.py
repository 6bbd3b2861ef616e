#!/usr/bin/env python3
"""What users of GPUPP and of Zeus's first versions run, on a real GPU, through our classes of the same names.

    first_versions.py [FOLDER] [--examples 1,2]

Runs examples/layers.py and ZeusProfilingService with monitor_log_dir. Prints a line for each row of the tables: RESOLVED
with joules and interval, or not. Of the service: its energy, and the integral of the power that it logged. Exits with 1
where an example fails or has no row, or where both energies differ by more than 10 %. Examples 1 and 2 and the service
take less than a minute and need torch only; 3 and 4 need transformers. Needs jouleprof installed, or
PYTHONPATH=BUILD/python with JOULEPROF_TOOL and JOULEPROF_INJECT.
"""

import argparse
import csv
import datetime
import pathlib
import subprocess
import sys
import tempfile
import time

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "layers.py"


def rows_of(number, folder):
    """The rows of one of GPUPP's examples; an empty list where it failed."""
    place = folder / str(number)
    place.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, EXAMPLE, str(number)], cwd=place, capture_output=True, text=True)
    print(f"example {number}: exit status {done.returncode} after {time.perf_counter() - begin:.1f} s", flush=True)
    (place / "output.txt").write_text(done.stdout + done.stderr)
    if done.returncode != 0:
        print(done.stderr[-2000:])
        return []
    kind = "kernel" if number % 2 == 0 else "layer"
    with open(place / f"{kind}_demo_profile.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def shown(row):
    name = (row.get("layer_name") or row.get("kernel_name"))[:60]
    if row["resolvable"] != "True" or not row["energy_j"]:
        return f"  not resolved  {name}: {row.get('reason') or 'no energy of its own'}"
    return (f"  RESOLVED      {name}: {float(row['energy_j']):.4g} J, 95 %: {float(row['energy_low_j']):.4g} to "
            f"{float(row['energy_high_j']):.4g}, {row['provenance']}")


def service(folder):
    """True where the service and its log agree."""
    import torch
    from jouleprof.zeus import analyze
    from jouleprof.zeus.profiling import ZeusProfilingService

    zeus = ZeusProfilingService(gpu_indices=[0], monitor_log_dir=str(folder), monitor_log_prefix="train")
    a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
    time.sleep(1)
    zeus.push_window()
    begin = time.time()
    while time.time() - begin < 4:
        for _ in range(20):
            a @ a
        torch.cuda.synchronize()
    result = zeus.pop_window()
    result.wait()
    time.sleep(0.5)
    log = folder / "train+gpu0.power.csv"
    with open(log, newline="", encoding="utf-8") as file:
        first = next(csv.DictReader(file))["Time"]
    offset = begin - datetime.datetime.fromisoformat(first).replace(tzinfo=datetime.timezone.utc).timestamp()
    logged = analyze.energy(str(log), offset, offset + result.time)
    ratio = result.energy[0] / logged
    print(f"service: {result.time:.3f} s, {result.energy[0]:.1f} J; its log {log.name} has {logged:.1f} J of that time: "
          f"{100 * (ratio - 1):+.1f} %", flush=True)
    return abs(ratio - 1) < 0.1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=tempfile.mkdtemp())
    parser.add_argument("--examples", default="1,2")
    options = parser.parse_args()
    folder = pathlib.Path(options.folder)
    failed = False
    for number in map(int, filter(None, options.examples.split(","))):
        rows = rows_of(number, folder)
        failed = failed or not rows
        for row in rows:
            print(shown(row))
        resolved = sum(row["resolvable"] == "True" for row in rows)
        print(f"  {resolved} of {len(rows)} rows resolved", flush=True)
    failed = not service(folder) or failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
