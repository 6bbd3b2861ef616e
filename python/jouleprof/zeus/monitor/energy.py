"""As zeus.monitor.energy of Zeus 0.16: the same calls, fields, errors and log columns."""

from __future__ import annotations

import dataclasses
import logging
import os
import time as _time
from typing import TYPE_CHECKING, Any, Literal

from ..._errors import InvalidArgument, Unavailable
from ..._live import provisional, sync
from ..._live.monitor import Monitor
from ..._live.window import Window
from ..._measurement import Measurement as _Whole
from .._devices import Cpus, Gpus, is_of_sensor
from .._figures import ByGpu, Joules, warn_of_provisional
from .._log import Log

__all__ = ["Measurement", "MeasurementState", "ZeusMonitor"]

logger = logging.getLogger(__name__)


@dataclasses.dataclass(repr=False)
class Measurement:
    """Fields as Zeus's. Reading one that end_window returned never waits.

    Until the sensors have reported the end of the window, about 0.15 s, `settled` is False and the energies
    are provisional: their text says so, the first one read gives a warning, and `jouleprof` has their interval.
    A GPU without a figure is not in gpu_energy, and total_energy is then None.
    """

    time: float
    gpu_energy: dict[int, float]
    # Factories, so that the class has no attribute of the name and __getattr__ is asked.
    cpu_energy: dict[int, float] | None = dataclasses.field(default_factory=lambda: None)
    dram_energy: dict[int, float] | None = dataclasses.field(default_factory=lambda: None)
    soc_energy: None = None

    @classmethod
    def _of(cls, window, gpus, cpus):
        self = cls.__new__(cls)
        self.__dict__.update(_window=window, _gpus=gpus, _cpus=cpus)
        return self

    if not TYPE_CHECKING:  # to a type checker the fields are the attributes

        def __getattr__(self, name):
            # Reached only for what is not there yet.
            if "_window" not in self.__dict__ or name not in _FIELDS:
                raise AttributeError(name)
            try:
                fields = self._fields_now()
            except Unavailable:
                if name != "time":
                    raise
                begin, end = self._window._host_edges()  # known without sensors
                return (end - begin) * 1e-9
            if getattr(fields[name], "is_provisional", False):
                warn_of_provisional()
            return fields[name]

    def _fields_now(self):
        measured, is_final = provisional.energy_now(self._window)
        fields = {
            "time": measured.time,
            "gpu_energy": ByGpu.of(measured, self._gpus, is_final),
            "cpu_energy": _of_sensors(measured, "cpu", self._cpus, is_final),
            "dram_energy": _of_sensors(measured, "dram", self._cpus, is_final),
        }
        if is_final:
            self.__dict__.update(fields)
        return fields

    def __repr__(self):
        fields = self.__dict__
        if "_window" in fields and "gpu_energy" not in fields:
            try:
                fields = self._fields_now()
            except Unavailable:
                fields = {"time": self.time, "gpu_energy": "unavailable"}
        words = [f"{f.name}={fields.get(f.name)!r}" for f in dataclasses.fields(self)]
        return f"{type(self).__name__}({', '.join(words)})"

    @property
    def settled(self) -> bool:
        """Whether the energies are final."""
        window = self.__dict__.get("_window")
        return window is None or window.poll() is not None

    def wait(self, timeout: float | None = None) -> Measurement:
        """Waits until the energies are final, for `timeout` seconds at most; returns itself."""
        window = self.__dict__.get("_window")
        if window is not None:
            window.wait(timeout)
        return self

    @property
    def total_energy(self) -> Any:
        """Joules of all GPUs asked for."""
        energies = self.gpu_energy
        if any(i not in energies for i in self.__dict__.get("_gpus", ())):
            return None
        return sum(energies.values())

    @property
    def jouleprof(self) -> _Whole | None:
        """The whole measurement, with intervals and provenance; None of a cancelled window."""
        window = self.__dict__.get("_window")
        return None if window is None else provisional.energy_now(window)[0]

    def __reduce__(self):
        self.wait()  # a copy could not settle any more
        # Which GPUs were asked for decides whether there is a total.
        return (type(self), tuple(getattr(self, f.name) for f in dataclasses.fields(self)),
                {"_gpus": self.__dict__.get("_gpus", ())})


_FIELDS = {"time", "gpu_energy", "cpu_energy", "dram_energy"}


def _of_sensors(measured, kind, places, is_final=True):
    """Without estimates: a plain number could not say that it is one."""
    energies = [e for e in measured.values() if e.domain.kind == kind]
    found = {i: e.joules for i, e in enumerate(energies)
             if i in places and (is_of_sensor(e) or e.method == provisional.METHOD)}
    return Joules.of_items(found, is_final) if found else None


