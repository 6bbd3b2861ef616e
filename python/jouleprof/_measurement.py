"""What a window's energy comes to."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterator, Literal

from . import _text
from ._energy import Domain, Energy, Figure, total_of
from ._errors import InvalidArgument, NotFound
from ._factors import Cost, Factors

Edges = Literal["host", "device", "synchronised", "mixed"]


class Figures(Figure):
    """What a Measurement and a Window have in common: `name`, `time`, `edges`, `total`, and the energies of
    _placed(), all domains in the monitor's order."""

    __slots__ = ()

    @property
    def joules(self) -> float | None:
        """Of the total."""
        return self.total.joules

    def __getitem__(self, device: str) -> Energy:
        """The energy of a device ("gpu0", "package-0"), as a whole if it has parts, of what its label names
        ("gpu_memory gpu0", "dram package-0"), or of all devices of a kind ("gpu", "cpu", "dram")."""
        found = [(d, e) for d, e in self._placed() if device in (d.device, d.label)]
        if found:
            return next((e for d, e in found if d.label == device), found[0][1])
        kind = [e for d, e in self._placed() if d.kind == device and d.is_whole]
        if not kind:
            raise NotFound(f"no device is called '{device}'; this measurement has: {', '.join(self)}")
        return kind[0] if len(kind) == 1 else total_of(kind)

    def keys(self) -> list[str]:
        """The labels of all domains, in the monitor's order; dict(measurement) has their energies."""
        return [d.label for d, _ in self._placed()]

    def values(self) -> list[Energy]:
        """The energies of all domains, in the same order."""
        return [e for _, e in self._placed()]

    def items(self) -> list[tuple[str, Energy]]:
        """The labels and energies of all domains, in the same order."""
        return [(d.label, e) for d, e in self._placed()]

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def __contains__(self, device: object) -> bool:
        return isinstance(device, str) and any(
            device in (d.device, d.label) or device == d.kind and d.is_whole for d, _ in self._placed())

    def to_dict(self) -> dict[str, Any]:
        """Texts and numbers only: the total's, and by device."""
        total = {**self.total.to_dict(), "watts": self.watts}
        del total["domain"]
        return {"name": self.name, "seconds": self.time, "edges": self.edges, **total,
                "devices": {label: energy.to_dict() for label, energy in self.items()}}

    # The same names as a Zeus measurement has.

    @property
    def gpu_energy(self) -> dict[int, float]:
        """Joules by GPU, as CUDA counts them; a GPU without a figure is not in it."""
        found = {d.index: e.joules for d, e in self._placed()
                 if d.kind == "gpu" and d.is_whole and d.index is not None and e.joules is not None}
        return dict(sorted(found.items()))

    @property
    def cpu_energy(self) -> dict[int, float] | None:
        """Joules by processor package, estimates too; None without any figure."""
        return self._by_package("cpu")

    @property
    def dram_energy(self) -> dict[int, float] | None:
        """The same of their memory."""
        return self._by_package("dram")

    @property
    def total_energy(self) -> float | None:
        """Joules of all GPUs; None unless every GPU has a figure."""
        gpus = [e.microjoules for d, e in self._placed() if d.kind == "gpu" and d.is_whole]
        known = [microjoules for microjoules in gpus if microjoules is not None]
        return sum(known) * 1e-6 if known and len(known) == len(gpus) else None

    def cost(self, factors: Factors) -> Cost:
        """What the total comes to in kWh, money and CO2e, by the factors that you give."""
        if not isinstance(factors, Factors):
            raise InvalidArgument(f"factors is a jouleprof.Factors, not {factors!r}")
        return Cost.of(self.total, factors)

    def _by_package(self, kind: str) -> dict[int, float] | None:
        places = [e for d, e in self._placed() if d.kind == kind]
        found = {i: e.joules for i, e in enumerate(places) if e.joules is not None}
        return found or None

    def _seconds(self):
        return self.time

    def _without(self):
        return self.total.reason


@dataclasses.dataclass(frozen=True)
class Measurement(Figures):
    """The energy of a window, or of several. Can be pickled, compared and kept after the monitor.

    float(m), m.joules, m.watts and m.kwh are of the total. For the devices it is like a dict: m["gpu0"] is the Energy
    of one, `for label in m` names them all, m.values() has their energies, m.items() both. A figure that could not be
    had is None, or is not in the dict: never 0.
    """

    name: str
    time: float  # seconds
    edges: Edges  # what began and ended the window
    _energies: tuple[Energy, ...] = dataclasses.field(repr=False)  # every domain's, in the monitor's order
    begin: int | None = None  # CLOCK_MONOTONIC, nanoseconds; None for a sum of windows
    end: int | None = None
    fixed_total: Energy | None = dataclasses.field(default=None, repr=False)

    @property
    def total(self) -> Energy:
        """The sum of the domains that have a figure: which, its `sensor` says; which have none, its
        `reason`. Parts of other domains are not added."""
        return self.fixed_total if self.fixed_total is not None else total_of(self._energies)

    def _placed(self) -> list[tuple[Domain, Energy]]:
        return [(e.domain, e) for e in self._energies if e.domain is not None]

    def table(self) -> str:
        """One line a domain. Long reasons are cut; `values()` has them in full."""
        return f"{self._title()}\n{_text.table(self._rows(_text.shortened))}"

    def _rows(self, shown_reason):
        total = self.total
        rows = [("", "energy", "95 %", "repeatability", "power", "", "")]
        for e in (*self._energies, total):
            label = _label(e.domain)
            joules = e.joules
            if joules is None:
                rows.append((label, "-", "-", "-", "-", "unavailable",
                             shown_reason(e.reason)))
                continue
            power = f"{_text.number(joules / self.time)} W" if self.time > 0 else "-"
            rows.append((label, e.joules_text(), e.interval_text(),
                         _text.interval(joules, e.repeatability), power,
                         _text.word(e.provenance), shown_reason(e.reason)))
        return rows

    def _title(self):
        name = f"{self.name}: " if self.name else ""
        return f"{name}{_text.seconds(self.time)} ({self.edges} edges)"

    def __str__(self):
        return self.table()

    def _repr_html_(self):
        """The table, for notebooks; reasons are in full."""
        return _text.html_table(self._title(), self._rows(str))

    def __repr__(self):
        total = self.total
        if total.microjoules is None:
            return f"<{type(self).__name__} {self._title()}: no figure; {total.reason}>"
        without = f", {total.reason}" if total.reason else ""
        return (f"<{type(self).__name__} {self._title()}: {total.joules_text()} "
                f"{total.interval_text()}, {_text.word(total.provenance)}: "
                f"{total.sensor}{without}>")


@dataclasses.dataclass(frozen=True, repr=False)
class Total(Measurement):
    """All windows of one name so far."""

    count: int = 0
    resolved_count: int = 0  # of those whose energy is in it

    def _title(self):
        return f"{super()._title()}, {self.count} windows"


def _label(domain: Domain | None) -> str:
    return "total" if domain is None else domain.label if domain.is_whole else f" {domain.label}"
