#!/usr/bin/env python3
"""Two ranks under torchrun on two GPUs, with batches of different size: checks the figures by rank.

    ranks.py JOULEPROF [--seconds 20] [--keep FOLDER]

Records `torchrun --nproc-per-node 2` of this file with `jouleprof run --kernels --layers`. Each rank
trains a small transformer (DistributedDataParallel, NCCL), the second with twice the batch; then it
meets the other in all-reduces before which the second sleeps on its GPU, for a time that CUDA events
measure. Each rank reads its board's energy counter at updates, before and after both parts. Compared:

- the energy of each board with its own counter;
- the views of each board with one another: kernels, layers, phases and processes sum to the same
  microjoules, and each board has the processes of its own rank only;
- the waiting of the first rank in the second part with the sleep of the second.

Needs PyTorch and two GPUs; reads NVML through ctypes. Prints Markdown; exits with 1 where a
comparison fails.
"""

import argparse
import ctypes
import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import time

BATCHES = (16, 32)
SLEEP_SECONDS = 0.05
SLEEPS = 100
VISIBLE_LATE = 0.016  # seconds until an update of the counter is visible, at most


class Board:
    """A GPU's energy counter, by UUID."""

    def __init__(self, uuid):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.check(self.nvml.nvmlInit_v2())
        self.handle = ctypes.c_void_p()
        self.check(self.nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(self.handle)))

    @staticmethod
    def check(status):
        if status != 0:
            raise RuntimeError(f"NVML error {status}")

    def joules(self):
        value = ctypes.c_ulonglong()
        self.check(self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle, ctypes.byref(value)))
        return value.value / 1000

    def edge(self):
        """Waits for an update; (CLOCK_MONOTONIC nanoseconds, joules, half of the uncertainty in s)."""
        first, earliest = self.joules(), time.monotonic_ns()
        while True:
            value, latest = self.joules(), time.monotonic_ns()
            if value != first:
                return (earliest + latest) // 2, value, (latest - earliest) * 0.5e-9
            earliest = latest


