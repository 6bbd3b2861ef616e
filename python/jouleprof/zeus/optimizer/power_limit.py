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

__all__ = ["Energy", "GlobalPowerLimitOptimizer", "HFGlobalPowerLimitOptimizer", "MaxSlowdownConstraint",
           "PowerLimitMeasurement", "PowerLimitOptimizer", "Time", "ZeusCost"]


def __getattr__(name):
    # transformers is imported when its callback is asked for, not before.
    if name == "HFGlobalPowerLimitOptimizer":
        from ...callbacks import HuggingFacePowerLimitOptimizer

        return HuggingFacePowerLimitOptimizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
