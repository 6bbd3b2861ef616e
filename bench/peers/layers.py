#!/usr/bin/env python3
"""Joules of layers and kernels, against those of each layer in a loop of its own (the reference).

    layers.py OUT.json            all of it, on one GPU
    layers.py load OUT.json SECONDS   only the program: it repeats the model, and writes milliseconds of one pass

GPUPP is in no registry. `gpupp_layers` and `gpupp_kernels` are its method as its README has it: hooks that
synchronise and read the power before and after a layer; torch.profiler's times of kernels, and power polled each 1 ms.
Its energies are power times time. jouleprof's are above idle. Each is compared with the loops by its own definition.
"""

import collections
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import threading
import time

from reference import Reference
from tools import command_line

LOOP_SECONDS = 1.5
PASSES = 20
PROGRAM_SECONDS = 12


def model_and_input():
    import torch

    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(collections.OrderedDict(
        norm=nn.LayerNorm(1024), expand=nn.Linear(1024, 4096, bias=False), act=nn.GELU(),
        contract=nn.Linear(4096, 1024, bias=False), scores=nn.Softmax(dim=-1), out=nn.Tanh())).cuda().eval()
    return model, torch.randn(8192, 1024, device="cuda")


def milliseconds(model, x, seconds):
    import torch

    rounds = []
    with torch.no_grad():
        for _ in range(10):
            model(x)
        torch.cuda.synchronize()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            begin = time.perf_counter()
            for _ in range(20):
                model(x)
            torch.cuda.synchronize()
            rounds.append((time.perf_counter() - begin) / 20 * 1e3)
    return statistics.median(rounds)


def inputs_of(model, x):
    """name -> the input that the layer has in the model"""
    found = {}
    for name, layer in model.named_children():
        found[name] = x
        x = layer(x)
    return found


def loops(model, inputs):
    """name -> begin, end and seconds of a call of each layer that is repeated alone."""
    import torch

    found = {}
    for name, layer in model.named_children():
        x = inputs[name]
        time.sleep(0.4)
        begin, count = time.perf_counter(), 0
        while time.perf_counter() < begin + LOOP_SECONDS:
            for _ in range(20):
                layer(x)
            torch.cuda.synchronize()
            count += 20
        end = time.perf_counter()
        found[name] = (begin, end, (end - begin) / count)
    return found


def kernel_of_layers(model, inputs, folder):
    """(name, grid, block) of its kernel -> the layer; of layers that launch one kernel."""
    import torch

    found = {}
    for name, layer in model.named_children():
        found.update({key: name for key in one_kernel(profiled(lambda: layer(inputs[name]), folder, torch))})
    return found


