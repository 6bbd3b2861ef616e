#!/usr/bin/env python3
"""Compares windows on a machine with several GPUs with each board's own energy counter.

    two_gpus.py [--seconds 6]

One process for each form of CUDA_VISIBLE_DEVICES: both GPUs, both the other way round, one, and UUIDs.
Each loads its GPUs one after the other, then all at once, and reads every board's counter at two of
its update edges; jouleprof measures each GPU between the same two instants. The board of a CUDA
index follows from the form itself, and is checked against PyTorch. Without PyTorch and CUDA nothing is
loaded, and only the map and the idle boards are checked.

Prints a Markdown table; exits with 1 where the error of a figure exceeds the sum of its interval, the
uncertainty of the counter's update times and 0.2 %, or where it belongs to another board.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import threading
import time

import pynvml

import jouleprof

VISIBLE_LATE = 0.016  # seconds until an update of the counter is visible, at most


def cuda():
    """PyTorch, where it has a device."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


@contextlib.contextmanager
def load(torch, devices):
    """Matrix products on these CUDA devices, a thread each."""
    stop = threading.Event()

    def work(device):
        torch.cuda.set_device(device)
        a = torch.randn(4096, 4096, device=f"cuda:{device}")
        out = torch.empty_like(a)
        while not stop.is_set():
            for _ in range(20):
                torch.mm(a, a, out=out)
            torch.cuda.synchronize(device)

    threads = [threading.Thread(target=work, args=(d,)) for d in devices] if torch else []
    for thread in threads:
        thread.start()
    time.sleep(1)
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def counter_edge(board):
    """Waits for the energy counter to step; returns (CLOCK_MONOTONIC nanoseconds, joules, seconds
    that the step may have been earlier or later)."""
    first = pynvml.nvmlDeviceGetTotalEnergyConsumption(board)
    earliest = time.monotonic_ns()
    while True:
        value = pynvml.nvmlDeviceGetTotalEnergyConsumption(board)
        latest = time.monotonic_ns()
        if value != first:
            return (earliest + latest) // 2, value / 1000, (latest - earliest) * 0.5e-9
        earliest = latest


def uuid_of(board):
    uuid = pynvml.nvmlDeviceGetUUID(board)
    return uuid.decode() if isinstance(uuid, bytes) else uuid


def child(words, boards, seconds):
    """Measures; prints the table's lines and returns whether there is no error."""
    torch = cuda()
    handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in boards]
    monitor = jouleprof.Monitor()
    good = monitor.gpu_indices == list(range(len(boards)))
    for domain in monitor.domains:
        if domain.kind != "gpu":
            continue
        expected = uuid_of(handles[domain.index])
        seen = expected
        if torch is not None and hasattr(torch.cuda.get_device_properties(0), "uuid"):
            seen = f"GPU-{torch.cuda.get_device_properties(domain.index).uuid}"
        if not expected == seen == domain.uuid:
            print(f"{words}: CUDA's {domain.index} is {expected}, for PyTorch {seen}, for jouleprof "
                  f"{domain.uuid}", file=sys.stderr)
            good = False
    every = list(range(len(boards)))
    for busy in [[i] for i in every] + ([every] if len(every) > 1 else []):
        with load(torch, busy):
            begins = [counter_edge(board) for board in handles]
            with monitor.window("work") as window:
                time.sleep(seconds)
            ends = [counter_edge(board) for board in handles]
        for i in every:
            (begin, low, early), (end, high, late) = begins[i], ends[i]
            energy = [e for e in monitor.between(begin, end).values()
                      if e.domain.kind == "gpu" and e.domain.index == i][0]
            truth = high - low
            apart = energy.joules - truth
            timing = (early + late + VISIBLE_LATE) * truth / (end - begin) * 1e9
            inside = abs(apart) <= energy.repeatability + timing + 0.002 * truth
            good = good and inside
            mine = window.gpu_energy[i] / window.time
            print(f"| {words} | {i} | {uuid_of(handles[i])[-12:]} | "
                  f"{'load' if i in busy and torch else 'idle'} | {truth:.2f} J | "
                  f"{energy.joules:.2f} J | {100 * apart / truth:+.2f} % | "
                  f"+-{100 * energy.repeatability / truth:.2f} % | +-{100 * timing / truth:.2f} % | "
                  f"{mine:.1f} W |"
                  f"{'' if inside else ' **off**'}", flush=True)
    monitor.close()
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--boards", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    pynvml.nvmlInit()
    if options.boards:
        words = os.environ["CUDA_VISIBLE_DEVICES"]
        return 0 if child(words, options.boards, options.seconds) else 1
    if pynvml.nvmlDeviceGetCount() < 2:
        sys.exit("this machine has fewer than two GPUs")
    if cuda() is None:
        print("PyTorch with CUDA is missing: nothing is loaded.\n")
    uuids = [uuid_of(pynvml.nvmlDeviceGetHandleByIndex(i)) for i in (0, 1)]
    cases = {"0,1": [0, 1], "1,0": [1, 0], "1": [1], uuids[1]: [1],
             f"{uuids[1]},{uuids[0]}": [1, 0]}
    print("| CUDA_VISIBLE_DEVICES | CUDA's number | board | | counter | jouleprof | apart | interval "
          "| the counter's timing | window |\n|---|---|---|---|---|---|---|---|---|---|", flush=True)
    good = True
    for words, boards in cases.items():
        environment = dict(os.environ, CUDA_VISIBLE_DEVICES=words, CUDA_DEVICE_ORDER="PCI_BUS_ID")
        command = [sys.executable, __file__, "--seconds", str(options.seconds),
                   "--boards", json.dumps(boards)]
        good = subprocess.run(command, env=environment, check=False).returncode == 0 and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
