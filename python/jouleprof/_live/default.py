"""The monitor of the module-level functions: opened at first use."""

import functools
import os
import sys
import threading

from . import compiled
from .monitor import Monitor

_lock = threading.Lock()
_monitor = None
_modules = sys.modules


class _DefaultMonitor(Monitor):
    """Once closed it is the default no more."""

    def close(self):
        global _monitor
        if _monitor is self:
            _monitor = None
        super().close()


def monitor():
    """The default monitor: all that this process can see."""
    global _monitor
    with _lock:
        if _monitor is None:
            _monitor = _DefaultMonitor()
        return _monitor


def window(name="", sync_execution=None):
    """Monitor.window of the default monitor."""
    if "torch" in _modules and compiled.is_compiling():
        return compiled.ignored(name)
    return (_monitor or monitor()).window(name, sync_execution)


def total(name, timeout=None):
    """Monitor.total of the default monitor."""
    return monitor().total(name, timeout)


def measure(name=None, sync_execution=None):
    """Monitor.measure of the default monitor, which is opened at the first call."""
    from . import measuring

    return measuring.measured(functools.partial(window, sync_execution=sync_execution), name)


def steps(loader, name="step", epoch="epoch", sync_execution=None):
    """Monitor.steps of the default monitor."""
    return monitor().steps(loader, name, epoch, sync_execution)


def _forget():
    global _monitor, _lock
    _monitor, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
