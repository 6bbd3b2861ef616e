#!/usr/bin/env python3
"""Validates `jouleprof bench` on a real NVIDIA GPU; prints Markdown tables. Changes no setting of the card.

    bench.py JOULEPROF [--part table|repeat|paced] [--repeats 5] [--only WORD] [--out FOLDER]

The part `table` compares each workload with torch.utils.benchmark and with the energy counter, which
a thread of this script polls, and shows what the time was spent on (about 6 min). The part `repeat`
measures each of five models in five processes: the repeatability from run to run (about 9 min).
The part `paced` does so for two CUDA graphs that fill the GPU, so that the host's launches set no
pace (about 5 min). Without --part the first two run. Needs PyTorch, transformers and nvidia-ml-py; downloads nothing.
"""

import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from counter_updates import CounterUpdates

LLAMA = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 32000,
         "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 16,
         "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 2048}
STAGES = ["import", "build", "count", "first", "hold", "warm_up", "measure"]
GOLDEN_GMACS = {"deit-b": 17.5638, "bert-l -s 320": 101.671}


class Counter(CounterUpdates):
    """Of the first GPU, in seconds since 1970."""

    def __init__(self):
        import pynvml

        pynvml.nvmlInit()
        device = pynvml.nvmlDeviceGetHandleByIndex(0)
        self.name = pynvml.nvmlDeviceGetName(device)
        self.driver = pynvml.nvmlSystemGetDriverVersion()
        super().__init__(lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(device) / 1000, time.time)


