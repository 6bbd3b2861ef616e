"""The energy and the power of one domain: figures with their intervals and where they come from."""

from __future__ import annotations

import dataclasses
from typing import Any, Literal, get_args

from . import _native, _text
from ._errors import Unavailable

JOULES_PER_KWH = 3.6e6
Provenance = Literal["measured", "estimated", "simulated", "unavailable"]
PROVENANCES = get_args(Provenance)


def label_of(kind, device):
    return device if kind in ("gpu", "cpu") else f"{kind} {device}"


@dataclasses.dataclass(frozen=True)
class Domain:
    """What has an energy: a whole GPU, a processor package, memory, or a part of one."""

    kind: str  # "gpu", "cpu", "dram", "gpu_memory", ...
    device: str  # "gpu0", "package-0"
    name: str  # "NVIDIA H100 80GB HBM3"
    uuid: str  # "GPU-..."; "" where there is none
    reason: str  # why there will be no energy of it; "" otherwise
    index: int | None  # of a GPU: as CUDA counts under CUDA_VISIBLE_DEVICES
    gpu_index: int | None  # of a GPU: as nvidia-smi counts

    @classmethod
    def of(cls, native):
        """From the extension's tuple: an index below 0 is None."""
        kind, device, name, uuid, reason, index, gpu_index = native
        return cls(kind, device, name, uuid, reason, None if index < 0 else index,
                   None if gpu_index < 0 else gpu_index)

    @property
    def label(self) -> str:
        """"gpu0", "package-0"; with the kind where the device alone would not say it."""
        return label_of(self.kind, self.device)

    @property
    def is_whole(self) -> bool:
        """Whether it adds to a total: no part of another domain, and contains none."""
        return self.kind in ("gpu", "cpu", "dram") and not self.uuid.startswith("MIG-")


def weakest(provenances):
    """A sum carries the weakest provenance of its parts."""
    return max(provenances, key=PROVENANCES.index)


class Figure:
    """What an Energy and a Measurement have in common: `joules` as a number and in other units."""

    __slots__ = ()
    joules: float | None

    def __float__(self) -> float:
        """In joules. Raises Unavailable, with the reason, where there is no figure."""
        if self.joules is None:
            raise Unavailable(f"no figure: {self._without()}")
        return self.joules

    def __format__(self, spec: str) -> str:
        """f"{energy:.1f}" is of the joules, as float() is; other formats are of the text."""
        return format(float(self) if spec[-1:] in tuple("eEfFgGn") else str(self), spec)

    @property
    def kwh(self) -> float | None:
        """Kilowatt-hours."""
        return None if self.joules is None else self.joules / JOULES_PER_KWH

    @property
    def watts(self) -> float | None:
        """The mean power; None where the time is not known."""
        seconds = self._seconds()
        return None if self.joules is None or not seconds else self.joules / seconds


