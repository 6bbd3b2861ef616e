"""For scripts written for Zeus: `from jouleprof.zeus import ZeusMonitor, GlobalPowerLimitOptimizer`.

The same calls, fields, errors and log columns as zeus.monitor.ZeusMonitor of Zeus 0.16. What differs,
and why, is in docs/python.md.
"""

import dataclasses
import functools
import logging
import time as _time

from . import _sync
from ._errors import InvalidArgument, Unavailable
from ._monitor import Monitor
from ._power_limit import Energy, MaxSlowdownConstraint, PowerLimitOptimizer, Time, ZeusCost
from ._window import Window
from ._zeus_log import Log

__all__ = [
    "Energy", "GlobalPowerLimitOptimizer", "MaxSlowdownConstraint", "Measurement", "Time", "ZeusCost", "ZeusMonitor",
]

GlobalPowerLimitOptimizer = PowerLimitOptimizer

logger = logging.getLogger(__name__)


@dataclasses.dataclass
class Measurement:
    """Fields as Zeus's. One that end_window returns looks its energies up when they are first read.

    A GPU without a figure is not in gpu_energy, and total_energy is then None.
    """

    time: float
    gpu_energy: "dict[int, float]"
    # Factories, so that the class has no attribute of the name and __getattr__ is asked.
    cpu_energy: "dict[int, float] | None" = dataclasses.field(default_factory=lambda: None)
    dram_energy: "dict[int, float] | None" = dataclasses.field(default_factory=lambda: None)
    soc_energy: None = None

    @classmethod
    def _of(cls, window, gpus, cpus):
        self = cls.__new__(cls)
        self.__dict__.update(_window=window, _gpus=gpus, _cpus=cpus)
        return self

    def __getattr__(self, name):
        # Reached only for what is not there yet.
        own = self.__dict__
        if "_window" not in own or name not in _FIELDS:
            raise AttributeError(name)
        window = own["_window"]
        if name == "time":
            self.time = window.time
            return self.time
        measured = window.energy
        self.time = measured.time
        self.gpu_energy = {i: j for i, j in measured.gpu_energy.items() if i in own["_gpus"]}
        self.cpu_energy = _of_sensors(measured, "cpu", own["_cpus"])
        self.dram_energy = _of_sensors(measured, "dram", own["_cpus"])
        return own[name]

    @functools.cached_property
    def total_energy(self):
        """Joules of all GPUs asked for."""
        energies = self.gpu_energy
        if any(i not in energies for i in self.__dict__.get("_gpus", ())):
            return None
        return sum(energies.values())

    @property
    def jouleprof(self):
        """The whole measurement, with intervals and provenance; None of a cancelled window."""
        window = self.__dict__.get("_window")
        return None if window is None else window.energy

    def __reduce__(self):
        return (type(self), tuple(getattr(self, f.name) for f in dataclasses.fields(self)))


_FIELDS = {"time", "gpu_energy", "cpu_energy", "dram_energy"}


def _of_sensors(measured, kind, places):
    """Without estimates: a plain number could not say that it is one."""
    energies = [e for e in measured.energies if e.domain.kind == kind]
    found = {i: e.joules for i, e in enumerate(energies)
             if i in places and e.provenance in ("measured", "simulated")}
    return found or None


class _NoSuchGpu(InvalidArgument, IndexError):
    """As Zeus does, an IndexError."""


class ZeusMonitor:
    """Measures the energy of windows between begin_window and end_window.

    approx_instant_energy is accepted and has no effect: short windows need no approximation here.
    """

    def __init__(self, gpu_indices=None, cpu_indices=None, approx_instant_energy=False,
                 log_file=None, sync_execution_with="torch"):
        self.approx_instant_energy = approx_instant_energy
        self.sync_with = sync_execution_with
        try:
            self.monitor = Monitor(gpu_indices=gpu_indices)
        except InvalidArgument as error:
            raise _NoSuchGpu(*error.args) from None
        except Unavailable as error:
            if gpu_indices:
                raise
            logger.info("%s", error)
            self.monitor = None
        domains = self.monitor.domains if self.monitor else []
        present = self.monitor.gpu_indices if self.monitor else []
        self.gpu_indices = gpu_indices if gpu_indices is not None else present
        packages = list(range(sum(d.kind == "cpu" for d in domains)))
        self.cpu_indices = cpu_indices if cpu_indices is not None else packages
        self.measurement_states = {}
        self._log = None if log_file is None else Log(log_file, self.gpu_indices)
        self.log_file = None if self._log is None else self._log.file

    def begin_window(self, key, sync_execution=True, restart=False):
        """sync_execution: True: wait for the GPUs first; False: don't; None, which Zeus does not
        have: mark the place on the GPU's own timeline, without waiting."""
        if key in self.measurement_states:
            if not restart:
                raise InvalidArgument(f"Measurement window '{key}' already exists")
            del self.measurement_states[key]
        self._synchronise(sync_execution)
        begun_at = _time.time()
        self.measurement_states[key] = (begun_at, self._new_window(key, sync_execution).__enter__())

    def end_window(self, key, sync_execution=True, cancel=False):
        """The measurement; cancel: one of zeros, which is not logged."""
        try:
            begun_at, window = self.measurement_states.pop(key)
        except KeyError:
            raise InvalidArgument(f"Measurement window '{key}' does not exist") from None
        self._synchronise(sync_execution)
        if cancel:
            return Measurement(time=0.0, gpu_energy={i: 0.0 for i in self.gpu_indices},
                               cpu_energy={i: 0.0 for i in self.cpu_indices})
        window.__exit__(None, None, None)
        measurement = Measurement._of(window, self.gpu_indices, self.cpu_indices)
        if self._log is not None:
            self._log.add(begun_at, key, measurement)
        return measurement

    def reset_windows(self):
        """Forgets all open windows."""
        self.measurement_states.clear()

    def _new_window(self, key, sync_execution):
        if self.monitor is None:
            return _TimeOnly()
        # True is done here, with the framework chosen, and leaves the stamps to the host.
        return self.monitor.window(str(key), None if sync_execution is None else False)

    def _synchronise(self, sync_execution):
        if sync_execution and self.gpu_indices:
            if self.sync_with not in ("torch", "jax", "cupy"):
                raise Unavailable(f"no framework is called '{self.sync_with}'")
            _sync.function_of(self.sync_with)(self.gpu_indices)


class _TimeOnly(Window):
    """Where nothing can be measured at all."""

    __slots__ = ()

    def __init__(self):
        super().__init__(None, self, "", 0, None)

    def end(self, begin, number):
        return _time.monotonic_ns()

    @property
    def energy(self):
        from ._measurement import Measurement as Whole

        return Whole(name="", time=self.time, edges="host", energies=())
