"""A model of PyTorch's under LayerProfiler, run by test_torch_profilers.py: `profiler_cases.py CASE`.
Prints one JSON object. This PyTorch may have no GPU: the CPU is taken for one."""

import json
import sys

import jouleprof
import torch
from jouleprof.torch import KernelProfiler, LayerProfiler, _reruns
from torch import nn

torch.manual_seed(1)
MODEL = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))
INPUTS = torch.randn(64, 256)


def figures(profiler):
    return {"calls": {row["layer_name"]: row["calls"] for row in profiler.results},
            "energies": [row["energy_j"] for row in profiler.results],
            "stats": profiler.get_run_stats(), "warnings": profiler.warnings}


def plain():
    profiler = LayerProfiler(MODEL)
    profiler.profile(INPUTS, num_runs=1)
    profiler.print_summary()
    profiler.save_results()
    profiler.save_top10_energy_consumers("other.csv")
    found = figures(profiler)
    found["html"] = profiler._repr_html_()
    try:
        table = profiler.get_summary_stats()
        found["table"] = {"columns": list(table.columns), "joules": table["energy_j_mean"].to_dict()}
    except jouleprof.Unavailable as error:
        found["table"] = str(error)
    return found


def exact():
    profiler = LayerProfiler(MODEL, device_index=0, keep="kept.jprof")
    profiler.profile(INPUTS, num_runs=7, warmup=True, max_seconds=0)
    return figures(profiler)


def peers():
    """Collectives could wait for another process: the number of runs is exact."""
    torch.distributed.is_initialized = lambda: True
    torch.distributed.get_world_size = lambda: 2
    profiler = LayerProfiler(MODEL)
    profiler.profile(INPUTS, num_runs=2)
    return figures(profiler)


def rounds():
    """Re-runs of which the first look at the recording leaves something open."""
    asked = []

    def rerun(library, each, every):
        asked.append(each)
        return "2 kernels were re-run"

    _reruns.replay.rerun = rerun
    torch.cuda.is_available = lambda: True
    torch.cuda.synchronize = lambda *given: None
    answers = [["0"], []]
    looks = []

    def open_rows(devices):
        looks.append({row["name"]: row["calls"] for device in devices for row in device["rows"]})
        return answers.pop(0)

    _reruns.open_rows = open_rows
    before = [parameter.clone() for parameter in MODEL.parameters()]
    profiler = LayerProfiler(MODEL)
    profiler.profile(INPUTS, num_runs=1, max_seconds=200)  # a busy machine included
    same = all(torch.equal(a, b) for a, b in zip(before, MODEL.parameters()))
    return {**figures(profiler), "looks": looks, "same": same, "asked": asked}


def executions():
    profiler = LayerProfiler(MODEL)
    profiler.profile(INPUTS, num_runs=5, executions=True)
    profiler.save_results()
    module = torch.nn.modules.module
    return {"layers": [each["layer_name"] for each in profiler.executions],
            "runs": [each["run"] for each in profiler.executions],
            "means": {row["layer_name"]: row["inclusive_energy_j"] for row in profiler.results
                      if row["calls"] and row["resolvable"]},
            "hooks": len(module._global_forward_pre_hooks) + len(module._global_forward_hooks)}


class Generator(nn.Module):
    """A token for each call, as language models have it."""

    def __init__(self):
        super().__init__()
        self.inner = MODEL

    def forward(self, given):
        return self.inner(given)

    def generate(self, given, max_new_tokens, min_new_tokens):
        for _ in range(max_new_tokens):
            self(given)


def generation():
    profiler = LayerProfiler(Generator())
    profiler.profile_generation(INPUTS, max_new_tokens=4, num_runs=4, executions=True)
    steps = [[], [], [], []]
    for each in profiler.executions:
        if each["layer_name"] == "Generator":
            steps[each["run"]].append(each["step"])
    return {"steps": steps}


def compiled_executions():
    try:
        LayerProfiler(torch.compile(MODEL)).profile(INPUTS, executions=True)
    except ValueError as error:
        return str(error)


def no_gpu():
    try:
        KernelProfiler(MODEL).profile(INPUTS)
    except RuntimeError as error:
        return str(error)


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
