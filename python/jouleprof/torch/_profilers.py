"""LayerProfiler and KernelProfiler."""

import os
import tempfile
import time

from .._errors import InvalidArgument, Unavailable
from . import _inputs, _tables, _tracing
from ._alone import Alone

_IDLE_SECONDS = 1.0


class _Profiler:
    """Runs a model, and lists what each part of it took per run.

    `results` has a dict for each part; a figure that could not be had is None, and `reason` says
    why. `keep`: where to keep the recording (*.jprof), for `jouleprof report`.
    """

    _by: str  # of the report
    _what: str  # to trace
    _tables: _tables.Table

    def __init__(self, model, *, keep=None, tool=None):
        self.model = model
        self.results = []
        self.warnings = []
        self._keep = keep
        self._tool = _tracing.find_tool(tool)
        self._stats = None
        self._macs = {}

    def profile(self, inputs, num_runs=10, warmup=3, replay=0.0):
        """Calls the model `warmup` times, then `num_runs` times under measurement, without
        gradients. More runs give narrower intervals: a second of them or more is worth having.

        A model that runs the same way over and over shows its kernels in one mixture, so that parts
        of it are not resolvable. `replay`: seconds for which each kind of module, and each kind of
        kernel, is then run alone, on its real inputs (0.3 to 1 is enough); kernels' power is learnt
        there, their times are those of the model's own runs."""
        import torch

        _positive(num_runs)
        self._macs = self._count_macs(inputs)
        args, kwargs = _inputs.arguments(inputs)
        alone = None
        if replay > 0 and torch.cuda.is_available():
            alone = Alone(self.model, args, kwargs, replay)

        def run():
            self.model(*args, **kwargs)

        self.results, self._stats = self._measure(run, num_runs, warmup, alone)
        return self.results

    def profile_generation(self, inputs, max_new_tokens=100, num_runs=3, warmup=1, **options):
        """Text generation: first one token each (prefill), then all (prefill and decode). The
        difference is what decoding took. Returns the figures of both and joules per token."""
        _positive(num_runs)
        if max_new_tokens < 2:
            raise InvalidArgument("max_new_tokens must be 2 or more: the first one is prefill")

        def generate(tokens):
            return lambda: _inputs.generate(self.model, inputs, tokens, options)

        self._macs = {}
        _, prefill = self._measure(generate(1), num_runs, warmup)
        self.results, self._stats = self._measure(generate(max_new_tokens), num_runs, warmup)
        generation = _tables.generation(prefill, self._stats, max_new_tokens)
        self._stats["generation"] = generation
        return generation

    def print_summary(self, top=10):
        print(self._table().summary(self._need_stats(), self.results, top, self.warnings))

    def save_results(self, path):
        """Writes `path` and, beside it, `<name>_top10_energy.csv`."""
        self._need_stats()
        for name in self._table().save(path, self.results):
            print(f"{self._table().title} results saved to {name}")

    def get_summary_stats(self):
        return dict(self._need_stats())

    def to_dataframe(self):
        try:
            import pandas
        except ImportError as error:
            raise Unavailable("to_dataframe() needs pandas; save_results() does not") from error
        return pandas.DataFrame(self._table().rows(self.results), columns=self._table().columns)

    def _measure(self, run, num_runs, warmup, alone=None):
        import torch

        wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
        with tempfile.TemporaryDirectory(prefix="jouleprof-") as folder:
            file = self._keep or os.path.join(folder, "profile.jprof")
            if os.path.exists(file):
                raise InvalidArgument(f"{file} exists already")
            side = self._watch()
            with torch.no_grad():
                for _ in range(warmup):
                    run()
                if alone is not None:
                    alone.find()
                wait()
                what = self._what if torch.cuda.is_available() else "layers"
                side.forget()  # the warm-up, before anything is told
                with _tracing.traced(what, self._tool, file, _IDLE_SECONDS) as flush:
                    began = time.time()
                    start = time.perf_counter()
                    for _ in range(num_runs):
                        run()
                    wait()
                    seconds = time.perf_counter() - start
                    if alone is not None:
                        flush()
                        alone.run(side)
            document = _tracing.report(self._tool, file, self._by)
        devices = document["devices"]
        if not devices:
            raise Unavailable("no power sensor covers what ran; see `jouleprof doctor`")
        self.warnings = [text for device in devices for text in device["warnings"]]
        if alone is not None:
            self.warnings += alone.warnings()
        rows = self._table().results(devices, num_runs, self._macs)
        return rows, _tables.stats(devices, num_runs, seconds, began, rows)

    def _table(self):
        return self._tables

    def _need_stats(self):
        if self._stats is None:
            raise InvalidArgument("there are no results yet: call profile() first")
        return self._stats

    def _watch(self):
        """Has the modules seen; before the warm-up, so that they are known after it."""
        side = _tracing.load_hook("jouleprof_layers").install(_tracing.load_library())
        if side is None:
            raise Unavailable("the modules of this PyTorch can't be seen by jouleprof")
        side.names.walk(self.model)
        return side

    def _count_macs(self, inputs):
        return {}


class LayerProfiler(_Profiler):
    """Joules per layer (module) of a model: what each ran itself, and with all that it called."""

    _by = "layer"
    _what = "kernels,layers"
    _tables = _tables.LAYERS

    def _count_macs(self, inputs):
        by_module = _inputs.macs_by_module(self.model, inputs)
        return {name: by_module[id(module)] for name, module in self.model.named_modules()
                if id(module) in by_module}


class KernelProfiler(_Profiler):
    """Joules per GPU kernel of what a model runs."""

    _by = "kernel"
    _what = "kernels,layers"
    _tables = _tables.KERNELS

    def _measure(self, run, num_runs, warmup, alone=None):
        import torch

        if not torch.cuda.is_available():
            raise Unavailable("kernels run on a GPU, and this PyTorch has none; LayerProfiler "
                              "works on CPUs too")
        return super()._measure(run, num_runs, warmup, alone)


def _positive(num_runs):
    if num_runs < 1:
        raise InvalidArgument("num_runs must be 1 or more")
