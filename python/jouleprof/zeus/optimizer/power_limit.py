"""As zeus.optimizer.power_limit."""

from ..._power_limit import (
    Energy,
    MaxSlowdownConstraint,
    PowerLimitMeasurement,
    PowerLimitOptimizer,
    Time,
    ZeusCost,
)
from ..._power_limit import PowerLimitOptimizer as GlobalPowerLimitOptimizer

__all__ = ["Energy", "GlobalPowerLimitOptimizer", "MaxSlowdownConstraint", "PowerLimitMeasurement",
           "PowerLimitOptimizer", "Time", "ZeusCost"]
