"""Single executions of layers: their own times, and estimates of their energies.

A sensor is slower than a layer, so no single execution is measured. Its energy is estimated: the mean
energy of the layer's executions, in proportion to the execution's own time (constant mean power).
"""

import contextlib
import math
import statistics
import time

from .. import _student
from .._energy import weakest
from .._live.monitor import Monitor
from .._live.sampled import Sampled, nearest
from . import _tables

METHOD = "mean energy of the layer's executions, in proportion to the execution's time"
# Those that other layer profilers have come first.
COLUMNS = ["layer_name", "exec_id", "start_time", "end_time", "duration_ms", "start_power_w", "end_power_w",
           "avg_power_w", "energy_j", "energy_low_j", "energy_high_j", "provenance", "run", "step", "device", "reason"]


class Timer:
    """Times each call of a model's modules, with the modules that they call. `name_of(module)`: its layer.

    On a GPU, `gpu`, the times are those of CUDA events in its current stream, so that nothing waits for it
    between two calls; elsewhere the host's."""

    def __init__(self, torch, model, name_of, gpu=None):
        self._torch = torch
        self._model = model
        self._names = {id(module): name_of(module) for module in model.modules()}
        self._gpu = gpu
        self._open = []
        self._found = []
        self._count = 0
        self._run = -1
        self._step = -1

    def time(self, run, count):
        """Calls `run` that often. Returns the executions in the order in which they began."""
        with self._watched():
            self._synchronize()
            origin, began = self._mark(), time.time()
            for self._run in range(count):
                self._step = -1
                run()
            self._synchronize()
        made = []
        for number, (_, name, run_number, step, begin, end) in enumerate(sorted(self._found, key=_order)):
            start, seconds = began + self._seconds(origin, begin), self._seconds(begin, end)
            made.append({"layer_name": name, "exec_id": number, "run": run_number, "step": step,
                         "start_time": start, "end_time": start + seconds, "seconds": seconds})
        return made

    @contextlib.contextmanager
    def _watched(self):
        """Hooks of all modules: those of single ones would switch off PyTorch's fused paths."""
        hooks = self._torch.nn.modules.module
        handles = [hooks.register_module_forward_pre_hook(self._begin),
                   hooks.register_module_forward_hook(self._end)]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _begin(self, module, args):
        name = self._names.get(id(module))
        if name is None:
            return
        if module is self._model:
            self._step += 1
        self._open.append((module, self._count, name, self._mark()))
        self._count += 1

    def _end(self, module, args, output):
        if all(opened is not module for opened, *_ in self._open):
            return
        end = self._mark()
        while self._open[-1][0] is not module:
            self._open.pop()  # its call raised an exception
        _, number, name, begin = self._open.pop()
        self._found.append((number, name, self._run, self._step, begin, end))

    def _mark(self):
        if self._gpu is None:
            return time.perf_counter()
        event = self._torch.cuda.Event(enable_timing=True)
        event.record(self._torch.cuda.current_stream(self._gpu))
        return event

    def _seconds(self, begin, end):
        return end - begin if self._gpu is None else begin.elapsed_time(end) / 1e3

    def _synchronize(self):
        if self._gpu is not None:
            self._torch.cuda.synchronize(self._gpu)


def _order(found):
    return found[0]


