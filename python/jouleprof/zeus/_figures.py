"""Joules by GPU, where a missing one says why it is missing."""

import warnings

from .._errors import Unavailable

_has_warned = False


def warn_of_provisional():
    """Once: a plain number of a figure can't carry a mark."""
    global _has_warned
    if _has_warned:
        return
    _has_warned = True
    warnings.warn("jouleprof: this energy is provisional: it includes an estimate of what the sensors have not reported "
                  "yet, about the last 0.15 s of the window. For final figures use ZeusMonitor(wait=True), or "
                  "measurement.wait()", RuntimeWarning, stacklevel=3)


class NoFigure(Unavailable, KeyError):
    """As a plain dict does, a KeyError."""

    __str__ = Exception.__str__


class Joules(dict):
    """{place: joules}. Equal to the plain dict of the same items; its text says where they are provisional."""

    is_provisional = False

    @classmethod
    def of_items(cls, items, is_final):
        self = cls(items)
        if not is_final:
            self.is_provisional = True
        return self

    def __repr__(self):
        return dict.__repr__(self) + (" (provisional)" if self.is_provisional else "")

    __str__ = __repr__


class ByGpu(Joules):
    """{GPU: joules}."""

    reasons = {}

    @classmethod
    def of(cls, measured, gpus, is_final=True):
        self = cls.of_items({i: j for i, j in measured.gpu_energy.items() if i in gpus}, is_final)
        self.reasons = {e.domain.index: e.reason for e in measured.values()
                        if e.domain is not None and e.domain.kind == "gpu" and e.joules is None}
        return self

    def __missing__(self, gpu):
        reason = self.reasons.get(gpu)
        if reason is None:
            raise KeyError(gpu)
        raise NoFigure(f"GPU {gpu} has no energy of this window: {reason}")
