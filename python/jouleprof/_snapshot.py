"""What a monitor knows now."""

from __future__ import annotations

import dataclasses
import json

from ._energy import Domain, Energy, Power, Provenance
from ._errors import NotFound

_POWER = "power_watts"
_OF_ENERGY = ("domain", "device", "name", "provenance", "energy_joules", "interval_joules",
              "repeatability_joules", "energy_seconds", "sensor", "method", "reason",
              "age_seconds", "clock_limits", _POWER)


@dataclasses.dataclass(frozen=True)
class DomainSnapshot:
    """One domain now. Absent figures are None, or are not in the dict: never 0."""

    domain: Domain
    provenance: Provenance  # the weakest of energy and power
    energy: Energy  # since the monitor was opened, over `energy_seconds`
    energy_seconds: float | None
    power: float | None  # watts
    age: float | None  # seconds since the newest reading of energy or power
    gauges: dict[str, float]  # "temperature_celsius", "sm_clock_hertz", ...: docs/json.md
    clock_limits: tuple[str, ...] | None  # why clocks are held down: "power_limit", ...

    def latest_power(self) -> Power:
        """The power of the newest reading, in watts, without an interval; unavailable where there is none."""
        if self.power is None:
            return Power(self.domain.label, None, None, None, "unavailable", None,
                         self.domain.reason or "no reading of the last ten seconds")
        return Power(self.domain.label, self.power, None, None, self.provenance, None)


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """All domains of a monitor now, in the order of Monitor.domains."""

    time: float  # seconds since 1970
    elapsed: float  # seconds since the monitor was opened
    domains: tuple[DomainSnapshot, ...]

    def __getitem__(self, device: str) -> DomainSnapshot:
        """By device ("gpu0"), label ("dram package-0"), or kind ("cpu") where there is one of it."""
        for wanted in ("label", "device"):
            for d in self.domains:
                if getattr(d.domain, wanted) == device:
                    return d
        kind = [d for d in self.domains if d.domain.kind == device]
        if len(kind) == 1:
            return kind[0]
        raise NotFound(f"no device, or several, are called '{device}'; there are: "
                       f"{', '.join(d.domain.label for d in self.domains)}")


def snapshot_of(text, domains) -> Snapshot:
    """From the library's JSON; `domains`: those of its devices, in their order."""
    found = json.loads(text)
    return Snapshot(found["time_unix_seconds"], found["elapsed_seconds"],
                    tuple(_domain(d, of) for d, of in zip(domains, found["devices"])))


def _domain(domain, found):
    limits = found["clock_limits"]
    return DomainSnapshot(
        domain, found["provenance"], Energy.of_json(domain, found), found["energy_seconds"],
        found[_POWER], found["age_seconds"],
        {name: value for name, value in found.items()
         if name not in _OF_ENERGY and value is not None},
        None if limits is None else tuple(limits))
