"""As zeus.monitor: energy, power and temperature."""

from .energy import Measurement, ZeusMonitor
from .power import PowerMonitor
from .temperature import TemperatureMonitor

__all__ = ["Measurement", "PowerMonitor", "TemperatureMonitor", "ZeusMonitor"]