@dataclasses.dataclass(frozen=True)
class Energy(Figure):
    """An energy in one domain, or of several together. Absent figures are None, never 0."""

    domain: Domain | None  # None: a total
    microjoules: int | None
    error_microjoules: int | None  # half of the 95 % interval
    repeatability_microjoules: int | None  # the same, without what is common to one device
    provenance: Provenance
    sensor: str = ""
    method: str = ""
    reason: str = ""  # why there is no figure, or what a total lacks
    seconds: float | None = None  # in which it was used; None where it is not known
    # The bounds of an interval that is not error_microjoules to both sides.
    low_microjoules: int | None = None
    high_microjoules: int | None = None
    is_partial: bool = False  # a device was lost while the work went on: a lower bound, without an upper one
    scope: str = "total"  # without a domain: what it is of, "total" or "command"

    @classmethod
    def of(cls, domain, native, seconds=None):
        """From the extension's tuple of a domain, or of all (`domain` is None), over so many seconds."""
        provenance, energy, error, repeatability, sensor, method, reason = native
        word = PROVENANCES[provenance]
        if word == "unavailable":
            return cls.unavailable(domain, reason or domain.reason, sensor, method)
        return cls(domain, energy, error, repeatability, word, sensor, method, reason, seconds)

    @classmethod
    def of_json(cls, domain, found):
        """Of an object of the tool's JSON, or of the library's."""
        if found["energy_joules"] is None:
            without = "; ".join(f"{d['device']}: {d['reason']}" for d in found.get("without", ()))
            return cls.unavailable(domain, found.get("reason") or (
                domain.reason if domain else without or "no domain has a figure"))
        low, high = found["interval_joules"]
        energy, low, repeatability = (microjoules(joules) for joules in (
            found["energy_joules"], low, found["repeatability_joules"]))
        if found.get("is_partial"):
            without = f"{found['reason']}; " if found.get("reason") else ""
            return cls(domain, energy, None, repeatability, found["provenance"], method="sum",
                       reason=f"{without}a lower bound: a device lacks readings of a part of the time",
                       low_microjoules=low, is_partial=True)
        high = microjoules(high)
        return cls(domain, energy, _half(low, high), repeatability, found["provenance"], found.get("sensor") or "",
                   found.get("method") or ("" if domain else "sum"), found.get("reason") or "", low_microjoules=low,
                   high_microjoules=high)

    @classmethod
    def unavailable(cls, domain: Domain | None, reason: str, sensor: str = "", method: str = "") -> Energy:
        """No figure, and why: its joules are None."""
        return cls(domain, None, None, None, "unavailable", sensor, method, reason)

    @property
    def joules(self) -> float | None:
        """None where it can't be had; `reason` says why. A lower bound where `is_partial`."""
        return _joules(self.microjoules)

    @property
    def low(self) -> float | None:
        """The lower bound of the 95 % interval; no energy is below zero."""
        if self.low_microjoules is not None:
            return self.low_microjoules * 1e-6
        if self.microjoules is None or self.error_microjoules is None:
            return None
        return max(0, self.microjoules - self.error_microjoules) * 1e-6

    @property
    def high(self) -> float | None:
        """The upper bound. Of sensors that are known to read low or high, the bounds are not `error` from `joules`."""
        if self.high_microjoules is not None:
            return self.high_microjoules * 1e-6
        if self.microjoules is None or self.error_microjoules is None:
            return None
        return (self.microjoules + self.error_microjoules) * 1e-6

    @property
    def error(self) -> float | None:
        """Half of the width of the 95 % interval, in joules; includes the sensor's gain error."""
        return _joules(self.error_microjoules)

    @property
    def repeatability(self) -> float | None:
        """Half of the 95 % interval of a difference's one side, on the same device, in joules."""
        return _joules(self.repeatability_microjoules)

    def to_dict(self) -> dict[str, Any]:
        """Texts and numbers only, as JSON and tables take them; None where there is no figure."""
        return {"domain": self._name(), "joules": self.joules, "low": self.low, "high": self.high,
                "repeatability": self.repeatability, "watts": self.watts, "kwh": self.kwh,
                "provenance": self.provenance, "sensor": self.sensor, "method": self.method, "reason": self.reason}

    def _name(self):
        return self.domain.label if self.domain else self.scope

    def _seconds(self):
        return self.seconds

    def _without(self):
        return f"{self._name()}: {self.reason}"

    def __repr__(self):
        what = self._name()
        if self.microjoules is None:
            return f"<Energy {what}: unavailable: {self.reason}>"
        return (f"<Energy {what}: {self.joules_text()} {self.interval_text()}, {_text.word(self.provenance)}>")

    def joules_text(self) -> str:
        """"12.34 kJ"; "at least 12.34 kJ" of a lower bound."""
        return ("at least " if self.is_partial else "") + _text.joules(self.joules)

    def interval_text(self) -> str:
        """Around `joules`: "±5.0 %", "-7.2 % +1.7 %", or "at most 772 J"."""
        if self.is_partial:
            return f"-{_text.number(100 * (1 - self.low / self.joules))} %" if self.joules else ""
        if self.high_microjoules is None:
            return _text.interval(self.joules, self.error)
        return _text.bounds(self.joules, self.low, self.high)


