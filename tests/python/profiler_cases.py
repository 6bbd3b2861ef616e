"""A model of PyTorch's under LayerProfiler, run by test_torch_profilers.py: `profiler_cases.py CASE`.
Prints one JSON object. This PyTorch may have no GPU: the CPU is taken for one."""

import json
import sys

import jouleprof
import torch
from jouleprof.torch import KernelProfiler, LayerProfiler, _reruns, _tracing
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
    _tracing.load_hook("jouleprof_replay").Call.devices = lambda self: [torch.device("cpu")]
    _tracing.load_hook("jouleprof_kernels").Kinds.replay = lambda *given: None
    torch.cuda.is_available = lambda: True
    torch.cuda.synchronize = lambda *given: None
    answers = [["0"], [], []]
    looks = []

    def open_rows(devices):
        looks.append({row["name"]: row["calls"] for device in devices for row in device["rows"]})
        return answers.pop(0)

    _reruns.open_rows = open_rows
    before = [parameter.clone() for parameter in MODEL.parameters()]
    profiler = LayerProfiler(MODEL)
    profiler.profile(INPUTS, num_runs=1, max_seconds=200)  # a busy machine included
    same = all(torch.equal(a, b) for a, b in zip(before, MODEL.parameters()))
    return {**figures(profiler), "looks": looks, "same": same}


def no_gpu():
    try:
        KernelProfiler(MODEL).profile(INPUTS)
    except RuntimeError as error:
        return str(error)


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