def profiled(work, folder, torch):
    """The kernels of `work`, as torch.profiler exports them."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profiler:
        work()
        torch.cuda.synchronize()
    file = pathlib.Path(folder) / "trace.json"
    profiler.export_chrome_trace(str(file))
    return [event for event in json.loads(file.read_text())["traceEvents"] if event.get("cat") == "kernel"]


def without_blanks(name):
    return "".join(name.split())


def key_of(event):
    return (without_blanks(event["name"]), *event["args"]["grid"], *event["args"]["block"])


def one_kernel(events):
    keys = {key_of(event) for event in events}
    return keys if len(keys) == 1 else set()


def gpupp_layers(model, x, gpu):
    """name -> joules of a call: mean of the power before and after, times the duration; and ms of a pass."""
    import pynvml
    import torch

    sums, open_ = collections.defaultdict(list), {}

    def stamp():
        torch.cuda.synchronize()
        return time.perf_counter(), pynvml.nvmlDeviceGetPowerUsage(gpu) / 1e3

    def before(name):
        return lambda *_: open_.__setitem__(name, stamp())

    def after(name):
        def hook(*_):
            (began, first), (ended, last) = open_[name], stamp()
            sums[name].append((first + last) / 2 * (ended - began))
        return hook

    hooks = []
    for name, layer in model.named_children():
        hooks += [layer.register_forward_pre_hook(before(name)), layer.register_forward_hook(after(name))]
    with torch.no_grad():
        for _ in range(5):
            model(x)
        sums.clear()
        begin = time.perf_counter()
        for _ in range(PASSES):
            model(x)
        torch.cuda.synchronize()
        ms = (time.perf_counter() - begin) / PASSES * 1e3
    for hook in hooks:
        hook.remove()
    return {name: statistics.mean(values) for name, values in sums.items()}, ms


def gpupp_kernels(model, x, gpu, folder):
    """(name, grid, block) -> joules of a launch: the polled power at its time, times its duration."""
    import pynvml
    import torch

    samples, stop = [], threading.Event()

    def poll():
        while not stop.is_set():
            samples.append(pynvml.nvmlDeviceGetPowerUsage(gpu) / 1e3)
            time.sleep(0.001)

    def passes():
        with torch.no_grad():
            for _ in range(PASSES):
                model(x)

    passes()
    thread = threading.Thread(target=poll)
    thread.start()
    events = profiled(passes, folder, torch)
    stop.set()
    thread.join()
    watts = statistics.mean(samples)  # the field moves slower than a pass
    found = collections.defaultdict(list)
    for event in events:
        found[key_of(event)].append(watts * event["dur"] / 1e6)
    return {key: statistics.mean(values) for key, values in found.items()}


def traced(folder):
    """(rows by layer, rows by kernel, idle watts, ms of a pass) of the program under jouleprof."""
    tool = command_line()
    file, out = f"{folder}/layers.jprof", f"{folder}/load.json"
    subprocess.run([*tool, "run", "-q", "--kernels", "--layers", "--replay", "--idle", "1s", "-o", file, "--",
                    sys.executable, __file__, "load", out, str(PROGRAM_SECONDS)], check=True)
    devices = [json.loads(subprocess.run([*tool, "report", file, "--json", "--by", by], check=True, capture_output=True,
                                         text=True).stdout)["devices"] for by in ("layer", "kernel")]
    by_layer, by_kernel = (next(device for device in each if device["domain"] == "gpu") for each in devices)
    return by_layer["rows"], by_kernel["rows"], by_layer["idle_watts"], json.loads(pathlib.Path(out).read_text())


def detail_of(key):
    """Grid and block as jouleprof prints them."""
    grid, block = key[1:4], key[4:7]
    return f"grid {grid[0]}x{grid[1]}x{grid[2]} block {block[0]}x{block[1]}x{block[2]}"


def compared(found, truths):
    """The energy-weighted mean error, and the worst; `found` and `truths`: joules by name."""
    pairs = {name: (found[name], truths[name]) for name in truths if found.get(name) is not None}
    if not pairs:
        return {"cell": "not measured", "rows": {}}
    whole = sum(truth for _, truth in pairs.values())
    mean = sum(abs(value - truth) for value, truth in pairs.values()) / whole
    worst = max(pairs, key=lambda name: abs(pairs[name][0] / pairs[name][1] - 1))
    value, truth = pairs[worst]
    return {"cell": f"{100 * mean:.1f} %, {worst} {100 * (value / truth - 1):+.0f} % ({len(pairs)} of {len(truths)})",
            "rows": {str(name): pair for name, pair in pairs.items()}}


def measure(folder):
    import pynvml
    import torch

    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    model, x = model_and_input()
    with torch.no_grad():
        inputs = inputs_of(model, x)
        kernels = kernel_of_layers(model, inputs, folder)
        with Reference() as reference:
            found = loops(model, inputs)
    plain = milliseconds(model, x, 3)
    of_layers, ms = gpupp_layers(model, x, gpu)
    of_kernels = gpupp_kernels(model, x, gpu, folder)
    layer_rows, kernel_rows, idle_watts, traced_ms = traced(folder)

    watts = {name: reference.watts(begin + 0.3, end) for name, (begin, end, _) in found.items()}
    whole = {name: watts[name] * found[name][2] for name in found}
    above = {name: (watts[name] - idle_watts) * found[name][2] for name in found}
    ours = {name: row["energy_per_call_joules"] for row in layer_rows for name in found
            if row["name"].split(".")[-1] == name and row["resolvable"]}
    ours_kernels = {name: row["energy_per_launch_joules"] for row in kernel_rows for key, name in kernels.items()
                    if without_blanks(row["name"]) == key[0] and row["detail"] == detail_of(key) and row["resolvable"]}
    of_one = set(kernels.values())
    return {
        "loops": {name: {"watts": watts[name], "seconds_per_call": found[name][2]} for name in found},
        "idle_watts": idle_watts, "plain_ms": plain, "gpupp_ms": ms, "jouleprof_ms": traced_ms,
        "slower": {"GPUPP": ms / plain - 1, "jouleprof": traced_ms / plain - 1},
        "layer": {"jouleprof": compared(ours, above), "GPUPP": compared(of_layers, whole)},
        "kernel": {"jouleprof": compared(ours_kernels, {name: above[name] for name in of_one}),
                   "GPUPP": compared({kernels[key]: joules for key, joules in of_kernels.items() if key in kernels},
                                     {name: whole[name] for name in of_one})},
        "jouleprof_rows": {"layer": layer_rows, "kernel": kernel_rows},
    }


def main():
    if sys.argv[1] == "load":
        model, x = model_and_input()
        pathlib.Path(sys.argv[2]).write_text(json.dumps(milliseconds(model, x, float(sys.argv[3]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(sys.argv[1]).write_text(json.dumps(measure(folder), indent=1))


if __name__ == "__main__":
    main()
