"""What both callbacks do: windows around parts of a training, and their figures once they are known."""

from __future__ import annotations

import dataclasses

from .. import _metrics
from .._live import default, ranks
from .._measurement import Measurement


@dataclasses.dataclass
class Part:
    """An epoch, some steps, an evaluation: what is logged together."""

    kind: str
    window: object
    steps: int = 0
    tokens: int = 0  # that this rank counted
    place: object = None  # where in the training it ended


class Training:
    """Windows that have ended wait in a queue for their energy, so that the training does not."""

    def __init__(self, monitor, factors):
        self.monitor = monitor if monitor is not None else default.monitor()
        self._factors = factors
        self.start()

    def start(self):
        """Anew: a trainer may train more than once."""
        self.epochs: list[Measurement] = []
        self._open = {}
        self._ended = []

    def begin(self, kind):
        """Begins a window of this name, unless one is open."""
        if kind not in self._open:
            self._open[kind] = self.monitor.window(kind).__enter__()

    def is_open(self, kind):
        return kind in self._open

    def drop(self, kind):
        window = self._open.pop(kind, None)
        if window is not None:
            window._forget()

    def end(self, kind, steps=0, tokens=0, logged_as=None, place=None):
        """`logged_as`: in the names of its metrics; None: not logged. `place`: returned with them."""
        window = self._open.pop(kind, None)
        if window is None:
            return
        window.__exit__(None, None, None)
        if logged_as is not None:
            self._ended.append(Part(logged_as, window, steps, tokens, place))

    def finished(self, wait):
        """(place, metrics) of the parts that have ended, in order; without `wait`: of those whose energy is known.

        With several ranks, which all call it together: of those that every rank knows, summed."""
        known = []
        for part in self._ended:
            measurement = part.window.energy if wait else part.window.poll()
            if measurement is None:
                break
            known.append((measurement, part.tokens))
        gathered = _gathered(known)
        count = min(len(of_rank) for _, of_rank in gathered)
        ready, self._ended = self._ended[:count], self._ended[count:]
        found = []
        for i, part in enumerate(ready):
            if len(gathered) == 1:
                measurement = known[i][0]
            else:
                measurement = ranks.combined([(host, of_rank[i][0]) for host, of_rank in gathered])
            tokens = sum(of_rank[i][1] for _, of_rank in gathered)
            if part.kind == "epoch":
                self.epochs.append(measurement)
            found.append((part.place, self._metrics(part, measurement, tokens)))
        return found

    def _metrics(self, part, measurement, tokens):
        if part.kind == "step":
            return {"energy/step_seconds": measurement.time / part.steps,
                    **_metrics.of_energy(measurement.total, "energy/step_", part.steps)}
        metrics = _metrics.of_measurement(measurement, f"energy/{part.kind}_")
        joules = measurement.total.joules
        if tokens and joules is not None:
            metrics[f"energy/{part.kind}_joules_per_token"] = joules / tokens
        if self._factors is not None:
            metrics.update(_costs(part.kind, measurement.cost(self._factors)))
        return metrics


def _costs(kind, cost):
    figures = {f"energy/{kind}_kwh": cost.kwh, f"energy/{kind}_grams_co2e": cost.grams_co2e,
               f"energy/{kind}_{cost.currency}": cost.price}
    return {name: value for name, value in figures.items() if value is not None}


def _gathered(known):
    """(host, list) of every rank of torch.distributed; one without it."""
    distributed = ranks.initialised()
    if distributed is None or distributed.get_world_size() == 1:
        return [("", known)]
    return ranks.gathered(known)
