"""The monitor: samples in a thread of its own and gives the energy of windows."""

from __future__ import annotations

import atexit
import collections
import functools
import os
import sys
import threading
import weakref
from typing import Any, Callable, Iterable, Literal, Sequence, overload

from .._arguments import flag, text, timeout_nanoseconds, whole
from .._energy import Domain, Energy, Power
from .._errors import InvalidArgument, NotFound, Timeout, Unavailable, checked, warn
from .._measurement import Measurement, Total
from .._native import end_calls as _end_calls
from .._native import now as _now
from .._snapshot import Snapshot, snapshot_of
from . import compiled, measuring, ranks, sync
from .devices import open_native
from .marks import Marker, torch_with_cuda
from .measuring import F
from .steps import Steps, T, Tagged
from .window import Window

_modules = sys.modules
_open_monitors: weakref.WeakSet[Monitor] = weakref.WeakSet()


class Monitor:
    """Measures the energy of regions of this program: `with monitor.window("epoch") as epoch: ...`.

    devices: words as `jouleprof run --devices` takes them ("gpu0,cpu"), or a list of them; None: all
        that this process can see; "rank": this rank's GPU, and on each machine's first rank the
        processors and memory.
    log: record into this *.jprof file too; overwrite: whether it may exist.
    shortest_window: seconds; sensors are read more often for short ones.
    history: for how many seconds windows are resolved in full detail.
    own_sampler: sample here even under `jouleprof run`, and even if a service shares its sensors.
    gpu_indices: only these GPUs, as CUDA counts them; processors and memory as well.
    cuda: "auto": put window edges on the GPU's timeline where PyTorch uses CUDA; False: never.

    All methods may be called from any thread. After a fork the child needs a monitor of its own.
    """

    def __init__(self, devices: str | Sequence[str] | None = None, *, log: str | os.PathLike[str] | None = None,
                 overwrite: bool = False, shortest_window: float = 0.05, history: float = 600.0,
                 own_sampler: bool = False, gpu_indices: Sequence[int] | None = None,
                 cuda: bool | Literal["auto"] = "auto") -> None:
        if not isinstance(cuda, bool) and cuda != "auto":
            raise InvalidArgument('cuda is "auto", True or False')
        self._native, self._domains = open_native(devices, gpu_indices, log, overwrite, shortest_window, history,
                                                  own_sampler)
        self._process = os.getpid()
        self._gpus = sorted(
            d.index for d in self.domains if d.index is not None and d.kind == "gpu")
        self._cuda = bool(cuda) and bool(self._gpus)
        self._marker = None
        self._numbers = {}  # of names
        self._edges = collections.defaultdict(collections.Counter)  # by name, but for the host's
        self._lock = threading.RLock()
        self._by_key = {}
        self._stacks = threading.local()
        self._has_refused_names = False
        self._has_warned_of_end = False
        self._synchronise = functools.partial(sync.synchronise, self._gpus)
        _open_monitors.add(self)

    # ---- windows

    def window(self, name: str = "", sync_execution: bool | None = None) -> Window:
        """A window for a `with`. sync_execution: None: edges on the GPU's timeline where PyTorch uses
        CUDA, the host's elsewhere; True: waits for the GPUs at both ends; False: the host's."""
        if "torch" in _modules and compiled.is_compiling():
            return compiled.ignored(name)
        if sync_execution is None:
            mode = self._marker
            if mode is None and self._cuda and "torch" in _modules:
                mode = self._look_for_cuda()
        else:
            mode = self._synchronise if flag(sync_execution, "sync_execution") else None
        try:
            number = self._numbers.get(name)
        except TypeError:  # a list, which no name can be
            number = None
        if number is None:
            name = text(name, "a window's name")
            number = self._number(name)
        return Window(self, self._native, name, number, mode)

    def begin_window(self, key: str, sync_execution: bool | None = None, restart: bool = False) -> None:
        """Begins a window that `end_window(key)` ends, maybe in another function or thread.
        restart: forget one of this key that is still open, instead of raising InvalidArgument."""
        if "torch" in _modules and compiled.is_compiling():
            compiled.ignored(key)
            return
        key = text(key, "a window's name")
        before = self._by_key.get(key)
        if not flag(restart, "restart") and before is not None:
            raise InvalidArgument(f"window '{key}' is open already; restart=True begins it anew")
        self._by_key[key] = self.window(key, sync_execution).__enter__()  # where it fails the one before stays open
        if before is not None:
            before._forget()

    def end_window(self, key: str, sync_execution: bool | None = None, cancel: bool = False) -> Any:
        """Ends it and returns it: a Window with a measurement's fields, found when asked for.
        cancel: forget it and return None. sync_execution: of the end; None: as it was begun."""
        if "torch" in _modules and compiled.is_compiling():
            return compiled.Ignored(key)
        key = text(key, "a window's name")
        window = self._by_key.get(key)
        if window is None:
            raise InvalidArgument(f"no window '{key}' is open")
        cancel = flag(cancel, "cancel")
        synchronise = sync_execution is not None and flag(sync_execution, "sync_execution")
        if synchronise and not cancel and not callable(window._mode):
            self._synchronise()  # where it fails the window stays open
        del self._by_key[key]
        if cancel:
            window._forget()
            return None
        window.__exit__(None, None, None)
        return window

    def push_window(self) -> None:
        """Begins a window on this thread's stack."""
        self._stacks.__dict__.setdefault("windows", []).append(self.window("").__enter__())

    def pop_window(self) -> Window:
        """Ends the last window that this thread pushed and returns it, as end_window does."""
        if not getattr(self._stacks, "windows", None):
            raise InvalidArgument("no window was pushed in this thread; begin_window and end_window may be of two threads")
        window = self._stacks.windows.pop()
        window.__exit__(None, None, None)
        return window

    @overload
    def measure(self, name: F) -> F: ...
    @overload
    def measure(self, name: str | None = None, sync_execution: bool | None = None) -> Callable[[F], F]: ...
    def measure(self, name: Any = None, sync_execution: bool | None = None) -> Any:
        """A decorator: a window of this name around each call of a function or coroutine. Bare, or without a
        name, the window has the function's."""
        return measuring.measured(functools.partial(self.window, sync_execution=sync_execution), name)

    def steps(self, loader: Iterable[T], name: str = "step", epoch: str | None = "epoch",
              sync_execution: bool | None = None) -> Steps[T]:
        """Iterates over `loader` with a window around each step, and one around all of them."""
        return Steps(self, loader, name, epoch, sync_execution)

    def tagged(self, tag: str, sync_execution: bool | None = None) -> Tagged:
        """Windows in a row: `with monitor.tagged("load") as tagged: ...; tagged.record("train"); ...`"""
        return Tagged(self, tag, sync_execution)

    # ---- energies

    def total(self, name: str, timeout: float | None = None) -> Total:
        """All windows of this name so far; costs the same for one and for millions."""
        self._settle()
        name = text(name, "a window's name")
        if name not in self._numbers:
            if self._native.closed:
                raise Unavailable(f"the monitor is closed, and has measured no window '{name}'")
            raise NotFound(f"there is no window '{name}'" + (
                ": names beyond the first 10,000 have no total" if self._has_refused_names else ""))
        count, length, resolved, found = checked(
            self._native.total(self._numbers[name], timeout_nanoseconds(timeout)))
        return Total(name=name, time=length * 1e-9, _energies=self.energies_of(found, length * 1e-9), count=count,
                     edges=self._edges_of(self._numbers[name], count), resolved_count=resolved)

    def sum_over_ranks(self, measurement: Measurement | Window, group: Any = None) -> Measurement:
        """The measurement of every rank of a torch.distributed group together; every rank calls it,
        and gets the same. A device that several ranks measured counts once."""
        return ranks.sum_over_ranks(measurement, group)

    @staticmethod
    def now() -> int:
        """The clock of windows: CLOCK_MONOTONIC in nanoseconds."""
        return _now()

    def between(self, begin: int, end: int, name: str = "", timeout: float | None = None) -> Measurement:
        """The measurement of the interval between two values of now(). Raises Timeout where its end is later than
        `timeout` seconds from now; without a timeout, where it is in the future."""
        begin, end = (whole(edge, "begin and end are values of now()", 0) for edge in (begin, end))
        ahead = end - _now()
        if ahead > max(0, timeout_nanoseconds(timeout)):
            raise Timeout(f"the interval ends {ahead * 1e-9:.3f} s in the future; ask for its energy then, or give a "
                          "longer timeout")
        name = text(name, "a window's name")
        number = self._number(name)
        found = checked(
            self._native.energy(begin, end, number, False, timeout_nanoseconds(timeout)))
        return Measurement(name=name, time=(end - begin) * 1e-9, edges="host",
                           _energies=self.energies_of(found, (end - begin) * 1e-9), begin=begin, end=end)

    def power(self, begin: int | None = None, end: int | None = None) -> dict[str, Power]:
        """{label: Power}: the latest of each domain, or the mean between two values of now()."""
        if begin is None:
            if end is not None:
                raise InvalidArgument("power takes begin and end, or begin only, or none of them for the latest power")
            return {s.domain.label: s.latest_power() for s in self.snapshot().domains}
        found = self.between(begin, _now() if end is None else end)
        return {e.domain.label: Power.mean_of(e, found.time) for e in found.values()}

    def energies_of(self, found, seconds):
        """Native energies as ours; for the classes around the monitor."""
        return tuple(Energy.of(domain, energy, seconds) for domain, energy in zip(self._domains, found))

    # ---- the monitor itself

    @property
    def domains(self) -> list[Domain]:
        """What is measured, those without a figure too: their `reason` says why."""
        return list(self._domains)

    def snapshot(self) -> Snapshot:
        """What is known now: of each domain the energy since the monitor was opened, power, clocks,
        temperature, utilisation, and the age of its newest reading."""
        return snapshot_of(checked(self._native.snapshot()), self._domains)

    @property
    def warnings(self) -> list[str]:
        """What the reader of the figures should know: a sensor that does not answer, readings that
        could not be recorded. Under `jouleprof run` its report has them."""
        return checked(self._native.warnings()).splitlines()

    @property
    def gpu_indices(self) -> list[int]:
        """The GPUs measured, as CUDA counts them."""
        return list(self._gpus)

    @property
    def source(self) -> str:
        """Whose sampler this was when the monitor was opened: "own", "run" (the `jouleprof run` around this program)
        or "service" (a service that shares its sensors)."""
        return self._native.source()

    @property
    def closed(self) -> bool:
        """Whether `close` was called: nothing is measured any more."""
        return self._native.closed

    def close(self) -> None:
        """Ends the sampling and finishes the log. What was not asked for before is lost."""
        if not self._native.closed:
            if os.getpid() == self._process:
                try:
                    self._settle()
                except RuntimeError:
                    pass  # an error of CUDA, which the program gets from its own calls
            self._native.close()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()

    def __reduce__(self):
        raise TypeError("a monitor belongs to its process; make one in each process that measures")

    def __repr__(self):
        devices = ", ".join(d.label for d in self.domains if d.is_whole)
        return f"<jouleprof.Monitor {'closed' if self.closed else self.source}: {devices}>"

    def _number(self, name):
        number = self._native.name(name)
        if number == 0 and name:
            self._warn_of_refused_names(name)
        else:
            self._numbers[name] = number
        return number

    def _warn_of_refused_names(self, name):
        """Names are kept for ever, so that their number has a limit."""
        if self._has_refused_names or self._native.closed or os.getpid() != self._process:
            return  # of the latter two the windows say so, when they are entered
        self._has_refused_names = True
        warn(f"there are 10,000 names of windows: '{name}' and further ones are recorded without a name, and have no "
             "total; give windows of one kind one name")

    def _begin_unmeasured(self, name):
        """The begin of a window that this monitor does not measure any more; warns of the first."""
        if not self._has_warned_of_end:
            self._has_warned_of_end = True
            warn(f"the monitor is closed: window '{name}' and later ones are not measured; make a new Monitor"
                 if self._native.closed else
                 "windows of a forked process are not measured with its parent's monitor: make one after the fork")
        return _now()

    def _look_for_cuda(self):
        torch = torch_with_cuda()
        if torch is not None:
            with self._lock:
                if self._marker is None:
                    self._marker = Marker(torch, self._add, _now, self._gpus)
        return self._marker

    def _add(self, begin, end, number):
        if not self._native.closed:
            checked(self._native.add(begin, end, number, True))
            self._count_edges(number, "device")

    def _settle(self):
        if self._marker is not None:
            self._marker.settle_completed()

    def _count_edges(self, number, edges):
        with self._lock:
            self._edges[number][edges] += 1

    def _edges_of(self, number, count):
        """Of `count` windows of one name."""
        with self._lock:
            counts = self._edges.get(number) or {"host": count}
            return next((edges for edges, n in counts.items() if n >= count), "mixed")

    def _after_fork(self):
        self._native.leave()
        self._has_warned_of_end = False
        self._lock = threading.RLock()
        self._marker = None  # CUDA is of no use in a forked child
        self._cuda = False


@atexit.register
def _close_all():
    for monitor in list(_open_monitors):
        monitor.close()
    _end_calls(2.0)  # seconds; calls wait for a closed monitor 0.1 s at most


def _after_fork_in_child():
    for monitor in list(_open_monitors):
        monitor._after_fork()


os.register_at_fork(after_in_child=_after_fork_in_child)
