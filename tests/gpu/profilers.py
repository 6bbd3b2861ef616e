#!/usr/bin/env python3
"""LayerProfiler and KernelProfiler on a real GPU, called with default arguments.

    profilers.py OUT [--models deit,bert] [--runs 1]

Runs both on DeiT-B (timm) and a BERT of 4 layers (transformers), with random weights. Prints their
summaries, then a Markdown table: the seconds of profile(), and the share of the energy in rows that
are resolved to ±10 %. Writes results, figures of the run and warnings to OUT/MODEL_PROFILER.json.
Exits with 1 where a GPU's rows are missing. Needs jouleprof installed, or PYTHONPATH=BUILD/python with
JOULEPROF_TOOL and JOULEPROF_INJECT.
"""

import argparse
import json
import pathlib
import sys
import time


def deit(torch):
    """DeiT-B, batch 32."""
    import timm

    model = timm.create_model("deit_base_patch16_224")
    return model, torch.randn(32, 3, 224, 224, device="cuda", dtype=torch.bfloat16)


def bert(torch):
    """Four layers of 512, 16 texts of 128 tokens, as a dict."""
    import transformers

    model = transformers.BertModel(transformers.BertConfig(
        hidden_size=512, num_hidden_layers=4, num_attention_heads=8, intermediate_size=2048))
    return model, {"input_ids": torch.randint(0, 30000, (16, 128), device="cuda"),
                   "attention_mask": torch.ones(16, 128, dtype=torch.long, device="cuda")}


MODELS = {"deit": deit, "bert": bert}


def half_width(row):
    """Of the 95 % interval, as a part of the energy."""
    energy = row["energy_j"]
    return max(row["energy_high_j"] - energy, energy - row["energy_low_j"]) / energy


def shares(results):
    """Parts of the GPU's energy: in rows within ±10 %, and in resolvable rows."""
    rows = [row for row in results if row["domain"] == "gpu" and (row["energy_j"] or 0) > 0]
    whole = sum(row["energy_j"] for row in rows)
    if whole <= 0:
        return 0.0, 0.0
    resolvable = [row for row in rows if row["resolvable"]]
    within = [row for row in resolvable if half_width(row) <= 0.10]
    return tuple(sum(row["energy_j"] for row in some) / whole for some in (within, resolvable))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--models", default="deit,bert")
    parser.add_argument("--runs", type=int, help="num_runs; default: the profiler's own")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    import torch
    from jouleprof.torch import KernelProfiler, LayerProfiler

    torch.manual_seed(0)
    given = {} if options.runs is None else {"num_runs": options.runs}
    table = ["| model | profiler | seconds | runs | rows | within ±10 % | resolvable | energy per run | "
             "warnings |",
             "|---|---|---|---|---|---|---|---|---|"]
    missing = False
    for name in options.models.split(","):
        model, inputs = MODELS[name](torch)
        model = model.cuda().to(torch.bfloat16).eval()
        for kind in (LayerProfiler, KernelProfiler):
            profiler = kind(model)
            begin = time.perf_counter()
            results = profiler.profile(inputs, **given)
            seconds = time.perf_counter() - begin
            profiler.print_summary()
            stats = profiler.get_run_stats()
            gpu = [row for row in results if row["domain"] == "gpu"]
            missing = missing or not gpu
            within, resolvable = shares(results)
            table.append(f"| {name} | {kind.__name__} | {seconds:.1f} | {stats['runs']} | {len(gpu)} | "
                         f"{within:.1%} | {resolvable:.1%} | {stats['energy_j']:.4g} J | "
                         f"{len(profiler.warnings)} |")
            (options.out / f"{name}_{kind.__name__}.json").write_text(json.dumps({
                "seconds": seconds, "within_10_percent": within, "resolvable": resolvable,
                "stats": stats, "warnings": profiler.warnings, "results": results}, indent=1))
    print("\n".join(table))
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
