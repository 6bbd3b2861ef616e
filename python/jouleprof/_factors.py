"""Joules as kWh, money and CO2e: by factors that the user gives, with their source."""

import dataclasses
from typing import Optional

from . import _text
from ._arguments import number, text
from ._errors import InvalidArgument

JOULES_PER_KWH = 3.6e6


@dataclasses.dataclass(frozen=True)
class Factors:
    """What a kWh costs. There are no defaults: prices and grids differ by place and hour."""

    source: str  # where the numbers come from; kept with every figure
    price_per_kwh: Optional[float] = None
    currency: Optional[str] = None
    grams_co2e_per_kwh: Optional[float] = None

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

    kwh: Optional[float]
    kwh_error: Optional[float]
    price: Optional[float]
    price_error: Optional[float]
    currency: Optional[str]
    grams_co2e: Optional[float]
    grams_co2e_error: Optional[float]
    provenance: str  # the energy's
    source: str  # the factors'

    @classmethod
    def of(cls, energy, factors):
        kwh, error = (None if j is None else j / JOULES_PER_KWH
                      for j in (energy.joules, energy.error))

        def times(value, factor):
            return None if value is None or factor is None else value * factor

        price, grams = factors.price_per_kwh, factors.grams_co2e_per_kwh
        return cls(kwh, error, times(kwh, price), times(error, price), factors.currency,
                   times(kwh, grams), times(error, grams), energy.provenance, factors.source)

    def __str__(self):
        if self.kwh is None:
            return f"unavailable ({self.source})"
        parts = [f"{_text.number(self.kwh)} kWh"]
        if self.price is not None:
            parts.append(f"{_text.number(self.price)} {self.currency}")
        if self.grams_co2e is not None:
            parts.append(f"{_text.number(self.grams_co2e)} g CO2e")
        interval = _text.interval(self.kwh, self.kwh_error)
        return f"{', '.join(parts)} {interval}, {_text.word(self.provenance)} ({self.source})"