class Readings(Sampled):
    """What the devices draw while executions are timed, read every 10 ms."""

    def __init__(self):
        super().__init__(Monitor(), 0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _samples(self, snapshot):
        return {state.domain.device: (snapshot.time - (state.age or 0.0), state.power) for state in snapshot.domains
                if state.power is not None and state.domain.label == state.domain.device}  # no part of a device

    def add_to(self, executions):
        """Of each execution the readings nearest to its start and end; None where there is none within a second."""
        kept = {device: sorted(samples) for device, samples in self._kept.items()}
        for each in executions:
            for name in ("start", "end"):
                moment = each[f"{name}_time"]
                found = nearest(kept.get(each.get("device"), []), moment)
                each[f"{name}_power_w"] = found[1] if found and abs(found[0] - moment) <= 1 else None
        return executions


class Mean:
    """The mean energy of one execution of a layer, with its 95 % interval; or why there is none."""

    def __init__(self, joules, half, provenance="estimated", device=None, reason=""):
        self.joules = joules
        self.half = half
        self.provenance = provenance
        self.device = device
        self.reason = reason


_UNKNOWN = Mean(None, None, "unavailable", None, "the measured runs did not have this layer")


def means(rows):
    """By layer, of the rows of one device."""
    found = {}
    for row in rows:
        if not row["calls"]:
            continue
        energy, low, high = row["inclusive_energy_j"], row["inclusive_low_j"], row["inclusive_high_j"]
        if energy is None or low is None or not row["resolvable"] or energy <= 0:
            found[row["layer_name"]] = Mean(None, None, "unavailable", row["device"],
                                            row["reason"] or "the layer's energy is not resolvable")
            continue
        provenance = "simulated" if row["provenance"] == "simulated" else "estimated"
        found[row["layer_name"]] = Mean(energy / row["calls"], (high - low) / 2 / row["calls"], provenance,
                                        row["device"])
    return found


def differences(whole, part):
    """By layer, of the executions that `whole` has in addition to those of `part`: rows of one device."""
    calls = {rows_of: {row["layer_name"]: row["calls"] for row in rows}
             for rows_of, rows in (("whole", whole), ("part", part))}
    of_whole, of_part = means(whole), means(part)
    found = {}
    for name, mean in of_whole.items():
        more, fewer = calls["whole"][name], calls["part"].get(name) or 0
        before = of_part.get(name) or Mean(0.0 if not fewer else None, 0.0)
        if mean.joules is None or before.joules is None:
            reason = mean.reason or before.reason
        else:
            count = more - fewer
            joules = mean.joules * more - before.joules * fewer
            half = math.hypot(mean.half * more, before.half * fewer)
            if count > 0 and joules > half:
                found[name] = Mean(joules / count, half / count, mean.provenance, mean.device)
                continue
            reason = "the energy of decoding is not resolvable: it is less than its error"
        found[name] = Mean(None, None, "unavailable", mean.device, reason)
    return found


def estimate(executions, mean_of):
    """Adds to each execution its energy. `mean_of(execution)`: a Mean, or None for layers that the
    measured runs did not have.

    The interval has the error of the mean, and the spread of the times: that much, relatively, the power
    of single executions may differ."""
    groups = {}
    for each in executions:
        mean = mean_of(each) or _UNKNOWN
        groups.setdefault((each["layer_name"], id(mean)), (mean, []))[1].append(each)
    for mean, members in groups.values():
        _estimate_group(mean, members)
    return executions


def _estimate_group(mean, members):
    times = [each["seconds"] for each in members]
    average = statistics.fmean(times)
    reason = mean.reason
    if mean.joules is not None and len(times) < 2:
        reason = "one execution has no spread: use num_runs of 2 or more"
    elif mean.joules is not None and not average > 0:
        reason = "the executions are too short to be timed"
    spread = None
    if not reason:
        quantile = _student.quantile(len(times) - 1)
        spread = math.hypot(mean.half / mean.joules, quantile * statistics.stdev(times) / average)
    for each in members:
        energy = None if reason else mean.joules * each["seconds"] / average
        each.update({
            "duration_ms": each["seconds"] * 1e3,
            "avg_power_w": energy / each["seconds"] if energy is not None and each["seconds"] > 0 else None,
            "energy_j": energy,
            "energy_low_j": None if reason else max(energy * (1 - spread), 0.0),
            "energy_high_j": None if reason else energy * (1 + spread),
            "provenance": "unavailable" if reason else mean.provenance,
            "device": mean.device,
            "reason": reason,
        })


def summary(executions):
    """By layer: the number of executions; mean, standard deviation, least and greatest of their times and
    of their estimated energies. Without an energy of each, none."""
    found = {}
    for each in executions:
        found.setdefault(each["layer_name"], []).append(each)
    return {name: {"executions": len(members), **_spread("execution_ms", [each["duration_ms"] for each in members]),
                   **_spread("execution_j", [each["energy_j"] for each in members]),
                   "execution_j_provenance": weakest(each["provenance"] for each in members)}
            for name, members in found.items()}


def _spread(name, values):
    if None in values:
        return {f"{name}_{what}": None for what in ("mean", "std", "min", "max")}
    return {f"{name}_mean": statistics.fmean(values),
            f"{name}_std": statistics.stdev(values) if len(values) > 1 else None,
            f"{name}_min": min(values), f"{name}_max": max(values)}


def save(path, executions):
    _tables.write(path, COLUMNS, ([each[name] for name in COLUMNS] for each in executions))
