"""As zeus.monitor.temperature of Zeus 0.16."""

from .._sampled import SampledGpus

__all__ = ["TemperatureMonitor"]


class TemperatureMonitor(SampledGpus):
    """The temperature of GPUs over time, in degrees Celsius."""

    def __init__(self, gpu_indices=None, update_period=1.0, max_samples_per_gpu=None):
        super().__init__(gpu_indices, update_period, max_samples_per_gpu)

    def get_temperature_timeline(self, gpu_index=None, start_time=None, end_time=None):
        """{GPU: [(seconds since 1970, degrees)]}."""
        self._take()
        return self._timeline("temperature", gpu_index, start_time, end_time)

    def get_temperature(self, time=None):
        """Degrees by GPU at a time, None: the latest. None before the first sample."""
        self._take()
        return self._at("temperature", time)

    def _samples(self, snapshot):
        return {("temperature", gpu): (snapshot.time, round(state.gauges["temperature_celsius"]))
                for gpu, state in self._states(snapshot) if "temperature_celsius" in state.gauges}
