"""As zeus.monitor.carbon of Zeus 0.16, without its client of a web service: intensities are given or in a file."""

import abc
import dataclasses
import time
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

    def get_current_carbon_intensity(self):
        return self.at(time.time())


class FileCarbonIntensity(OfFile, CarbonIntensityProvider):
    """Of one zone, as Electricity Maps exports it: columns `Datetime (UTC)` and `Carbon intensity ...`."""

    def __init__(self, path):
        super().__init__(path, "datetime", "carbon intensity")

    def get_current_carbon_intensity(self):
        return self.at(time.time())


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
    def __init__(self, carbon_intensity_provider, gpu_indices=None, cpu_indices=None, sync_execution_with="torch"):
        super().__init__(carbon_intensity_provider, gpu_indices, cpu_indices, sync_execution_with)
        self.carbon_intensity_provider = carbon_intensity_provider

    def end_window(self, key, sync_execution=True):
        m, grams = self._end(key, sync_execution)
        return CarbonEmissionMeasurement(m.time, m.gpu_energy, grams["gpu"], m.cpu_energy, grams["cpu"], m.dram_energy,
                                         grams["dram"])