def spinner(torch, device):
    """A function that keeps the GPU busy for SLEEP_SECONDS."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    cycles = 10_000_000
    for _ in range(3):
        begin.record()
        torch.cuda._sleep(cycles)
        end.record()
        torch.cuda.synchronize(device)
    cycles = int(cycles * SLEEP_SECONDS * 1e3 / begin.elapsed_time(end))
    return lambda: torch.cuda._sleep(cycles)


def rank_main(folder, seconds):
    import torch
    import torch.distributed as dist
    from torch import nn

    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    device = torch.device("cuda", rank)
    dist.init_process_group("nccl", device_id=device)
    torch.manual_seed(1)
    board = Board(f"GPU-{torch.cuda.get_device_properties(rank).uuid}")
    layer = nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0.0, batch_first=True)
    model = nn.parallel.DistributedDataParallel(nn.TransformerEncoder(layer, 6).to(device),
                                                device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    batch = torch.randn(BATCHES[rank], 256, 1024, device=device)
    stop = torch.zeros(1, device=device)
    meet = torch.zeros(1024, device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()

    def part(work):
        torch.cuda.synchronize(device)
        dist.barrier()
        begin = board.edge()
        out = work()
        torch.cuda.synchronize(device)
        end = board.edge()
        return {"begin": begin, "end": end, **out}

    def train():
        steps, until = 0, time.monotonic() + seconds
        while True:
            for _ in range(5):
                step()
            steps += 5
            # The first rank decides, so that both do the same number of steps.
            stop.fill_(float(time.monotonic() > until))
            dist.broadcast(stop, 0)
            if stop.item():
                return {"steps": steps}

    def sleeps():
        spin, slept = spinner(torch, device), []
        dist.all_reduce(meet)
        torch.cuda.synchronize(device)
        begin_ns = time.monotonic_ns()
        for _ in range(SLEEPS):
            events = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            events[0].record()
            if rank == 1:
                spin()
            events[1].record()
            dist.all_reduce(meet)
            slept.append(events)
        torch.cuda.synchronize(device)
        return {"slept": sum(a.elapsed_time(b) for a, b in slept) / 1e3, "sleeps_begin": begin_ns}

    for _ in range(5):
        step()
    parts = {"train": part(train), "sleep": part(sleeps)}
    time.sleep(1)
    uuid = f"GPU-{torch.cuda.get_device_properties(rank).uuid}"
    result = {"rank": rank, "uuid": uuid, "pid": os.getpid(), "parts": parts}
    pathlib.Path(folder, f"rank{rank}.json").write_text(json.dumps(result))
    dist.destroy_process_group()


class Recording:
    def __init__(self, tool, path):
        self.tool, self.path = tool, str(path)
        with sqlite3.connect(self.path) as db:
            self.begin_ns, self.end_ns = db.execute(
                "SELECT work_begin_nanoseconds, work_end_nanoseconds FROM run").fetchone()
        db.close()

    def report(self, *options, span=None):
        command = [self.tool, "report", self.path, "--json", *options]
        if span:
            for option, t in zip(("--from", "--to"), span):
                command += [option, f"{(t - self.begin_ns) / 1e9:.9f}s"]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


class Checks:
    def __init__(self):
        self.failed = []

    def __call__(self, what, good):
        if not good:
            self.failed.append(what)
        return "yes" if good else "**no**"


def micro(joules):
    return round((joules or 0) * 1e6)


def boards(recording, ranks, check):
    print("\n## Energy of each board against its counter\n\n"
          "| part | rank | counter | jouleprof | apart | interval and timing | within |\n"
          "|---|---|---|---|---|---|---|")
    for name in ("train", "sleep"):
        for rank in ranks:
            (begin, low, early), (end, high, late) = (rank["parts"][name][k] for k in ("begin", "end"))
            domains = recording.report(span=(begin, end))["domains"]
            board = next(d for d in domains if d.get("uuid") == rank["uuid"])
            true, found = high - low, board["energy_joules"]
            timing = (early + late + VISIBLE_LATE) * true / (end - begin) * 1e9
            allowed = board["repeatability_joules"] + timing + 0.002 * true
            good = check(f"board of rank {rank['rank']} in {name}", abs(found - true) <= allowed)
            print(f"| {name} | {rank['rank']} | {true:.2f} J | {found:.2f} J | "
                  f"{100 * (found / true - 1):+.2f} % | +-{100 * allowed / true:.2f} % | {good} |")


def views(recording, ranks, check):
    print("\n## One answer in every view (whole recording)\n\n"
          "| board | processes | kernels | layers, phases sum to it | processes sum to it | balance |\n"
          "|---|---|---|---|---|---|")
    tables = {by: recording.report("--by", by)["devices"] for by in ("kernel", "layer", "phase")}
    for device in tables["kernel"]:
        rank = next((r for r in ranks if r["uuid"] == device["uuid"]), None)
        if rank is None:
            continue
        kernels = micro(device["kernels_joules"])
        others = {by: next(d for d in tables[by] if d["uuid"] == device["uuid"])
                  for by in ("layer", "phase")}
        sums = {by: sum(micro(row["energy_joules"]) for row in d["rows"])
                for by, d in others.items()}
        rows = sum(micro(row["energy_joules"]) for row in device["rows"])
        same = check(f"views of {device['device']}", {kernels} == {rows, *sums.values()})
        processes = sum(micro(p["kernels_joules"]) for p in device["processes"])
        by_process = check(f"processes of {device['device']}", processes == kernels)
        only = check(f"only its own rank on {device['device']}",
                     [p["pid"] for p in device["processes"]] == [rank["pid"]])
        parts = ("idle_joules", "kernels_joules", "idle_between_launches_joules", "others_joules",
                 "unattributed_joules")
        balance = check(f"balance of {device['device']}",
                        sum(micro(device[k]) for k in parts) == micro(device["measured_joules"]))
        print(f"| {device['device']} | {len(device['processes'])}, its own rank's: {only} | "
              f"{kernels / 1e6:.1f} J | {same} | {by_process} | {balance} |")


def collectives(recording, ranks, check):
    found = recording.report("--by", "collective")
    print("\n## Collectives (whole recording)\n\n"
          "| rank | calls | matched | transfer | | waiting | | last | sums to the kernels |\n"
          "|---|---|---|---|---|---|---|---|---|")
    kernels = recording.report("--by", "kernel")["devices"]
    check("two ranks with collectives", [r["rank"] for r in found["ranks"]] == [0, 1])
    for row in found["ranks"]:
        device = next(d for d in kernels if d["device"] == row["device"])
        nccl = sum(micro(r["energy_joules"]) for r in device["rows"]
                   if "nccl" in (r["symbol"] or r["name"]))
        own = sum(micro(row[k]) for k in ("transfer_joules", "waiting_joules", "unsplit_joules"))
        good = check(f"collectives of rank {row['rank']} sum to the kernels", own == nccl)
        check(f"collectives of rank {row['rank']} matched", row["matched"] > 0)
        print(f"| {row['rank']} | {row['calls']} | {row['matched']} | "
              f"{row['transfer_seconds'] or 0:.3f} s | {row['transfer_joules'] or 0:.1f} J | "
              f"{row['waiting_seconds'] or 0:.3f} s | {row['waiting_joules'] or 0:.1f} J | "
              f"{row['last']} | {good} |")
    print(f"\nslowest rank {found['slowest_rank']}; ends of one collective differ by "
          f"{1e6 * (found['end_spread_seconds'] or 0):.1f} us in the median")
    for warning in found["warnings"]:
        print(f"- {warning}")
    check("rank 1 is the slowest", found["slowest_rank"] == 1)

    parts = [r["parts"]["sleep"] for r in ranks]
    span = (min(p["sleeps_begin"] for p in parts) - 1_000_000, max(p["end"][0] for p in parts))
    slept = recording.report("--by", "collective", span=span)
    waited = {r["rank"]: r["waiting_seconds"] or 0 for r in slept["ranks"]}
    true = parts[1]["slept"]
    # The launch of a collective's kernel follows the sleep by some microseconds.
    good = check("waiting is the sleep", abs(waited.get(0, 0) - true) <= 0.002 * true + SLEEPS * 50e-6)
    last = check("the sleeping rank does not wait", waited.get(1, 0) <= 0.02 * true)
    print(f"\n{SLEEPS} all-reduces before which rank 1 slept {true:.4f} s in sum: rank 0 waited "
          f"{waited.get(0, 0):.4f} s ({100 * (waited.get(0, 0) / true - 1):+.2f} %): {good}; rank 1 "
          f"waited {waited.get(1, 0):.4f} s: {last}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("tool", nargs="?")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the recording")
    parser.add_argument("--as-rank", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_rank:
        return rank_main(options.as_rank, options.seconds)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "ranks.jprof"
        subprocess.run(
            [options.tool, "run", "--kernels", "--layers", "-f", "-o", path, "--", sys.executable,
             "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "29517",
             __file__, "--seconds", str(options.seconds), "--as-rank", str(folder)],
            check=True)
        ranks = [json.loads((folder / f"rank{r}.json").read_text()) for r in (0, 1)]
        recording, check = Recording(options.tool, path), Checks()
        print(f"# Two ranks, batches {BATCHES}, {ranks[0]['parts']['train']['steps']} steps")
        boards(recording, ranks, check)
        views(recording, ranks, check)
        collectives(recording, ranks, check)
        print("\n## By rank\n\n```", flush=True)
        subprocess.run([options.tool, "report", path, "--by", "collective"], stdout=sys.stdout,
                       check=False)
        sys.stdout.flush()
        subprocess.run([options.tool, "report", path, "--by", "rank"], check=False)
        print("```")
        if check.failed:
            print("\nfailed: " + "; ".join(check.failed))
        return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
