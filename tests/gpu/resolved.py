#!/usr/bin/env python3
"""How much of the energy of a model's layers and kernels is resolved, on a real NVIDIA GPU.

    resolved.py JOULEPROF OUT [--seconds 8] [--models deit,bert,llama] [--work inference,training,generate]
                [--runs first,re-runs,remembered]

Runs each model (random weights) three times under `run --kernels --layers`: without anything remembered, with
isolated re-runs (`--replay`), and again without re-runs, with the kernels that the second run has
remembered. Prints a Markdown table: the share of the active energy in rows that are resolved, by layer and by
kernel; the widest interval of rows with 5 % of the energy or more; seconds and joules of the re-runs; and the
energy-weighted difference of the third run's layers from the second's. Changes no setting of the card.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

BIG = 0.05  # of the energy


def deit(torch):
    import timm

    model = timm.create_model("deit_base_patch16_224")
    return model, lambda n: {"x": torch.randn(n, 3, 224, 224, device="cuda", dtype=torch.bfloat16)}


def bert(torch):
    import transformers

    model = transformers.BertModel(transformers.BertConfig())
    return model, lambda n: {"input_ids": torch.randint(0, 30000, (n, 128), device="cuda")}


def llama(torch):
    import transformers

    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16,
        num_key_value_heads=16))
    return model, lambda n: {"input_ids": torch.randint(0, 32000, (n, 128), device="cuda")}


MODELS = {"deit": deit, "bert": bert, "llama": llama}


def tensor_of(output):
    for name in ("logits", "last_hidden_state"):
        if hasattr(output, name):
            return getattr(output, name)
    return output


def load(name, work, seconds):
    import torch

    torch.manual_seed(0)
    model, make = MODELS[name](torch)
    model = model.cuda().to(torch.bfloat16).train(work == "training")
    inputs = make(4 if work == "generate" else 32)
    args = (inputs.pop("x"),) if "x" in inputs else ()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    end, count = time.time() + seconds, 0
    while time.time() < end:
        if work == "training":
            tensor_of(model(*args, **inputs)).float().pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        else:
            with torch.no_grad():
                if work == "generate":
                    model.generate(**inputs, max_new_tokens=64, do_sample=False)
                else:
                    model(*args, **inputs)
        torch.cuda.synchronize()
        count += 1
    print(f"{count} iterations")


def report(tool, file, *more):
    done = subprocess.run([tool, "report", str(file), "--json", *more], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)["devices"][0]


def measured(args, model, work, kind, home, *options):
    file = args.out / f"{model}-{work}-{kind}.jprof"
    command = [args.tool, "run", "--kernels", "--layers", *options, "-q", "--force", "-o", str(file), "--",
               sys.executable, __file__, "--load", str(args.seconds), "--models", model, "--work", work]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, HOME=str(home)))
    if done.returncode != 0:
        print(f"{model} {work} {kind} failed: {done.stderr[-800:]}", file=sys.stderr)
        return None
    wall = time.monotonic() - begin
    return wall, report(args.tool, file, "--by", "layer"), report(args.tool, file, "--by", "kernel")


def shares(device):
    """(resolved share of the rows' energy, widest relative interval of large rows, rows that rest on memory)."""
    rows = [row for row in device["rows"] if row["energy_joules"] is not None]
    whole = sum(row["energy_joules"] for row in rows) + sum(
        row.get("group_joules") or 0 for row in device["rows"] if row["energy_joules"] is None)
    whole = max(whole, device["kernels_joules"], 1e-9)
    resolved = sum(row["energy_joules"] for row in rows if row["resolvable"] is not False)
    widest = max((row["repeatability_joules"] / row["energy_joules"] for row in rows
                  if row["energy_joules"] >= BIG * whole), default=float("nan"))
    return resolved / whole, widest


def by_name(device):
    return {row["name"]: row["energy_joules"] for row in device["rows"]
            if row["energy_joules"] and row["resolvable"] is not False}


def difference(one, other):
    """Energy-weighted, of the mean power of each name that both resolve."""
    a, b = by_name(one), by_name(other)
    common = a.keys() & b.keys()
    scale = sum(a[n] for n in common) / sum(b[n] for n in common) if common else 1
    whole = sum(a[n] for n in common)
    return sum(abs(a[n] - scale * b[n]) for n in common) / whole if whole else float("nan")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", nargs="?")
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--models", default="deit,bert,llama")
    parser.add_argument("--work", default="inference,training,generate")
    parser.add_argument("--runs", default="first,re-runs,remembered")
    parser.add_argument("--load", type=float)
    args = parser.parse_args()
    if args.load:
        load(args.models, args.work, args.load)
        return
    args.out.mkdir(parents=True, exist_ok=True)
    print("| model | work | run | layers resolved | widest, layers of 5 % | kernels resolved | re-runs | wall "
          "| layers against the run with re-runs |\n|---|---|---|---|---|---|---|---|---|", flush=True)
    for model in args.models.split(","):
        for work in args.work.split(","):
            if work == "generate" and model != "llama":
                continue
            home = args.out / f"home-{model}-{work}"
            home.mkdir(exist_ok=True)
            first = None
            for kind, options in (("first", ["--no-memory"]), ("re-runs", ["--replay"]), ("remembered", [])):
                found = measured(args, model, work, kind, home, *options) if kind in args.runs.split(",") else None
                if found is None:
                    continue
                wall, layers, kernels = found
                first = layers if kind == "re-runs" else first
                share, widest = shares(layers)
                again = "-" if layers["replay_joules"] is None else (
                    f"{layers['replay_seconds']:.1f} s, {layers['replay_joules']:.0f} J")
                apart = f"{100 * difference(first, layers):.1f} %" if kind == "remembered" and first else "-"
                print(f"| {model} | {work} | {kind} | {100 * share:.0f} % | ±{100 * widest:.0f} % "
                      f"| {100 * shares(kernels)[0]:.0f} % | {again} | {wall:.0f} s | {apart} |", flush=True)


if __name__ == "__main__":
    main()
