from typing import List, Sequence

from .. import MaxSlowdownConstraint as MaxSlowdownConstraint
from .. import PowerLimitMeasurement
from .. import PowerLimitOptimizer as GlobalPowerLimitOptimizer
from .. import ZeusCost as ZeusCost
from .monitor.energy import Measurement as Measurement
from .monitor.energy import ZeusMonitor as ZeusMonitor
from .monitor.power import PowerMonitor as PowerMonitor
from .monitor.temperature import TemperatureMonitor as TemperatureMonitor

__all__: List[str]

class Energy:
    def select(self, measurements: Sequence[PowerLimitMeasurement]) -> int: ...

class Time:
    def select(self, measurements: Sequence[PowerLimitMeasurement]) -> int: ...
