"""What both callbacks do: windows around epochs and steps, and figures once they are known."""

from .. import _default
from .._errors import Error


class Training:
    """Epochs, and steps if wanted. Figures are handed on later, so that no epoch waits for them."""

    def __init__(self, monitor, steps, factors):
        self.monitor = monitor if monitor is not None else _default.monitor()
        self.epochs = []  # measurements, in order
        self._steps = steps
        self._factors = factors
        self._epoch = None
        self._step = None
        self._ended = []  # (window, what belongs to it)

    def begin_epoch(self):
        self._epoch = self.monitor.window("epoch").__enter__()

    def begin_step(self):
        if self._steps:
            self._step = self.monitor.window("step").__enter__()

    def end_step(self):
        if self._step is not None:
            self._step.__exit__(None, None, None)
            self._step = None

    def end_epoch(self, note):
        """`note` comes back with the epoch's metrics."""
        if self._epoch is not None:
            self._epoch.__exit__(None, None, None)
            self._ended.append((self._epoch, note))
            self._epoch = None

    def finished(self):
        """(metrics, note) of each epoch that ended since the last call; may wait for the last."""
        ended, self._ended = self._ended, []
        return [(self._metrics(window), note) for window, note in ended]

    def step_metrics(self):
        """Of all steps together, where steps were asked for."""
        if not self._steps:
            return {}
        try:
            total = self.monitor.total("step")
        except Error:
            return {}
        energy = total.total
        if energy.joules is None or not total.count:
            return {}
        return {"energy/step_joules": energy.joules / total.count,
                "energy/step_seconds": total.time / total.count}

    def _metrics(self, window):
        measurement = window.energy
        self.epochs.append(measurement)
        metrics = {"energy/epoch_seconds": measurement.time}
        energy = measurement.total
        if energy.joules is not None:
            metrics["energy/epoch_joules"] = energy.joules
            metrics["energy/epoch_joules_low"] = energy.low
            metrics["energy/epoch_joules_high"] = energy.high
        for part in measurement.energies:
            if part.joules is not None and part.domain.is_whole:
                name = part.domain.label.replace(" ", "_")
                metrics[f"energy/epoch_{name}_joules"] = part.joules
        if self._factors is not None:
            metrics.update(_costs(measurement.cost(self._factors)))
        return metrics


def _costs(cost):
    figures = {"energy/epoch_kwh": cost.kwh, "energy/epoch_grams_co2e": cost.grams_co2e,
               f"energy/epoch_{cost.currency}": cost.price}
    return {name: value for name, value in figures.items() if value is not None}
