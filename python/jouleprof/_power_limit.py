"""Profiles power limits while a program trains, and stays at the best: Zeus's global optimizer."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import Any, Iterable, Sequence

from . import _files, _settings
from ._arguments import number, path
from ._errors import Corrupt, Error, InvalidArgument, Unavailable
from ._live.ranks import initialised


@dataclass(frozen=True)
class PowerLimitMeasurement:
    """The mean of one limit: joules of the GPUs and seconds, over the profiled steps."""

    power_limit: int  # watts
    energy: float
    time: float


class Energy:
    """The least energy."""

    def select(self, measurements: Sequence[PowerLimitMeasurement]) -> int:
        """The limit, in watts, with the least energy."""
        return min(measurements, key=lambda m: m.energy).power_limit


class Time:
    """The least time."""

    def select(self, measurements: Sequence[PowerLimitMeasurement]) -> int:
        """The limit, in watts, with the least time."""
        return min(measurements, key=lambda m: m.time).power_limit


class ZeusCost:
    """The least of eta x energy + (1 - eta) x highest limit x GPUs x time (NSDI 2023)."""

    def __init__(self, eta_knob: float, world_size: int = 1) -> None:
        if not 0 <= number(eta_knob, "eta_knob") <= 1:
            raise InvalidArgument("eta_knob must be from 0 to 1")
        self.eta_knob = eta_knob
        self.world_size = world_size

    def select(self, measurements: Sequence[PowerLimitMeasurement]) -> int:
        """The limit, in watts, with the least cost; the highest limit is that of the measurements."""
        most = max(m.power_limit for m in measurements) * self.world_size

        def cost(m):
            return self.eta_knob * m.energy + (1 - self.eta_knob) * most * m.time

        return min(measurements, key=cost).power_limit


class MaxSlowdownConstraint:
    """The least energy of the limits with at most `factor` times the time of the highest limit.

    Zeus takes the lowest such limit, which can need more energy than another one.
    """

    def __init__(self, factor: float) -> None:
        if number(factor, "factor") < 1:
            raise InvalidArgument("factor must be at least 1, such as 1.1 for 10 % slower")
        self.factor = factor

    def select(self, measurements: Sequence[PowerLimitMeasurement]) -> int:
        """The limit, in watts, with the least energy of those that are fast enough."""
        most = max(measurements, key=lambda m: m.power_limit).time * self.factor
        return Energy().select([m for m in measurements if m.time <= most])


_SELECTORS = {"energy": lambda gpus: Energy(), "time": lambda gpus: Time(), "cost": lambda gpus: ZeusCost(0.5, gpus)}


def _selector(chosen, gpus):
    """gpus: whose energies the measurements sum."""
    return _SELECTORS["cost" if chosen is None else chosen](gpus) if chosen is None or isinstance(chosen, str) else chosen


def _of_ranks(value):
    """The values of all ranks, in their order."""
    distributed = initialised()
    if distributed is None:
        return [value]
    gathered = [None] * distributed.get_world_size()
    distributed.all_gather_object(gathered, value)
    return gathered


def _over_ranks(energy, time, failure=None):
    """The sum of the ranks' energies, and the slowest rank's time. Where one rank has a failure, all
    raise it: none waits for the others."""
    gathered = _of_ranks((energy, time, failure))
    for rank, (_, _, reason) in enumerate(gathered):
        if reason is not None:
            raise Unavailable(reason if initialised() is None else f"rank {rank}: {reason}")
    return sum(e for e, _, _ in gathered), max(t for _, t, _ in gathered)


def _of_first_rank(make):
    """What `make()` returns or raises on rank 0, on all ranks."""
    distributed = initialised()
    if distributed is None:
        return make()
    outcome = [None]
    if distributed.get_rank() == 0:
        try:
            outcome = [(make(), None)]
        except Error as error:
            outcome = [(None, error)]
    distributed.broadcast_object_list(outcome, src=0)
    value, error = outcome[0]
    if error is not None:
        raise error
    return value


class PowerLimitOptimizer:
    """`with jouleprof.PowerLimitOptimizer(monitor) as plo:`; call plo.on_step_begin() and the like.

    monitor: a jouleprof.Monitor or ZeusMonitor; its GPUs are set. optimum_selector: "energy", "time",
        "cost" (the default, eta 0.5, of all GPUs), or an object with select(measurements).
    wait_steps: before the first limit of an epoch; warmup_steps, profile_steps: of each limit.
    pl_step: watts between two limits; limits: a list of watts instead.
    profile_path: a JSON file as Zeus writes it. It is written at the end. If it exists, nothing is
        profiled. It does not name the GPU and the model: use one for each.
    shared: set the limit also where other processes use a GPU.

    Each limit is measured once, from the highest on, while the training goes on. The limit found
    before is restored by close(), by the end of a `with`, and when this process dies. With
    torch.distributed, energies of all ranks are added, the slowest rank's time counts, and each rank
    sets its own GPUs, which must be of one kind; rank 0 reads and writes the profile. jouleprof sweep measures a program repeatedly, with
    intervals.
    """

    def __init__(self, monitor: Any, optimum_selector: Any = None, wait_steps: int = 1, warmup_steps: int = 10,
                 profile_steps: int = 40, pl_step: float = 25, profile_path: str | os.PathLike[str] | None = None, *,
                 limits: Iterable[float] | None = None, shared: bool = False) -> None:
        for name, value, least in (("wait_steps", wait_steps, 0), ("warmup_steps", warmup_steps, 0),
                                   ("profile_steps", profile_steps, 1), ("pl_step", pl_step, 1)):
            number(value, name, least=least)
        if limits is not None and not isinstance(limits, Iterable):
            raise InvalidArgument(f"limits is a list of watts, not {limits!r}")
        if isinstance(optimum_selector, str) and optimum_selector not in _SELECTORS:
            raise InvalidArgument(f"optimum_selector is {optimum_selector!r}; give energy, time or cost")
        self.monitor = monitor
        self.measurements: list[PowerLimitMeasurement] = []
        self.optimal_power_limit: int | None = None
        self._wait, self._warmup, self._profile = wait_steps, warmup_steps, profile_steps
        self._path = None if profile_path is None else path(profile_path, "profile_path")
        monitor = getattr(monitor, "monitor", monitor)  # a ZeusMonitor's
        if not hasattr(monitor, "domains"):
            raise InvalidArgument(f"monitor is a jouleprof.Monitor, not {monitor!r}")
        gpus = [d.uuid for d in monitor.domains if d.kind == "gpu" and d.uuid]
        if not gpus:
            raise Unavailable("the monitor has no GPU whose power limit could be set")
        self._monitor = monitor
        self.optimum_selector = _selector(optimum_selector, sum(_of_ranks(len(gpus))))
        known = _of_first_rank(self._load)  # a file of another host may differ
        self._window, self._phase = None, "done"
        self._limit = _settings.PowerLimit(gpus, shared)
        try:
            self._pending = [] if known else self._limits(limits, pl_step)
        except BaseException:
            self.close()
            raise
        self._phase, self._steps = ("ready", wait_steps) if self._pending else ("done", 0)
        if known:
            self.measurements = known
            self._choose()

    # ---- called by the training loop

    def on_epoch_begin(self) -> None:
        """Drops what an epoch that failed was profiling."""
        self.on_epoch_end()

    def on_epoch_end(self) -> None:
        """Drops a limit that is being profiled; it is profiled again in the next epoch."""
        if self._phase == "done":
            return
        if self._window is not None:
            self._window._forget()
            self._window = None
        self._phase, self._steps = "ready", self._wait

    def on_step_begin(self) -> None:
        """Before each step: sets the next limit, and begins the window that measures it."""
        if self._phase == "ready" and self._steps <= 0:
            self._limit.set(self._pending[0])
            self._phase, self._steps = "warmup", self._warmup
        if self._phase == "warmup" and self._steps <= 0:
            self._phase, self._steps = "profiling", self._profile
            self._window = self._monitor.window(f"__PowerLimitOptimizer_{self._pending[0]}")
            self._window.__enter__()

    def on_step_end(self) -> None:
        """After each step: ends the window after its steps, and sets the best limit after the last one."""
        if self._phase == "done":
            return
        self._steps -= 1
        if self._phase != "profiling" or self._steps > 0:
            return
        window, self._window = self._window, None
        window.__exit__(None, None, None)
        energy, time = self._measured(window)
        self.measurements.append(PowerLimitMeasurement(self._pending.pop(0), energy, time))
        if self._pending:
            self._phase, self._steps = "ready", 0
            return
        self._phase = "done"
        self._save()
        self._choose()

    # ---- afterwards

    @property
    def done(self) -> bool:
        """Whether all limits were profiled and the best one is set, or none will be, after give_up()."""
        return self._phase == "done"

    def give_up(self) -> None:
        """Restores the limit that was found, and profiles no more."""
        self.close()
        self._phase = "done"

    def close(self) -> None:
        """Restores the limit that was found."""
        self.on_epoch_end()
        self._limit.close()

    def __enter__(self) -> PowerLimitOptimizer:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    def _limits(self, limits, step):
        if limits is None:
            most, least = int(self._limit.most), int(-(-self._limit.least // 1))
            limits = range(most, least - 1, -int(step))
        chosen = sorted({round(number(watts, "a limit", " of watts")) for watts in limits}, reverse=True)
        outside = [w for w in chosen if not self._limit.least <= w <= self._limit.most]
        if outside or not chosen:
            raise InvalidArgument(f"limits must be from {self._limit.least:g} to "
                                  f"{self._limit.most:g} W; {outside} are not")
        return chosen

    def _measured(self, window):
        measurement = window.energy
        gpus = [e.joules for e in measurement.values()
                if e.domain is not None and e.domain.kind == "gpu"]
        failure = None
        if not gpus or any(joules is None for joules in gpus):
            failure = ("the energy of a GPU is not available, so no limit can be chosen: "
                       + "; ".join(e.reason for e in measurement.values() if e.reason))
        return _over_ranks(0 if failure else sum(gpus), window.time, failure)

    def _choose(self):
        self.optimal_power_limit = self.optimum_selector.select(self.measurements)
        self._limit.set(self.optimal_power_limit)

    def _load(self):
        if self._path is None or not os.path.exists(self._path):
            return []
        try:
            with open(self._path, encoding="utf-8") as file:
                known = [PowerLimitMeasurement(int(m["power_limit"]), float(m["energy"]),
                                               float(m["time"]))
                         for m in json.load(file)["measurements"]]
        except (ValueError, KeyError, TypeError) as error:
            raise Corrupt(f"{self._path} is not a profile of power limits: {error}") from None
        if not known:
            raise Corrupt(f"{self._path} has no measurements")
        return known

    def _save(self):
        distributed = initialised()
        is_first = distributed is None or distributed.get_rank() == 0
        if self._path is None or not is_first:
            return
        rows = [{"power_limit": m.power_limit, "energy": m.energy, "time": m.time}
                for m in self.measurements]
        with _files.replacing(self._path) as file:
            json.dump({"measurements": rows}, file, indent=4)
            file.write("\n")
