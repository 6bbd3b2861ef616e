"""The monitor of the module-level functions: opened at first use."""

from __future__ import annotations

import functools
import os
import sys
import threading
from typing import Any, Callable, Iterable, overload

from .._measurement import Total
from . import compiled, measuring
from .measuring import F
from .monitor import Monitor
from .steps import Steps, T, Tagged
from .window import Window

_lock = threading.RLock()  # a signal's handler may use windows, too
_monitor: Monitor | None = None
_modules = sys.modules


class _DefaultMonitor(Monitor):
    """Once closed it is the default no more."""

    def close(self):
        global _monitor
        if _monitor is self:
            _monitor = None
        super().close()


def monitor() -> Monitor:
    """The default monitor: all that this process can see."""
    global _monitor
    with _lock:
        if _monitor is None:
            opened = _DefaultMonitor()
            if _monitor is None:
                _monitor = opened
            else:  # a signal's handler has opened it meanwhile
                opened.close()
        return _monitor


def window(name: str = "", sync_execution: bool | None = None) -> Window:
    """Measures the energy of a region of this program; for a `with` or an `async with`.

        with jouleprof.window("epoch") as epoch:
            train()
        print(epoch.energy)                    # a Measurement: waits about 0.15 s for the sensors
        print(float(epoch), epoch["gpu0"])     # joules in all; the Energy of one device

    name: of the window; give windows of one kind one name. sync_execution: None: edges on the GPU's timeline where
    PyTorch uses CUDA, the host's elsewhere; True: waits for the GPUs at both ends; False: the host's.
    Windows may nest, overlap and run in threads. The default monitor measures; it is opened at first use."""
    if "torch" in _modules and compiled.is_compiling():
        return compiled.ignored(name)
    return (_monitor or monitor()).window(name, sync_execution)


def total(name: str, timeout: float | None = None) -> Total:
    """The sum of all windows of this name so far, a Total; costs the same for one and for millions.
    timeout: seconds to wait for the sensors. Raises NotFound where no window has the name."""
    return monitor().total(name, timeout)


@overload
def measure(name: F) -> F: ...
@overload
def measure(name: str | None = None, sync_execution: bool | None = None) -> Callable[[F], F]: ...
def measure(name: Any = None, sync_execution: bool | None = None) -> Any:
    """A decorator: a window around each call of a function, generator or coroutine.

        @jouleprof.measure                     # or @jouleprof.measure("train")
        def train(): ...

        train()
        print(jouleprof.total("train"))

    The default monitor measures; it is opened at the first call."""
    return measuring.measured(functools.partial(window, sync_execution=sync_execution), name)


def steps(loader: Iterable[T], name: str = "step", epoch: str | None = "epoch",
          sync_execution: bool | None = None) -> Steps[T]:
    """Iterates over `loader`, with a window around each step and one around all of them.

        for batch in jouleprof.steps(loader):
            train(batch)
        print(jouleprof.total("step"))

    epoch: None: steps only. sync_execution: as of window()."""
    return monitor().steps(loader, name, epoch, sync_execution)


def tagged(tag: str, sync_execution: bool | None = None) -> Tagged:
    """Windows in a row, of which each begins where the one before ends.

        with jouleprof.tagged("load") as tagged:
            load()
            tagged.record("train")
            train()
        for window in tagged:
            print(window.energy)"""
    return monitor().tagged(tag, sync_execution)


def _forget():
    global _monitor, _lock
    _monitor, _lock = None, threading.RLock()


os.register_at_fork(after_in_child=_forget)
