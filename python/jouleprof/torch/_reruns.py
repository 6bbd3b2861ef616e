"""Isolated re-runs of a model's modules and kernels, in rounds, until the energies are resolved."""

import sys
import time

from .._errors import Error
from . import _names, _tracing

SHARE = 0.05        # of the energy: from there on a row has to be resolved
HALF_WIDTH = 0.10   # of a row's energy: a 95 % interval within ± that is resolved
_FIRST_SECONDS = 0.3   # for each kind, in the first round
_LEAST_SECONDS = 0.15  # a shorter round adds little
_PAUSE_SECONDS = 0.3   # about what a kind takes in addition: pauses, timing
_ANALYSIS_SECONDS = 2  # about what a look at the recording takes
_MOST_NAMES = 4        # in one line
_NAME_WIDTH = 40


class Reruns:
    """Isolated re-runs of each kind of module, and of kernel, that `model(*args, **kwargs)` runs."""

    def __init__(self, model, args, kwargs):
        import torch

        self._hook = _tracing.load_hook("jouleprof_replay")
        self._call = self._hook.Call(torch, model, args, kwargs)
        self._modules = self._hook.Kinds(torch)
        self._kernels = None
        self._failed = []  # in the first round; later ones repeat it

    def find(self):
        """Calls the model once. False where it runs on no GPU."""
        self._modules.find(self._call.module, self._call)
        return bool(self._call.devices())

    def run(self, side, rounds):
        """`side`: of the hook jouleprof_layers. `rounds`: pairs of seconds for each kind and the
        end (perf_counter) after which no kind is begun."""
        side.replay_begin()
        try:
            time.sleep(self._hook.SETTLE_SECONDS)
            with self._hook.unchanged(self._call.torch, [self._call.module]):
                for seconds, end in rounds:
                    side.replayed(-1.0, 0)  # the analysis between two rounds is no work either
                    self._round(side, seconds, end)
        finally:
            side.replay_end()

    def _round(self, side, seconds, end):
        """Kernels first: modules are mixtures of them."""
        if self._kernels is not None:
            self._kernels.again(side, seconds, end)
            self._modules.replay(side, seconds, end)
            return
        self._kernels = _tracing.load_hook("jouleprof_kernels").Kinds(
            self._call.torch, _tracing.load_library(),
            _tracing.load_hook("jouleprof_cuda_graph").Driver(), keep=True)
        self._kernels.replay(self._call, side, seconds, end)
        if self._kernels.stuck:
            raise Error(f"the GPU does not go on, so this program cannot either: {self._kernels.failed[-1]}; end "
                        "it, and profile with `jouleprof run --layers`, which re-runs no kernels")
        self._modules.replay(side, seconds, end)
        self._failed = self._kernels.failed + sorted(self._modules.failed)

    def warnings(self):
        return [f"not re-run in isolation: {', '.join(self._failed)}"] if self._failed else []


def rounds(report, end, clock=time.perf_counter, log=None):
    """Pairs of seconds for each kind and `end` (of `clock`), until the rows are resolved or `end` is
    near. `report()` returns the devices of the recording so far. Prints a line before each later
    round."""
    seconds = _FIRST_SECONDS
    while True:
        begin = clock()
        yield seconds, end
        took = max(clock() - begin, 1e-3)
        if end - clock() < _ANALYSIS_SECONDS:
            return
        try:
            names = open_rows(report())
        except Error:  # nothing is recorded yet
            names = []
        else:
            if not names:
                return
        left = end - clock()
        longest = left * (seconds + _PAUSE_SECONDS) / took - _PAUSE_SECONDS
        seconds = min(2 * seconds, longest)
        if seconds < _LEAST_SECONDS:
            return
        print(f"jouleprof: {progress(names)}; re-runs continue for up to {left:.0f} s",
              file=log or sys.stderr, flush=True)


def progress(names):
    if not names:
        return "no energies are known yet"
    shown = _names.shortened(names[:_MOST_NAMES], [_NAME_WIDTH] * _MOST_NAMES)
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return (f"{len(names)} with {SHARE * 100:.0f} % of the energy or more not within "
            f"±{HALF_WIDTH * 100:.0f} %: {', '.join(shown)}{more}")


def open_rows(devices):
    """Names of the rows, of GPUs, that have a share of 5 % or more and are not resolved."""
    names = []
    for device in devices:
        if device["domain"] != "gpu":
            continue
        busy = sum(row["busy_seconds"] for row in device["rows"])
        for row in device["rows"]:
            if _is_open(row, device["kernels_joules"], busy) and row["name"] not in names:
                names.append(row["name"])
    return names


def _is_open(row, joules, busy):
    if row["energy_joules"] is None:
        return row["busy_seconds"] > 0 and row["busy_seconds"] >= SHARE * busy
    for energy, interval in ((row["energy_joules"], row["interval_joules"]),
                             (row["inclusive_joules"], row["inclusive_interval_joules"])):
        if energy is None or energy <= 0 or energy < SHARE * joules:
            continue
        half = max(interval[1] - energy, energy - interval[0])
        if not row["resolvable"] or half > HALF_WIDTH * energy:
            return True
    return False
