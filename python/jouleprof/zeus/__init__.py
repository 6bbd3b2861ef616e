"""For scripts written for Zeus 0.16: change `zeus` to `jouleprof.zeus` in the imports.

`jouleprof.zeus.monitor`, `.metric`, `.optimizer.power_limit` and `.profiling` have the classes of the
modules of the same name. What differs, and why, is in docs/python.md.
"""

from .._power_limit import Energy, MaxSlowdownConstraint, PowerLimitOptimizer, Time, ZeusCost
from .monitor import Measurement, PowerMonitor, TemperatureMonitor, ZeusMonitor

__all__ = [
    "Energy", "GlobalPowerLimitOptimizer", "MaxSlowdownConstraint", "Measurement", "PowerMonitor", "TemperatureMonitor",
    "Time", "ZeusCost", "ZeusMonitor",
]

GlobalPowerLimitOptimizer = PowerLimitOptimizer
