"""As zeus.monitor.carbon of Zeus 0.16, without its client of a web service: intensities are given or in a file."""

import abc
import dataclasses
from typing import Dict, Optional

from .._factored import Constant, FactoredMonitor, OfFile, Provider

__all__ = ["CarbonEmissionMeasurement", "CarbonEmissionMonitor", "CarbonIntensityProvider", "ConstantCarbonIntensity",
           "FileCarbonIntensity"]


class CarbonIntensityProvider(Provider):
    """Grams of CO2 equivalent per kilowatt-hour. A class of your own needs get_current_carbon_intensity."""

    @abc.abstractmethod
    def get_current_carbon_intensity(self):
        """Now."""

    def at(self, unix_seconds):
        return self.get_current_carbon_intensity()


class ConstantCarbonIntensity(Constant, CarbonIntensityProvider):
    """The same at all times."""

    get_current_carbon_intensity = Provider.now


class FileCarbonIntensity(OfFile, CarbonIntensityProvider):
    """Of one zone, as Electricity Maps exports it: columns `Datetime (UTC)` and `Carbon intensity ...`."""

    get_current_carbon_intensity = Provider.now

    def __init__(self, path):
        super().__init__(path, "datetime", "carbon intensity")


@dataclasses.dataclass
class CarbonEmissionMeasurement:
    """Seconds, joules, and grams of CO2 equivalent. Absent figures are missing or None."""

    time: float
    gpu_energy: Dict[int, float]
    gpu_carbon_emission: Dict[int, float]
    cpu_energy: Optional[Dict[int, float]] = None
    cpu_carbon_emission: Optional[Dict[int, float]] = None
    dram_energy: Optional[Dict[int, float]] = None
    dram_carbon_emission: Optional[Dict[int, float]] = None


class CarbonEmissionMonitor(FactoredMonitor):
    _result = CarbonEmissionMeasurement

    def __init__(self, carbon_intensity_provider, gpu_indices=None, cpu_indices=None, sync_execution_with="torch"):
        super().__init__(carbon_intensity_provider, gpu_indices, cpu_indices, sync_execution_with)
        self.carbon_intensity_provider = carbon_intensity_provider