def bench(tool, words, folder, *options):
    """(the result, wall seconds, rows of the recording's windows)."""
    path = folder / f"{'-'.join(words).replace('/', '_').replace(' ', '')}.jprof"
    begin = time.monotonic()
    done = subprocess.run([tool, "bench", *words, *options, "--json", "-f", "-o", str(path)],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wall = time.monotonic() - begin
    if done.returncode != 0:
        print(f"\n{' '.join(words)} failed with {done.returncode}:\n{done.stderr[-2000:]}\n", flush=True)
        return None, wall, []
    path.with_suffix(".json").write_text(done.stdout)
    rows = subprocess.run([tool, "export", str(path), "--format", "windows"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.splitlines()
    return json.loads(done.stdout), wall, list(csv.DictReader(rows))


def row(case, unit, phase=None):
    return next(r for r in case["energy"]["per"] if (r["unit"], r["phase"]) == (unit, phase))


def milli(value, digits=3):
    return "-" if value is None else f"{1e3 * value:.{digits}f}"


def percent(value):
    return "-" if value is None else f"{100 * value:+.2f} %"


def counter_difference(case, windows, counter):
    """Of the energy of the case's window, against the polled counter."""
    time.sleep(0.3)
    found = [r for r in windows if r["name"] == case["window"] and r["domain"] == "gpu"
             and r["device"] == case["energy_device"]]
    if len(found) != 1 or not found[0]["energy_joules"]:
        return None
    begin, length = float(found[0]["begin_unix_seconds"]), float(found[0]["duration_seconds"])
    return float(found[0]["energy_joules"]) / counter.energy(begin, begin + length) - 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--part", choices=["table", "repeat", "paced"], help="default: the first two")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="workloads whose words contain this")
    parser.add_argument("--out", default=None)
    args = parser.parse_args()
    os.environ.setdefault("JOULEPROF_PYTHON", sys.executable)
    folder = pathlib.Path(args.out or tempfile.mkdtemp(prefix="jouleprof-bench-gpu-"))
    folder.mkdir(parents=True, exist_ok=True)
    llama = folder / "llama"
    llama.mkdir(exist_ok=True)
    (llama / "config.json").write_text(json.dumps(LLAMA))
    counter = Counter()
    print(f"{counter.name}, driver {counter.driver}; results in {folder}\n", flush=True)
    models = [["deit-t"], ["deit-s"], ["deit-b"], ["bert-b", "-s", "128"], ["bert-l", "-s", "320"]]
    cases = [
        *models, ["deit-b", "--batch", "8,64"], ["deit-b", "--mode", "graph"],
        ["deit-b", "--mode", "compile"], ["deit-b", "--mode", "train", "--batch", "32"],
        [f"hf:{llama}", "--mode", "eager", "--dtype", "bfloat16"],
        [f"hf:{llama}", "--mode", "generate", "--new-tokens", "64", "--batch", "4"],
    ]
    cases = [words for words in cases if args.only in " ".join(words)]
    if args.part in (None, "table"):
        table(args, folder, cases, counter)
    if args.part == "paced":
        models = [["deit-b", "--mode", "graph", "--batch", "64"],
                  ["bert-l", "-s", "320", "--mode", "graph", "--batch", "8"]]
    if args.part != "table":
        repeat(args, folder, [words for words in models if args.only in " ".join(words)])
    counter.close()


def table(args, folder, cases, counter):
    print("| workload | batch | latency, ms | by torch.utils.benchmark | p50, p90, p99, ms | mJ an iteration "
          "| held + active, mJ | against the counter | mean W | SM MHz | steady | GMAC | mJ/GMAC "
          "| wall, s | import, build, count, first, hold, warm-up, measure: s |")
    print("|" + "---|" * 15)
    for words in cases:
        extra = [] if "generate" in words else ["--torch-timer"]
        result, wall, windows = bench(args.tool, words, folder, *extra)
        for case in result["cases"] if result else []:
            show(" ".join(words), case, windows, counter, wall)


def show(words, case, windows, counter, wall):
    latency, energy = case["latency"], case["energy"]
    each = row(case, "iteration")
    timer = case.get("torch_timer")
    gpu = [d for d in energy["profile"]["domains"] if d["device"] == case["energy_device"]
           and d["domain"] == "gpu"]
    gmacs = None if case["macs"] is None else case["macs"] * 1e-9
    golden = GOLDEN_GMACS.get(words)
    mark = "" if golden is None else " ok" if gmacs and abs(gmacs - golden) < 1e-3 else " WRONG"
    joules = each["device"] and each["device"]["energy_joules"]
    split = "-" if each["active"] is None else " + ".join(
        milli(each[level] and each[level]["energy_joules"]) for level in ("held", "active"))
    clock = energy["sm_clock_hertz"]
    print("| " + " | ".join([
        words, str(case["batch"]), milli(latency["median_seconds"], 4),
        percent(timer and timer["median_seconds"] / latency["median_seconds"] - 1),
        ", ".join(milli(latency[f"p{p}_seconds"], 4) for p in (50, 90, 99)),
        milli(joules), split, percent(counter_difference(case, windows, counter)),
        f"{gpu[0]['mean_watts']:.1f}" if gpu and gpu[0]["mean_watts"] else "-",
        f"{clock['mean'] * 1e-6:.0f}" if clock else "-",
        "yes" if case["warm_up"]["steady"] else case["warm_up"]["remark"],
        "-" if gmacs is None else f"{gmacs:.4f}{mark}",
        "-" if gmacs is None or joules is None else milli(joules / gmacs), f"{wall:.1f}",
        ", ".join(f"{case['stages_seconds'].get(stage, 0):.1f}" for stage in STAGES)]) + " |", flush=True)
    for phase in case["phases"]:
        for unit in phase["units"]:
            found = row(case, unit["name"], phase["name"])["device"]
            print(f"| {words}: {phase['name']} | | | | | {milli(found and found['energy_joules'])} per "
                  f"{unit['name']} |" + " |" * 9, flush=True)


def repeat(args, folder, models):
    if args.repeats < 2:
        return
    print("\n| workload | runs | mJ an iteration, each run | largest difference from the mean "
          "| relative standard deviation | latency's | wall, s |")
    print("|---|---|---|---|---|---|---|")
    for words in models:
        joules, seconds, walls = [], [], []
        for _ in range(args.repeats):
            result, wall, _ = bench(args.tool, words, folder)
            if result is None:
                break
            (case,) = result["cases"]
            joules.append(row(case, "iteration")["device"]["energy_joules"])
            seconds.append(case["latency"]["median_seconds"])
            walls.append(wall)
        if len(joules) < 2:
            continue
        mean = statistics.mean(joules)
        print(f"| {' '.join(words)} | {len(joules)} | {', '.join(milli(j) for j in joules)} "
              f"| {100 * max(abs(j - mean) for j in joules) / mean:.2f} % "
              f"| {100 * statistics.stdev(joules) / mean:.2f} % "
              f"| {100 * statistics.stdev(seconds) / statistics.mean(seconds):.2f} % "
              f"| {max(walls):.1f} |", flush=True)


if __name__ == "__main__":
    main()
