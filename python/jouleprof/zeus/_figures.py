"""Joules by GPU, where a missing one says why it is missing."""

from .._errors import Unavailable


class NoFigure(Unavailable, KeyError):
    """As a plain dict does, a KeyError."""

    __str__ = Exception.__str__


class ByGpu(dict):
    """{GPU: joules}. Equal to the plain dict of the same items."""

    reasons = {}

    @classmethod
    def of(cls, measured, gpus):
        self = cls({i: j for i, j in measured.gpu_energy.items() if i in gpus})
        self.reasons = {e.domain.index: e.reason for e in measured.energies
                        if e.domain is not None and e.domain.kind == "gpu" and e.joules is None}
        return self

    def __missing__(self, gpu):
        reason = self.reasons.get(gpu)
        if reason is None:
            raise KeyError(gpu)
        raise NoFigure(f"GPU {gpu} has no energy of this window: {reason}")
