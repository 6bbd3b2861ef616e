"""As zeus.profiling of the first versions of Zeus: a stack of windows."""

import dataclasses
from typing import List, Optional

from .._errors import InvalidArgument, Unavailable
from .._live import sync
from .._live.monitor import Monitor

__all__ = ["ProfilingResult", "ZeusProfilingService"]


@dataclasses.dataclass
class ProfilingResult:
    """Seconds, and joules of each GPU in the order of `gpu_indices`; None without a figure."""

    time: float
    energy: List[Optional[float]]


class _EmptyStack(InvalidArgument, RuntimeError):
    """As Zeus does, a RuntimeError."""


class ZeusProfilingService:
    """push_window and pop_window. Both wait for the GPUs, and pop_window for the sensors.

    The arguments of the polling program are accepted and have no effect: none is started.
    """

    def __init__(self, gpu_indices=None, monitor_path="zeus_monitor", monitor_log_dir="", monitor_log_prefix=""):
        self.monitor = Monitor(gpu_indices=gpu_indices)
        self.gpu_indices = list(gpu_indices) if gpu_indices is not None else self.monitor.gpu_indices
        if not self.gpu_indices:
            raise Unavailable("no GPU is visible; see `jouleprof doctor`")
        self.monitor_path = monitor_path
        self.monitor_log_dir = monitor_log_dir
        self.monitor_log_prefix = monitor_log_prefix
        self._stack = []

    def push_window(self):
        sync.function_of("torch")(self.gpu_indices)
        self._stack.append(self.monitor.window("", False).__enter__())

    def pop_window(self):
        sync.function_of("torch")(self.gpu_indices)
        if not self._stack:
            raise _EmptyStack("no window was pushed: call push_window() first")
        window = self._stack.pop()
        window.__exit__(None, None, None)
        joules = window.energy.gpu_energy
        return ProfilingResult(window.time, [joules.get(gpu) for gpu in self.gpu_indices])
