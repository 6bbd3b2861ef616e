"""A window: a region of the program whose energy is available when it has ended."""

from __future__ import annotations

import asyncio

from .._arguments import timeout_nanoseconds
from .._energy import Domain, Energy
from .._errors import InvalidArgument, checked
from .._measurement import Edges, Figures, Measurement
from .._native import now

_REPORTED = 250_000_000  # ns after its end the sensors of a GPU have reported a window, as a rule
_SILENT = 4_000_000_000  # a sensor that has not answered for so long is not waited for


class Window(Figures):
    """Made by Monitor.window and its relatives; one `with` each. Has the fields and methods of its Measurement, too.

    Begin and end take a timestamp each and never wait, except to synchronise on request. Each of the
    fields below waits, at first, until the sensors have reported the window's end: about 0.15 s.
    """

    __slots__ = ("_monitor", "_native", "_name", "_id", "_mode", "_begin", "_end", "_marks",
                 "_edges", "_measurement", "__weakref__")

    def __init__(self, monitor, native, name, number, mode):
        self._monitor = monitor
        self._native = native
        self._name = name
        self._id = number
        self._mode = mode  # None: host stamps; a Marker; or a function that synchronises
        self._begin = 0
        self._end = 0
        self._measurement = None

    def __enter__(self) -> Window:
        if self._begin:
            raise InvalidArgument(f"window '{self._name}' has begun before; make a new one")
        if self._mode is not None:
            self._begin_marked()
        self._begin = self._native.begin(self._id) or self._monitor._begin_unmeasured(self._name)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._end:
            return  # the first end counts
        if not self._begin:
            raise InvalidArgument(f"window '{self._name}' has not begun")
        if self._mode is None:
            self._end = self._native.end(self._begin, self._id)
        else:
            self._end_marked(failed=kind is not None)

    async def __aenter__(self) -> Window:
        return self.__enter__()

    async def __aexit__(self, kind: object, error: object, trace: object) -> None:
        self.__exit__(kind, error, trace)

    def _begin_marked(self):
        self._marks = None
        if callable(self._mode):
            self._edges = "synchronised" if self._mode() else "host"
        else:
            self._marks = self._mode.begin(self._id)
            self._edges = "device" if self._marks is not None else "host"

    def _end_marked(self, failed):
        # After an error the device may be of no use, and what it says shall not hide the error.
        if callable(self._mode):
            edges, self._edges = self._edges, "host"
            try:
                if not failed:
                    self._mode()
                    self._edges = edges
            finally:
                self._end = self._native.end(self._begin, self._id)
            if self._edges == "synchronised":
                self._monitor._count_edges(self._id, "synchronised")
            return
        if self._marks is not None:
            self._end = 0 if failed else self._mode.end(self._marks)
            if self._end:
                self._forget()
                return
            self._marks = None  # or its end is within a graph that is being captured
            self._edges = "host"
        self._end = self._native.end(self._begin, self._id)

    def _forget(self):
        """It is no longer one that is open."""
        self._native.forget(self._begin, self._id)

    # ---- afterwards

    @property
    def name(self) -> str:
        """As it was given."""
        return self._name

    @property
    def energy(self) -> Measurement:
        """The measurement; found once, then kept."""
        return self._measurement if self._measurement is not None else self.wait()

    def wait(self, timeout: float | None = None) -> Measurement:
        """The same, waiting for `timeout` seconds at most; what the sensors have not reported by then
        is unavailable, with a reason."""
        if self._measurement is None:
            begin, end = self._interval()
            is_device = self.edges == "device"
            found = checked(self._native.energy(
                begin, end, self._id, is_device, timeout_nanoseconds(timeout)))
            measurement = Measurement(
                name=self._name,
                time=(end - begin) * 1e-9,
                edges=self.edges,
                _energies=self._monitor.energies_of(found, (end - begin) * 1e-9),
                begin=begin,
                end=end,
            )
            if timeout is not None and any(
                    e.microjoules is None and not (e.domain and e.domain.reason)
                    for e in measurement.values()):
                return measurement  # another call may wait longer
            self._measurement = measurement
        return self._measurement

    def poll(self) -> Measurement | None:
        """The measurement, or None while the sensors have not reported the window's end. Never waits."""
        if self._measurement is None:
            end = self._known_end()
            age = 0 if end is None else now() - end
            if age > _REPORTED:
                found = self.wait(0)
                if age > _SILENT:
                    self._measurement = found  # with the reasons of what is missing
        return self._measurement

    def _host_edges(self):
        """Begin and end by the host's clock, also where the device's count."""
        if not self._end:
            return self._interval()
        return self._begin, self._end

    def _host_begin(self):
        return self._begin

    def _known_end(self):
        """Without waiting for a device; None while one has not passed the end."""
        if self._end and self._mode is not None and self._marks is not None:
            self._mode.settle_completed()
            return self._marks.edges and self._marks.edges[1]
        return self._interval()[1]

    async def energy_async(self, timeout: float | None = None) -> Measurement:
        """The same without holding up the event loop."""
        if self._measurement is not None:
            return self._measurement
        return await asyncio.get_running_loop().run_in_executor(None, self.wait, timeout)

    @property
    def edges(self) -> Edges:
        """"host", "device" or "synchronised": what begins and ends it."""
        return "host" if self._mode is None or not self._begin else self._edges

    @property
    def time(self) -> float:
        """Seconds. With edges on the device, waits until that has passed them."""
        begin, end = self._interval()
        return (end - begin) * 1e-9

    @property
    def total(self) -> Energy:
        """As Measurement.total."""
        return self.energy.total

    def _placed(self) -> list[tuple[Domain, Energy]]:
        return self.energy._placed()

    def _interval(self):
        if not self._end:
            state = "still open" if self._begin else "not begun"
            raise InvalidArgument(f"window '{self._name}' is {state}")
        if self._mode is not None and self._marks is not None:
            return self._mode.edges(self._marks)
        return self._begin, self._end

    def _repr_html_(self):
        """The measurement's table, for notebooks; None while the window is open."""
        return self.energy._repr_html_() if self._end else None

    def __reduce__(self):
        raise TypeError("a window belongs to its monitor; pickle its `energy`")

    def __repr__(self):
        state = "ended" if self._end else "open" if self._begin else "not begun"
        return f"<Window '{self._name}' {state}>"
