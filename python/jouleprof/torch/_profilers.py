"""LayerProfiler and KernelProfiler."""

from __future__ import annotations

import math
import numbers
import os
import tempfile
import time
from typing import Any

from .._errors import InvalidArgument, Unavailable
from .._live import ranks
from .._recorded.tables import needed
from .._tool import tool_path
from . import _executions, _inputs, _reruns, _tables, _tracing

_IDLE_SECONDS = 1.0
_LEAST_SECONDS = 1.5   # that all runs together take: so many readings of a sensor
_ENDING_SECONDS = 3.0  # to end a recording and analyse it
_GENERATION_SECONDS = 20.0  # of re-runs after a generation, at most


class _Profiler:
    """Runs a model, and lists the energy of each of its parts per run.

    `results` has a dict for each part; an unavailable figure is None, and `reason` gives the cause.
    `executions` has a dict for each execution of a layer, where profile() was asked for them.
    `device_index`: lists this GPU only, as nvidia-smi numbers it. `keep`: writes the recording to
    this *.jprof file, for `jouleprof report`. `memory=False`: does not use the power of kernels that
    earlier runs on the same GPU found, and stores none.
    """

    _by: str  # of the report
    _tables: _tables.Table

    def __init__(self, model: Any, device_index: int | None = None, *, keep: str | None = None,
                 tool: str | None = None, memory: bool = True) -> None:
        if not hasattr(model, "parameters"):
            raise InvalidArgument(f"{type(self).__name__} takes a torch.nn.Module, not {model!r}")
        self.model = model
        self.device_index = device_index
        self.results: list[dict[str, Any]] = []
        self.executions: list[dict[str, Any]] = []
        self.warnings: list[str] = []
        self._keep = keep
        self._memory = memory
        self._tool = tool or tool_path()
        self._stats = None
        self._macs = {}

    def profile(self, inputs: Any, num_runs: int = 10, warmup: int = 3, replay: float | None = None,
                max_seconds: float = 20, executions: bool = False) -> list[dict[str, Any]]:
        """Calls the model `warmup` times, then at least `num_runs` times under measurement, without
        gradients. Figures are per run.

        Runs are repeated until they take 1.5 s. On a GPU each kernel is then re-run in isolation, with
        the arguments of its last launches: the re-runs determine the power of kernels, the runs of the
        model their times. Re-runs repeat, longer each time, until every row of 5 % of the energy or
        more has a 95 % interval within ±10 %, or until `max_seconds` after the warm-up. Each repetition
        prints the open rows on stderr.

        `replay`: re-runs each kernel once, for so many seconds; 0: no re-runs. `max_seconds=0`: exactly
        `num_runs` runs, and re-runs only where `replay` is given.

        `executions`: `num_runs` further runs time each execution of each layer (docs/layers.md)."""
        _check(num_runs, warmup, max_seconds, 0 if replay is None else replay)
        self._check_executions(executions)
        self._macs = self._count_macs(inputs)
        args, kwargs = _inputs.arguments(inputs)
        reruns = None
        by_default = max_seconds > 0 and not _has_peers()
        if _has_gpu() and (by_default if replay is None else replay > 0):
            reruns = _reruns.Reruns()

        def run():
            self.model(*args, **kwargs)

        self.results, self._stats = self._measure(run, num_runs, warmup, max_seconds, reruns, replay)
        if executions:
            means = _executions.means(_tables.main(self.results))
            self._time(run, num_runs, lambda each: means.get(each["layer_name"]))
        return self.results

    def profile_generation(self, inputs: Any, max_new_tokens: int = 100, num_runs: int = 3, warmup: int = 1,
                           executions: bool = False, **options: Any) -> dict[str, Any]:
        """Text generation: first one token each (prefill), then all (prefill and decode). The
        difference is the energy of decoding. Returns the figures of both and joules per token.
        On a GPU kernels are re-run after the runs, as by profile(), for up to 20 s.

        `executions`: as for profile(); `step` 0 is prefill, each later one decodes one token."""
        _check(num_runs, warmup)
        self._check_executions(executions)
        if max_new_tokens < 2:
            raise InvalidArgument("max_new_tokens must be 2 or more: the first one is prefill")

        def generate(tokens):
            return lambda: _inputs.generate(self.model, inputs, tokens, options)

        def reruns():
            return _reruns.Reruns() if _has_gpu() and not _has_peers() else None

        self._macs = {}
        # Of prefill alone, only its rows need re-runs, and only executions need its rows.
        first, prefill = self._measure(generate(1), num_runs, warmup, reruns=reruns() if executions else None)
        self.results, self._stats = self._measure(generate(max_new_tokens), num_runs, warmup, reruns=reruns())
        generation = _tables.generation(prefill, self._stats, max_new_tokens)
        self._stats["generation"] = generation
        if executions:
            first, whole = _tables.main(first), _tables.main(self.results)
            in_prefill, in_decode = _executions.means(first), _executions.differences(whole, first)
            self._time(generate(max_new_tokens), num_runs, lambda each: (
                in_prefill if each["step"] == 0 else in_decode).get(each["layer_name"]))
        return generation

    def print_summary(self, top: int = 10) -> None:
        """Prints the rows with the most energy: those of the GPU, and in addition the CPU's."""
        print(self._tables.summary(self._need_stats(), self.results, top, self.warnings))

    def save_results(self, filename: str | None = None) -> None:
        """Writes all rows to `filename` (layer_power_profile.csv, kernel_power_profile.csv), and the
        first ten by energy to `<name>_top10_energy.csv`. Single executions, where profile() was asked for
        them, go to `<name>_executions.csv`."""
        self._need_stats()
        path, top = self._tables.save(filename or self._tables.file, self.results)
        print(f"{self._tables.title} results saved to {path}")
        self._print_top(top)
        if self.executions:
            single = path.with_name(path.stem + "_executions.csv")
            _executions.save(single, self.executions)
            print(f"{len(self.executions)} executions saved to {single} (energies are estimated)")

    def save_top10_energy_consumers(self, base_filename: str | None = None) -> None:
        """Writes the ten rows with the most energy to `<name>_top10_energy.csv`."""
        self._need_stats()
        self._print_top(self._tables.save_top(base_filename or self._tables.file, self.results))

    def get_run_stats(self) -> dict[str, Any]:
        """A dict of the whole run: energy, time, mean power, number of runs."""
        return dict(self._need_stats())

    def get_summary_stats(self) -> Any:
        """A pandas data frame with a row for each name: calls, and means of one run with the 95 % interval.

        Where profile() was asked for executions also their number, and mean, standard deviation, least and
        greatest of their times and of their estimated energies."""
        self._need_stats()
        names, columns = self._tables.summary_columns()
        frame = _pandas().DataFrame(self._tables.picked(_tables.main(self.results), names),
                                    columns=columns)
        frame = frame.groupby(columns[0], sort=False).sum(min_count=1)
        if not self.executions:
            return frame
        return frame.join(_pandas().DataFrame.from_dict(_executions.summary(self.executions), orient="index"))

    def get_results_dataframe(self) -> Any:
        """The columns of the CSV file as a pandas data frame."""
        return _pandas().DataFrame(self._tables.rows(self.results), columns=self._tables.columns)

    def get_executions_dataframe(self) -> Any:
        """A row for each execution, with the columns of `<name>_executions.csv`."""
        self._need_stats()
        return _pandas().DataFrame(self.executions, columns=_executions.COLUMNS)

    def _repr_html_(self):
        """The rows with the most energy, for notebooks."""
        if self._stats is None:
            return None
        return self._tables.html(self.results, 20)

    to_dataframe = get_results_dataframe

    def _print_top(self, path):
        print(f"Top 10 {self._tables.title.lower()} energy consumers saved to {path}")

    def _measure(self, run, num_runs, warmup, max_seconds=math.inf, reruns=None, replay=None):
        import torch

        wait = torch.cuda.synchronize if _has_gpu() else lambda: None
        with tempfile.TemporaryDirectory(prefix="jouleprof-") as folder:
            file = self._keep or os.path.join(folder, "profile.jprof")
            if os.path.exists(file):
                raise InvalidArgument(f"{file} exists already")
            side = self._watch()
            self._say("Running warmup")
            with torch.no_grad():
                for _ in range(warmup):
                    run()
                wait()
                side.forget()  # the calls of the warm-up
                end = time.perf_counter() + max_seconds - _ENDING_SECONDS
                self._say(f"Running {num_runs} profiling run(s)")
                what = "kernels,layers" if _has_gpu() else "layers"
                what += "" if reruns is None else ",replay"
                with _tracing.traced(what, self._tool, file, _IDLE_SECONDS,
                                     self._memory) as trace:
                    began = time.time()
                    least = 0 if _has_peers() else min(_LEAST_SECONDS, max_seconds / 4)
                    runs, seconds = repeat(run, wait, num_runs, least)
                    if reruns is not None:
                        trace.flush()
                        if end == math.inf:
                            end = time.perf_counter() + _GENERATION_SECONDS
                        rounds = [(replay, math.inf)] if replay else _reruns.rounds(
                            lambda: self._chosen(trace.report(self._by)), end)
                        reruns.run(_tracing.load_library(), rounds)
            report = _tracing.Report(file, self._by)
        devices = self._chosen(report)
        if not devices:
            raise Unavailable("no power sensor covers the model's run; see `jouleprof doctor`")
        self.warnings = [text for device in devices for text in device["warnings"]]
        self.warnings += self._missing_gpu(devices, report)
        if _has_peers() and max_seconds > 0:
            self.warnings.append("no repetition and no default re-runs: the other processes of the "
                                 "torch.distributed group would wait for them")
        if reruns is not None and any(device["domain"] == "gpu" for device in devices):
            names = _reruns.open_rows(devices)
            if names or replay:
                self.warnings += reruns.warnings()
            if names:
                self.warnings.append(f"{_reruns.progress(names)}; max_seconds or replay can be longer")
        rows = self._tables.results(devices, runs, self._macs)
        return rows, _tables.stats(devices, runs, seconds, began, rows)

    def _say(self, text):
        """For who waits."""

    def _check_executions(self, asked):
        self.executions = []
        if not asked:
            return
        layers = _tracing.load_hook("jouleprof_layers")
        if any(layers.is_compiled(module) for module in self.model.modules()):
            raise InvalidArgument("executions of compiled modules cannot be timed: profile the model before "
                                  "torch.compile, or without `executions`")
        if len({parameter.device for parameter in self.model.parameters() if parameter.is_cuda}) > 1:
            raise InvalidArgument("executions can be timed on one GPU only, and the model is on several")

    def _time(self, run, num_runs, mean_of):
        import torch

        names = self._watch().names
        gpu = next((parameter.device for parameter in self.model.parameters() if parameter.is_cuda), None)
        with torch.no_grad(), _executions.Readings() as readings:
            found = _executions.Timer(torch, self.model, names.name_of, gpu).time(run, num_runs)
        self.executions = readings.add_to(_executions.estimate(found, mean_of))

    def _chosen(self, report):
        if self.device_index is None:
            return report.devices
        return [device for device in report.devices
                if device["domain"] != "gpu" or device["device"] == f"gpu{self.device_index}"]

    def _missing_gpu(self, devices, report):
        """Why a model on a GPU has no rows of a GPU."""
        if any(device["domain"] == "gpu" for device in devices):
            return []
        if not any(parameter.is_cuda for parameter in self.model.parameters()):
            return []
        known = [device["device"] for device in report.devices if device["domain"] == "gpu"]
        if known:
            return [f"no rows of gpu{self.device_index}: the model ran on {', '.join(known)}"]
        why = "; ".join(report.warnings) or "no kernel was traced; see `jouleprof doctor`"
        return [f"the model is on a GPU, and no energy of a GPU is known: {why}"]

    def _need_stats(self):
        if self._stats is None:
            raise InvalidArgument("there are no results yet: call profile() first")
        return self._stats

    def _watch(self):
        """Installs the observation of modules; before the warm-up, which defines the layers."""
        side = _tracing.load_hook("jouleprof_layers").install(_tracing.load_library())
        if side is None:
            raise Unavailable("jouleprof cannot observe the modules of this PyTorch build")
        side.names.walk(self.model)
        return side

    def _count_macs(self, inputs):
        return {}