@dataclasses.dataclass
class MeasurementState:
    """An open window: when it began, and the energies since the monitor was opened up to then."""

    time: float
    _monitor: Monitor = dataclasses.field(repr=False)
    _opened: int = dataclasses.field(repr=False)
    window: Window = dataclasses.field(repr=False)
    _cpus: list[int] = dataclasses.field(repr=False)

    # Reading one never waits: the window is open, and a wait would be in it.

    @property
    def gpu_energy(self) -> dict[int, float]:
        """Joules so far by GPU, as CUDA counts them."""
        measured, is_final = self._so_far()
        return ByGpu.of(measured, [e.domain.index for e in measured.values()], is_final)

    @property
    def cpu_energy(self) -> dict[int, float] | None:
        """Joules so far by processor package; None without any figure."""
        return _of_sensors(*self._so_far_of("cpu"))

    @property
    def dram_energy(self) -> dict[int, float] | None:
        """The same of their memory."""
        return _of_sensors(*self._so_far_of("dram"))

    def _so_far_of(self, kind):
        measured, is_final = self._so_far()
        return measured, kind, self._cpus, is_final

    def _so_far(self):
        if self._monitor is None:
            return self.window.energy, True
        return provisional.between_now(self._monitor, self._opened, self.window._host_begin())


class _NoSuchGpu(InvalidArgument, IndexError):
    """As Zeus does, an IndexError."""


class ZeusMonitor:
    """Measures the energy of windows between begin_window and end_window.

    approx_instant_energy is accepted and has no effect: short windows need no approximation here.
    wait, which Zeus does not have: end_window returns when the figures are final, about 0.15 s later, and not
    at once with provisional ones.
    """

    monitor: Monitor | None  # None: nothing can be measured
    cpu_indices: list[int]

    def __init__(self, gpu_indices: list[int] | None = None, cpu_indices: list[int] | None = None,
                 approx_instant_energy: bool = False, log_file: str | os.PathLike[str] | None = None,
                 sync_execution_with: Literal["torch", "jax", "cupy"] = "torch", *, wait: bool = False) -> None:
        self.approx_instant_energy = approx_instant_energy
        self._waits = wait
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
        self._opened = _time.monotonic_ns()
        self.gpus = Gpus(self.monitor)
        self.cpus = Cpus(self.monitor)
        present = self.monitor.gpu_indices if self.monitor else []
        self.gpu_indices = gpu_indices if gpu_indices is not None else present
        self.cpu_indices = cpu_indices if cpu_indices is not None else self.cpus.indices
        self.measurement_states: dict[str, MeasurementState] = {}
        self._log = None if log_file is None else Log(log_file, self.gpu_indices)
        self.log_file = None if self._log is None else self._log.file

    def begin_window(self, key: str, sync_execution: bool | None = True, restart: bool = False) -> None:
        """sync_execution: True: wait for the GPUs first; False: don't; None, which Zeus does not
        have: mark the place on the GPU's own timeline, without waiting."""
        if key in self.measurement_states:
            if not restart:
                raise InvalidArgument(f"Measurement window '{key}' already exists")
            self.measurement_states.pop(key).window._forget()
        self._synchronise(sync_execution)
        begun_at = _time.time()
        window = self._new_window(key, sync_execution).__enter__()
        self.measurement_states[key] = MeasurementState(begun_at, self.monitor, self._opened, window,
                                                        self.cpu_indices)

    def end_window(self, key: str, sync_execution: bool | None = True, cancel: bool = False) -> Measurement:
        """The measurement; cancel: one of zeros, which is not logged."""
        if key not in self.measurement_states:
            raise InvalidArgument(f"Measurement window '{key}' does not exist")
        self._synchronise(sync_execution)  # where it fails the window stays open
        state = self.measurement_states.pop(key)
        if cancel:
            state.window._forget()
            return Measurement(time=0.0, gpu_energy={i: 0.0 for i in self.gpu_indices},
                               cpu_energy={i: 0.0 for i in self.cpu_indices})
        state.window.__exit__(None, None, None)
        measurement = Measurement._of(state.window, self.gpu_indices, self.cpu_indices)
        if self._log is not None:
            self._log.add(state.time, key, measurement)
        return measurement.wait() if self._waits else measurement

    def reset_windows(self) -> None:
        """Forgets all open windows."""
        for state in self.measurement_states.values():
            state.window._forget()
        self.measurement_states.clear()

    def measurement_of(self, begin: int, end: int) -> Measurement:
        """The Measurement of the interval between two values of jouleprof.now(); waits until it is final."""
        if self.monitor is None:
            return Measurement((end - begin) * 1e-9, {})
        measured = self.monitor.between(begin, end)
        return Measurement(measured.time, ByGpu.of(measured, self.gpu_indices),
                           _of_sensors(measured, "cpu", self.cpu_indices),
                           _of_sensors(measured, "dram", self.cpu_indices))

    def _new_window(self, key, sync_execution):
        if self.monitor is None:
            return _TimeOnly()
        # True is done here, with the framework chosen, and leaves the stamps to the host.
        return self.monitor.window(str(key), None if sync_execution is None else False)

    def _synchronise(self, sync_execution):
        if sync_execution and self.gpu_indices:
            if self.sync_with not in ("torch", "jax", "cupy"):
                raise Unavailable(f"no framework is called '{self.sync_with}'")
            sync.function_of(self.sync_with)(self.gpu_indices)


class _TimeOnly(Window):
    """Where nothing can be measured at all."""

    __slots__ = ()

    def __init__(self):
        super().__init__(None, self, "", 0, None)

    def begin(self, number):
        return _time.monotonic_ns()

    def forget(self, begin, number):
        return None

    def end(self, begin, number):
        return _time.monotonic_ns()

    def poll(self):
        return self.energy

    def wait(self, timeout=None):
        return self.energy

    @property
    def energy(self):
        return _Whole(name="", time=self.time if self._end else 0.0, edges="host", _energies=())
