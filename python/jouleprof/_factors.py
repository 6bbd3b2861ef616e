"""Joules as kWh, money and CO2e: by factors that the user gives, with their source."""

from __future__ import annotations

import dataclasses

from . import _text
from ._arguments import number, text
from ._energy import JOULES_PER_KWH, Energy, Provenance
from ._errors import InvalidArgument


@dataclasses.dataclass(frozen=True)
class Factors:
    """What a kWh costs. There are no defaults: prices and grids differ by place and hour."""

    source: str  # where the numbers come from; kept with every figure
    price_per_kwh: float | None = None
    currency: str | None = None
    grams_co2e_per_kwh: float | None = None

    def __post_init__(self):
        if not isinstance(self.source, str) or not self.source.strip():
            raise InvalidArgument("Factors(source=...) has to say where the numbers come from")
        if self.price_per_kwh is None and self.grams_co2e_per_kwh is None:
            raise InvalidArgument("Factors needs price_per_kwh or grams_co2e_per_kwh")
        if (self.price_per_kwh is None) != (self.currency is None):
            raise InvalidArgument("Factors needs price_per_kwh and currency together")
        for name in ("price_per_kwh", "grams_co2e_per_kwh"):
            value = getattr(self, name)
            if value is not None:
                number(value, name, least=0)
        if self.currency is not None and not text(self.currency, "currency").strip():
            raise InvalidArgument("Factors(currency=...) names the price's currency, such as EUR")


@dataclasses.dataclass(frozen=True)
class Cost:
    """Half widths are of the 95 % interval of the energy; the factors count as exact."""

    kwh: float | None
    kwh_error: float | None
    price: float | None
    price_error: float | None
    currency: str | None
    grams_co2e: float | None
    grams_co2e_error: float | None
    provenance: Provenance  # the energy's
    source: str  # the factors'
    interval: str = ""  # the text of the energy's
    is_partial: bool = False  # a lower bound, as the energy

    @classmethod
    def of(cls, energy: Energy, factors: Factors) -> Cost:
        """Of an energy, with its interval; what no factor is known for is None."""
        kwh, error = energy.kwh, None if energy.error is None else energy.error / JOULES_PER_KWH

        def times(value, factor):
            return None if value is None or factor is None else value * factor

        price, grams = factors.price_per_kwh, factors.grams_co2e_per_kwh
        return cls(kwh, error, times(kwh, price), times(error, price), factors.currency,
                   times(kwh, grams), times(error, grams), energy.provenance, factors.source,
                   energy.interval_text(), energy.is_partial)

    def __str__(self):
        if self.kwh is None:
            return f"unavailable ({self.source})"
        parts = [f"{_text.number(self.kwh)} kWh"]
        if self.price is not None:
            parts.append(f"{_text.number(self.price)} {self.currency}")
        if self.grams_co2e is not None:
            parts.append(f"{_text.number(self.grams_co2e)} g CO2e")
        least = "at least " if self.is_partial else ""
        return f"{least}{', '.join(parts)} {self.interval}, {_text.word(self.provenance)} ({self.source})"
