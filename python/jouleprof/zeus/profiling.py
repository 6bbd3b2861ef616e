"""As zeus.profiling of the first versions of Zeus: a stack of windows."""

from .._errors import InvalidArgument, Unavailable
from .._live import sync
from .._live.monitor import Monitor
from .monitor.energy import Measurement

__all__ = ["ProfilingResult", "ZeusProfilingService"]


class ProfilingResult(Measurement):
    """With `time` and `energy` as in Zeus; reading them never waits (see Measurement)."""

    @property
    def energy(self):
        """Joules of each GPU in the order of `gpu_indices`; None without a figure."""
        joules = self.gpu_energy
        return [joules.get(gpu) for gpu in self._gpus]

    def __repr__(self):
        return f"ProfilingResult(time={self.time}, energy={self.energy})"


class _EmptyStack(InvalidArgument, RuntimeError):
    """As Zeus does, a RuntimeError."""


class ZeusProfilingService:
    """push_window and pop_window. Both wait for the GPUs unless `sync_execution` is False, and
    neither for the sensors. `sync_execution_with`: "torch", "jax" or "cupy".

    The arguments of the polling program are accepted and have no effect: none is started.
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
        self._stack = []

    def push_window(self):
        self._synchronise(self.gpu_indices)
        self._stack.append(self.monitor.window("", False).__enter__())

    def pop_window(self):
        self._synchronise(self.gpu_indices)
        if not self._stack:
            raise _EmptyStack("no window was pushed: call push_window() first")
        window = self._stack.pop()
        window.__exit__(None, None, None)
        return ProfilingResult._of(window, self.gpu_indices, [])
