"""As zeus.profiling of the first versions of Zeus: a stack of windows."""

import datetime
import logging
import os

from .._errors import InvalidArgument, Unavailable
from .._live import sync
from .._live.monitor import Monitor
from ._sampled import SampledGpus
from .monitor.energy import Measurement

__all__ = ["ProfilingResult", "ZeusProfilingService"]

LOG = logging.getLogger(__name__)
_POLLING_PERIOD = 0.1  # seconds, as Zeus asks of zeus_monitor


class ProfilingResult(Measurement):
    """With `time` and `energy` as in Zeus; reading them never waits (see Measurement)."""

    def __init__(self, time, energy):
        super().__init__(time, {i: joules for i, joules in enumerate(energy) if joules is not None})
        self.__dict__["_gpus"] = range(len(energy))

    @property
    def energy(self):
        """Joules of each GPU in the order of `gpu_indices`; None without a figure."""
        joules = self.gpu_energy
        return [joules.get(gpu) for gpu in self._gpus]

    def __eq__(self, other):
        return isinstance(other, ProfilingResult) and (self.time, self.energy) == (other.time, other.energy)

    def __reduce__(self):
        self.wait()
        return type(self), (self.time, self.energy)

    def __repr__(self):
        return f"ProfilingResult(time={self.time}, energy={self.energy})"


class _EmptyStack(InvalidArgument, RuntimeError):
    """As Zeus does, a RuntimeError."""


class ZeusProfilingService:
    """push_window and pop_window. Both wait for the GPUs unless `sync_execution` is False, and
    neither for the sensors. `sync_execution_with`: "torch", "jax" or "cupy".

    No energy comes from polled power. Where `monitor_log_dir` is given, the power of each GPU is logged there all the
    same, every 0.1 s, in files as zeus_monitor writes them: jouleprof.zeus.analyze and `jouleprof import` read them.
    `monitor_path` has no effect: no program is started.
    """

    def __init__(
        self,
        gpu_indices=None,
        monitor_path="zeus_monitor",
        monitor_log_dir="",
        monitor_log_prefix="",
        sync_execution=True,
        sync_execution_with="torch",
    ):
        self.monitor = Monitor(gpu_indices=gpu_indices)
        self.gpu_indices = list(gpu_indices) if gpu_indices is not None else self.monitor.gpu_indices
        if not self.gpu_indices:
            raise Unavailable("no GPU is visible; see `jouleprof doctor`")
        self.monitor_path = monitor_path
        self.monitor_log_dir = monitor_log_dir
        self.monitor_log_prefix = monitor_log_prefix
        self._synchronise = sync.function_of(sync_execution_with) if sync_execution else lambda _: None
        self.prof_start_info = []  # the windows that are open
        self.monitors = {}
        if monitor_log_dir:
            os.makedirs(monitor_log_dir, exist_ok=True)
            log = _PowerLog(self.gpu_indices, {gpu: self._monitor_log_path(gpu) for gpu in self.gpu_indices})
            self.monitors = {gpu: log for gpu in self.gpu_indices}
            for gpu in self.gpu_indices:
                self._log("Zeus monitor started.", gpu)

    def push_window(self):
        """Begins a window within those that are open."""
        self._synchronise(self.gpu_indices)
        self.prof_start_info.append(self.monitor.window("", False).__enter__())
        self._log("Profiling window pushed.")

    def pop_window(self):
        """Ends the innermost window."""
        self._synchronise(self.gpu_indices)
        if not self.prof_start_info:
            raise _EmptyStack("No profiling window active. Call push_window() first.")
        window = self.prof_start_info.pop()
        window.__exit__(None, None, None)
        self._log("Profiling window popped.")
        return ProfilingResult._of(window, self.gpu_indices, [])

    def _monitor_log_path(self, gpu_index):
        prefix = f"{self.monitor_log_prefix}+" if self.monitor_log_prefix else ""
        return f"{self.monitor_log_dir}/{prefix}gpu{gpu_index}.power.csv"

    def _stop_monitors(self):
        for log in set(self.monitors.values()):
            log.stop()
        for gpu in self.monitors:
            self._log("Zeus monitor stopped.", gpu)
        self.monitors = {}

    def _log(self, message, gpu_index=None, level=logging.INFO):
        gpus = self.gpu_indices if gpu_index is None else [gpu_index]
        LOG.log(level, "[ZeusProfilingService] [GPU_%s] %s", ",".join(map(str, gpus)), message)


class _PowerLog(SampledGpus):
    """A file for each GPU, with the columns of zeus_monitor, in UTC; a row is in it at once. Provenance follows where a
    GPU is not measured."""

    def __init__(self, gpu_indices, paths):
        self._files = {gpu: open(path, "w", buffering=1, encoding="utf-8") for gpu, path in paths.items()}
        self._ends = {}  # what stands after a row's power
        super().__init__(gpu_indices, _POLLING_PERIOD, 1)

    def _samples(self, snapshot):
        found = {}
        for gpu, state in self._states(snapshot):
            if state.power is not None:
                moment = snapshot.time - (state.age or 0.0)
                found["power", gpu] = moment, state.power
                if self._is_new(("power", gpu), moment):
                    self._write(gpu, moment, state)
        return found

    def _write(self, gpu, moment, state):
        if gpu not in self._ends:
            measured = state.provenance == "measured"
            self._ends[gpu] = "" if measured else f",{state.provenance}"
            self._files[gpu].write("Time,Power\n" if measured else "Time,Power,Provenance\n")
        when = datetime.datetime.fromtimestamp(moment, datetime.timezone.utc)
        self._files[gpu].write(f"{when:%Y-%m-%d %H:%M:%S.%f},{state.power:.3f}{self._ends[gpu]}\n")

    def stop(self):
        super().stop()
        for file in self._files.values():
            file.close()
