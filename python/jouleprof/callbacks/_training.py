"""What both callbacks do: windows around parts of a training, and their figures once they are known."""

from __future__ import annotations

import dataclasses
import warnings

from .. import _metrics
from .._errors import Error, Unavailable
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


class _LostWindow:
    """Where none can be measured: it waits in the queue as others do, so that ranks stay in step."""

    def __init__(self, error):
        self._error = error

    def __exit__(self, kind, error, trace):
        pass

    def _forget(self):
        pass

    def poll(self):
        raise self._error

    energy = property(poll)


class _MonitorElsewhere:
    """Of a callback that was pickled."""

    def window(self, name):
        raise Unavailable("its monitor stayed in another process; a callback without one opens one in each")


class Training:
    """Windows that have ended wait in a queue for their energy, so that the training does not.

    What cannot be measured is a warning, once: it must not end the training."""

    def __init__(self, monitor, factors):
        self._monitor = monitor  # None: the default one of the process that trains, which a trainer may start later
        self._factors = factors
        self._has_warned = False
        self._open = {}
        self.start()

    def __getstate__(self):
        monitor = None if self._monitor is None else _MonitorElsewhere()
        return {**self.__dict__, "_monitor": monitor, "_open": {}, "_ended": []}

    def start(self):
        """Anew: a trainer may train more than once."""
        self.epochs: list[Measurement] = []
        self._ended = []
        self.drop_all()

    def ended_epochs(self):
        """Also those that no log entry has yet, as of a training that failed. All ranks log an epoch together."""
        if _world_size() > 1:
            return self.epochs
        ended = zip(self._ended, self._known(wait=True))
        return self.epochs + [m for part, (m, _) in ended if part.kind == "epoch" and m is not None]

    def begin(self, kind):
        """Begins a window of this name, unless one is open."""
        if kind in self._open:
            return
        try:
            monitor = default.monitor() if self._monitor is None else self._monitor
            self._open[kind] = monitor.window(kind).__enter__()
        except Error as error:
            self._open[kind] = _LostWindow(error)

    def begin_anew(self, kind):
        """Also where one is open, of a part that failed."""
        self.drop(kind)
        self.begin(kind)

    def is_open(self, kind):
        return kind in self._open

    def drop(self, kind):
        window = self._open.pop(kind, None)
        if window is not None:
            window._forget()

    def drop_all(self):
        for kind in list(self._open):
            self.drop(kind)

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
        known = self._known(wait)
        gathered = _gathered(known)
        count = min(len(of_rank) for _, of_rank in gathered)
        ready, self._ended = self._ended[:count], self._ended[count:]
        found = []
        for i, part in enumerate(ready):
            of_ranks = [(host, of_rank[i][0]) for host, of_rank in gathered]
            if any(measurement is None for _, measurement in of_ranks):
                continue
            measurement = of_ranks[0][1] if len(of_ranks) == 1 else ranks.combined(of_ranks)
            tokens = sum(of_rank[i][1] for _, of_rank in gathered)
            if part.kind == "epoch":
                self.epochs.append(measurement)
            found.append((part.place, self._metrics(part, measurement, tokens)))
        return found

    def waiting_kinds(self):
        """Of the parts that have ended and that finished() has not returned yet."""
        return {part.kind for part in self._ended}

    def _known(self, wait):
        """(measurement, tokens) of the parts that have ended, up to the first that is not known yet; None: lost."""
        known = []
        for part in self._ended:
            try:
                measurement = part.window.energy if wait else part.window.poll()
                if measurement is None:
                    break
            except Error as error:
                self._warn(part.kind, error)
                measurement = None
            known.append((measurement, part.tokens))
        return known

    def _warn(self, kind, error):
        if not self._has_warned:
            self._has_warned = True
            warnings.warn(f"jouleprof: no energy of '{kind}': {error}", RuntimeWarning, stacklevel=2)

    def _metrics(self, part, measurement, tokens):
        if part.kind == "step":
            return {"energy/step_seconds": measurement.time / part.steps,
                    **_metrics.of_energy(measurement.total, "energy/step_", part.steps)}
        metrics = _metrics.of_measurement(measurement, f"energy/{part.kind}_")
        joules = metrics.get(f"energy/{part.kind}_joules")
        if joules is None:
            return metrics
        if tokens:
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
    return [("", known)] if _world_size() == 1 else ranks.gathered(known)


def _world_size():
    distributed = ranks.initialised()
    return 1 if distributed is None else distributed.get_world_size()
