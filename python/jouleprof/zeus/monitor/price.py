"""As zeus.monitor.price of Zeus 0.16, without its client of a web service: prices are given or in a file."""

import dataclasses
from typing import Dict, Optional

from .._factored import Constant, FactoredMonitor, OfFile, Provider

__all__ = ["ConstantElectricityPrice", "ElectricityPriceProvider", "EnergyCostMeasurement", "EnergyCostMonitor",
           "FileElectricityPrice"]


class ElectricityPriceProvider(Provider):
    """The price of a kilowatt-hour. A class of your own needs at()."""

    get_current_electricity_price = Provider.now


class ConstantElectricityPrice(Constant, ElectricityPriceProvider):
    """The same at all times."""


class FileElectricityPrice(OfFile, ElectricityPriceProvider):
    """A CSV file with columns `time` (UTC) and `price` (of a kilowatt-hour)."""

    def __init__(self, path):
        super().__init__(path, "time", "price")


@dataclasses.dataclass
class EnergyCostMeasurement:
    """Seconds, joules, and their cost in the currency of the price. Absent figures are missing or None."""

    time: float
    gpu_energy: Dict[int, float]
    gpu_energy_cost: Dict[int, float]
    cpu_energy: Optional[Dict[int, float]] = None
    cpu_energy_cost: Optional[Dict[int, float]] = None
    dram_energy: Optional[Dict[int, float]] = None
    dram_energy_cost: Optional[Dict[int, float]] = None


class EnergyCostMonitor(FactoredMonitor):
    _result = EnergyCostMeasurement

    def __init__(self, electricity_price_provider, gpu_indices=None, cpu_indices=None, sync_execution_with="torch"):
        super().__init__(electricity_price_provider, gpu_indices, cpu_indices, sync_execution_with)
        self.electricity_price_provider = electricity_price_provider