@dataclasses.dataclass(frozen=True)
class Power:
    """In watts. An absent figure is None, with a reason."""

    domain: str  # its label, "gpu0"; "total"; "command"
    watts: float | None
    low: float | None  # the 95 % interval; None where it is not known
    high: float | None
    provenance: Provenance
    over_seconds: float | None  # the mean over so long; None: as the sensor averages
    reason: str = ""

    @classmethod
    def mean_of(cls, energy: Energy, seconds: float) -> Power:
        """Energy by time, in watts, with the interval of the energy; unavailable where no time has passed."""
        label = energy._name()
        if energy.joules is None or not seconds > 0:
            return cls(label, None, None, None, "unavailable", seconds, energy.reason or "no time has passed")
        high = None if energy.high is None else energy.high / seconds
        return cls(label, energy.joules / seconds, energy.low / seconds, high, energy.provenance, seconds,
                   energy.reason)

    def __repr__(self):
        if self.watts is None:
            return f"<Power {self.domain}: unavailable: {self.reason}>"
        interval = ""
        if self.low is not None and self.high is not None:
            interval = f" {_text.bounds(self.watts, self.low, self.high, lambda watts: f'{_text.number(watts)} W')}"
        return f"<Power {self.domain}: {_text.number(self.watts)} W{interval}, {_text.word(self.provenance)}>"


def microjoules(joules):
    return round(joules * 1e6)


def _half(low, high):
    return (high - low + 1) // 2


def _joules(microjoules):
    return None if microjoules is None else microjoules * 1e-6


def total_of(energies) -> Energy:
    """The sum over the whole devices that have a figure; errors add up as if of one sign."""
    return _sum(energies, independent=False)


def total_of_ranks(energies) -> Energy:
    """As total_of, for independent devices: gains add up, repeatabilities in quadrature."""
    return _sum(energies, independent=True)


def _sum(energies, independent) -> Energy:
    whole = [e for e in energies if e.domain is None or e.domain.is_whole]
    found = [e for e in whole if e.microjoules is not None]
    missing = [e.domain.label for e in whole if e.microjoules is None and e.domain]
    boards = {e.domain.device for e in found if e.domain and e.domain.kind == "gpu"}
    missing += [f"{e.domain.device} (its whole module, with the CPU: {_text.joules(e.joules)})" for e in energies
                if e.domain and e.domain.kind == "module" and e.joules is not None and e.domain.device not in boards]
    reason = "without " + ", ".join(missing) if missing else ""
    if not found:
        return Energy.unavailable(None, reason or "no domain has a figure", method="sum")
    provenance, energy, error, repeatability = _native.sum_energies(
        [(PROVENANCES.index(e.provenance), e.microjoules,
          e.microjoules - e.low_microjoules if e.is_partial else e.error_microjoules,
          e.repeatability_microjoules) for e in found], independent)
    low = high = None
    # A device that has had a figure before, and has none of this time.
    is_partial = any(e.is_partial or e.microjoules is None and e.domain and not e.domain.reason for e in whole)
    if is_partial:
        low, error = max(0, energy - error), None
        reason = "; ".join([reason] * bool(reason) + [e.reason for e in found if e.is_partial])
    elif any(e.high_microjoules is not None for e in found):
        low, high = (sum(microjoules(bound) for bound in bounds) for bounds in zip(*((e.low, e.high) for e in found)))
        if independent:  # around the sum of their middles
            low, high = max(0, (low + high) // 2 - error), (low + high + 1) // 2 + error
        error = _half(low, high)
    return Energy(None, energy, error, repeatability, PROVENANCES[provenance],
                  sensor=" + ".join(e.domain.label for e in found if e.domain), method="sum",
                  reason=reason, seconds=max((e.seconds for e in found if e.seconds is not None), default=None),
                  low_microjoules=low, high_microjoules=high, is_partial=is_partial)
