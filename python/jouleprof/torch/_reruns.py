"""Isolated re-runs of a model's kernels, in rounds, until the energies are resolved."""

import sys
import time

from .._errors import Error, Unavailable
from .._live import replay
from . import _names

SHARE = 0.05        # of the energy: from there on a row has to be resolved
HALF_WIDTH = 0.10   # of a row's energy: a 95 % interval within ± that is resolved
_FIRST_SECONDS = 0.3   # for each kernel, in the first round
_LEAST_SECONDS = 0.15  # a shorter round adds little
_PAUSE_SECONDS = 0.3   # about what a kernel takes in addition: pauses, timing
_ANALYSIS_SECONDS = 2  # about what a look at the recording takes
_MOST_SECONDS = 3600   # of a round
_MOST_NAMES = 4        # in one line
_NAME_WIDTH = 40


class Reruns:
    """Isolated re-runs of the kernels that this process has launched since its trace began."""

    def __init__(self):
        self._refused = None
        self._said = None  # of the first round; later ones repeat it

    def run(self, library, rounds):
        """`library`: traces this process. `rounds`: pairs of seconds for each kernel and the end (perf_counter)."""
        for seconds, end in rounds:
            try:
                said = replay.rerun(library, seconds, min(end - time.perf_counter(), _MOST_SECONDS))
            except Unavailable as error:
                self._refused = str(error)
                return
            self._said = self._said or said

    def warnings(self):
        return [text for text in (self._said, self._refused) if text]


def rounds(report, end, clock=time.perf_counter, log=None):
    """Pairs of seconds for each kernel and `end` (of `clock`), until the rows are resolved or `end` is
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
