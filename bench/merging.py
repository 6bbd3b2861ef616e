#!/usr/bin/env python3
"""Time and memory of `jouleprof merge` with many recordings, and of the report of the merged file.

    merging.py [--build BUILD] [--files 1024] [--ranks 8] [--seconds 2] [--rounds 3] [--json FILE]

Records one run of --seconds on a simulated GPU and copies it --files times. Each copy has a rank of its own, and
--ranks copies are of one host. The goal is 10 s and memory that does not grow with the number of files.
"""

import argparse
import json
import os
import pathlib
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time


def timed(command):
    """Wall time in seconds, and peak resident memory in bytes."""
    begin = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{' '.join(map(str, command[:3]))} failed with status {child.returncode}")
    return time.monotonic() - begin, usage.ru_maxrss * 1024


def template(tool, build, folder, seconds):
    """The recording that all others are copies of."""
    file = folder / "template.jprof"
    environment = {**os.environ, "JOULEPROF_NVML_LIBRARY": str(build / "tests/nvml_sim/libjouleprof_nvml_sim.so")}
    subprocess.run([tool, "run", "-q", "--idle", "0s", "-o", file, "--", "sleep", str(seconds)],
                   check=True, env=environment)
    return file


def copies(file, folder, count, ranks):
    made = []
    for n in range(count):
        made.append(folder / f"rank{n}.jprof")
        shutil.copyfile(file, made[-1])
        with sqlite3.connect(made[-1]) as db:
            db.execute("UPDATE identity SET rank = ?, boot_id = ?", (n, f"boot{n // ranks}"))
            db.execute("UPDATE run SET host = ?", (f"node{n // ranks}",))
        db.close()
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"))
    parser.add_argument("--files", type=int, default=1024)
    parser.add_argument("--ranks", type=int, default=8, help="recordings of one host")
    parser.add_argument("--seconds", type=float, default=2, help="length of a recording")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    build = args.build.resolve()
    tool = build / "src/apps/cli/jouleprof"
    results = {}
    print("| files | size of each | step | time, median | peak memory |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        file = template(tool, build, folder, args.seconds)
        size = file.stat().st_size
        for count in sorted({max(1, args.files // 8), args.files}):
            files = copies(file, folder, count, args.ranks)
            job = folder / f"job{count}.jprof"
            steps = {"merge": [tool, "merge", "-q", "-f", *files, "-o", job],
                     "report": [tool, "report", job, "--json"]}
            for step, command in steps.items():
                rounds = [timed(command) for _ in range(args.rounds)]
                seconds = statistics.median(t for t, _ in rounds)
                memory = max(m for _, m in rounds)
                results[f"{step}_{count}"] = {"seconds": seconds, "peak_bytes": memory}
                print(f"| {count} | {size / 1e3:.0f} kB | {step} | {seconds:.2f} s | {memory / 1e6:.0f} MB |", flush=True)
    if args.json:
        args.json.write_text(json.dumps({"file_bytes": size, **results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