class LayerProfiler(_Profiler):
    """Joules per layer (module) of a model: by itself, and with all layers that it calls."""

    _by = "layer"
    _tables = _tables.LAYERS

    def _count_macs(self, inputs):
        by_module = _inputs.macs_by_module(self.model, inputs)
        return {name: by_module[id(module)] for name, module in self.model.named_modules()
                if id(module) in by_module}


class KernelProfiler(_Profiler):
    """Joules per GPU kernel that a model launches."""

    _by = "kernel"
    _tables = _tables.KERNELS

    def _check_executions(self, asked):
        if asked:
            raise InvalidArgument("executions are those of layers: use LayerProfiler. Single launches of kernels: "
                                  "jouleprof run --kernels --trace, then jouleprof export --format chrome")

    def _measure(self, *given, **named):
        if not _has_gpu():
            raise Unavailable("kernels run on a GPU, and this PyTorch has none; LayerProfiler "
                              "works on CPUs too")
        return super()._measure(*given, **named)


def repeat(run, wait, least_runs, least_seconds, clock=time.perf_counter):
    """Calls `run` that often or for that long, whichever is more. Returns the number of runs and the
    seconds that they took."""
    runs, more = 0, least_runs
    begin = clock()
    while True:
        for _ in range(more):
            run()
        wait()
        runs += more
        seconds = clock() - begin
        if seconds >= least_seconds:
            return runs, seconds
        # The first runs may be slower than the rest, or faster than the clock's resolution.
        more = min(math.ceil((least_seconds / max(seconds, 1e-9) - 1) * runs) + 1, 10 * runs)


def _pandas():
    return needed("pandas", "a data frame", "save_results()")


def _has_gpu():
    import torch

    return torch.cuda.is_available()


def _has_peers():
    """Whether collectives within the model might wait for other processes."""
    distributed = ranks.initialised()
    return distributed is not None and distributed.get_world_size() > 1


def _check(num_runs, warmup, max_seconds=1, replay=0):
    for name, value, kind, least in (("num_runs", num_runs, numbers.Integral, 1), ("warmup", warmup, numbers.Integral, 0),
                                     ("max_seconds", max_seconds, numbers.Real, 0), ("replay", replay, numbers.Real, 0)):
        if not isinstance(value, kind) or not value >= least:
            raise InvalidArgument(f"{name} must be {least} or more, not {value!r}")
