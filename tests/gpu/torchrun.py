#!/usr/bin/env python3
"""`jouleprof run` in every rank that torchrun starts, on two GPUs, against the boards' counters.

    torchrun.py JOULEPROF [--seconds 8] [--keep FOLDER]

Both ranks train with batches of different size (ranks.py). Twice:

- *one recorder*: the ranks share one recorder, which writes one file with both ranks in it;
- *apart*: each rank has a recorder of its own, so that each board is recorded twice. Merged, each
  board and time must count once.

A thread reads each board's energy counter at all of its updates meanwhile. The counter over the time of
the merged file is the reference. Its ends are interpolated, where the boards are at rest or held: a
fraction of a joule. Prints a Markdown table; exits with 1 where the file's energy and the counter differ by
more than the file's interval (repeatability) and 0.2 %, or ranks or files are missing.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import ranks
from counter_updates import CounterUpdates

HERE = pathlib.Path(__file__).resolve().parent


def uuids():
    listed = subprocess.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"],
                            capture_output=True, text=True, check=True)
    return listed.stdout.split()[:2]


def launched(tool, folder, seconds, apart):
    """The recordings of one job of two ranks."""
    rank = [sys.executable, str(HERE / "ranks.py"), "--seconds", str(seconds), "--as-rank", str(folder)]
    run = [tool, "run", "--kernels", "--layers", "-q", "-f", "--idle", "1s", "-o"]
    if apart:
        # Ranks that seem to be of different jobs do not share a recorder.
        script = 'TORCHELASTIC_RUN_ID=apart$RANK exec "$@"'
        run = ["sh", "-c", script, "sh", *run, str(folder / "job.%r.jprof")]
    else:
        run += [str(folder / "job.%h.jprof")]
    subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port",
                    "29518", "--no-python", *run, "--", *rank], check=True)
    return sorted(folder.glob("job.*.jprof"))


def recorded(recording, uuid):
    """The joules of a board in one recording; its memory is a part of it."""
    return next(d["energy_joules"] for d in recording.report()["domains"]
                if d.get("uuid") == uuid and d["domain"] == "gpu")


def case(tool, folder, seconds, apart, check):
    name = "apart" if apart else "one recorder"
    folder.mkdir(parents=True, exist_ok=True)
    boards = uuids()
    counters = [CounterUpdates(ranks.Board(uuid).joules, time.monotonic_ns) for uuid in boards]
    with counters[0], counters[1]:
        time.sleep(1)
        files = launched(tool, folder, seconds, apart)
        time.sleep(1)
    check(f"files of {name}", len(files) == (2 if apart else 1))
    merged = folder / "merged.jprof"
    subprocess.run([tool, "merge", *files, "-q", "-f", "-o", merged], check=True)
    job = json.loads(subprocess.run([tool, "report", merged, "--json"], capture_output=True, check=True).stdout)
    recordings = [ranks.Recording(tool, file) for file in files]
    begin, end = min(r.begin_ns for r in recordings), max(r.end_ns for r in recordings)
    check(f"ranks of {name}", sorted({r["rank"] for r in job["ranks"] if r["rank"] is not None}) == [0, 1])
    check(f"one host of {name}", len(job["hosts"]) == 1)
    domains = {d["identity"]: d for d in job["hosts"][0]["domains"] if d["counted"]}
    for i, (uuid, counter) in enumerate(zip(boards, counters)):
        domain = domains[uuid]
        true, found = counter.energy(begin, end), domain["energy_joules"]
        allowed = domain["repeatability_joules"] + 0.002 * true
        good = check(f"board {i} of {name}", abs(found - true) <= allowed)
        alone = ", ".join(f"{recorded(r, uuid):.2f}" for r in recordings)
        print(f"| {name} | {i} | {alone} J | {found:.2f} J | {true:.2f} J | {100 * (found / true - 1):+.2f} % | "
              f"+-{100 * allowed / true:.2f} % | {good} |", flush=True)
    return merged


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("tool")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the recordings")
    options = parser.parse_args()
    check = ranks.Checks()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        print("| recorders | board | each file | merged | counter | apart | interval | within |\n"
              "|---|---|---|---|---|---|---|---|", flush=True)
        for apart in (False, True):
            merged = case(options.tool, folder / ("apart" if apart else "one"), options.seconds, apart, check)
            sys.stdout.flush()
            subprocess.run([options.tool, "report", merged, "--by", "rank"], check=False)
    if check.failed:
        print("failed: " + "; ".join(check.failed))
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
