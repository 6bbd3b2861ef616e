"""The power of one domain: mean, largest or latest."""

from __future__ import annotations

import dataclasses

from . import _text
from ._energy import Energy, Provenance


@dataclasses.dataclass(frozen=True)
class Power:
    """In watts. An absent figure is None, with a reason."""

    domain: str  # its label, "gpu0"; "total"
    watts: float | None
    low: float | None  # the 95 % interval; None where it is not known
    high: float | None
    provenance: Provenance
    over_seconds: float | None  # the mean over so long; None: as the sensor averages
    reason: str = ""

    @classmethod
    def mean_of(cls, energy: Energy, seconds: float) -> Power:
        label = energy.domain.label if energy.domain else "total"
        if energy.joules is None or not seconds > 0:
            return cls(label, None, None, None, "unavailable", seconds, energy.reason or "no time has passed")
        return cls(label, energy.joules / seconds, energy.low / seconds, energy.high / seconds, energy.provenance,
                   seconds)

    def __repr__(self):
        if self.watts is None:
            return f"<Power {self.domain}: unavailable: {self.reason}>"
        interval = "" if self.high is None else f" {_text.interval(self.watts, self.high - self.watts)}"
        return f"<Power {self.domain}: {_text.number(self.watts)} W{interval}, {_text.word(self.provenance)}>"
