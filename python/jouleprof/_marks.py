"""Edges of windows on the GPU's own timeline: an event on the current stream, no waiting."""

import collections
import sys
import threading

from ._clock_map import ClockMap

_SETTLE_NANOSECONDS = 250_000_000  # how often completed events are looked for
_SETTLE_COUNT = 64


class Mark:
    """One edge. `time` is None until the device has passed it and that was looked up."""

    __slots__ = ("event", "device", "recorded", "time", "stretch")

    def __init__(self, event, device, recorded):
        self.event = event
        self.device = device
        self.recorded = recorded  # host time, before the event was put into the stream
        self.time = None
        self.stretch = None  # of a window's end


class Stretch:
    """A window between two marks; handed to the library once both have a time."""

    __slots__ = ("begin", "end", "name", "edges")

    def __init__(self, begin, name):
        self.begin = begin
        self.end = None
        self.name = name
        self.edges = None  # (begin, end) in host nanoseconds


class Marker:
    """Marks for one monitor. All methods may be called from any thread."""

    def __init__(self, torch, add, now, devices=None):
        self._torch = torch
        self._devices = devices  # only these are marked; None: all
        self._add = add  # called with (begin, end, name) of every window that is settled
        self._now = now
        self._pool = collections.defaultdict(list)  # events by device
        self._maps = {}
        self._pending = collections.deque()
        self._settled_at = now()
        self._lock = threading.RLock()

    def mark(self):
        """A mark at this point of the current stream; None where that can't be."""
        cuda = self._torch.cuda
        if cuda.is_current_stream_capturing():
            return None  # an event would become part of the graph
        device = cuda.current_device()
        if self._devices is not None and device not in self._devices:
            return None
        if device not in self._maps:
            self._map(device)
        try:
            event = self._pool[device].pop()
        except IndexError:
            event = cuda.Event(enable_timing=True)
        mark = Mark(event, device, self._now())
        event.record()
        self._pending.append(mark)
        return mark

    def begin(self, name):
        mark = self.mark()
        return None if mark is None else Stretch(mark, name)

    def end(self, stretch):
        """Ends a stretch where the stream is now; false where that can't be marked."""
        mark = self.mark()
        if mark is None:
            return False
        stretch.end = mark
        mark.stretch = stretch
        if (mark.recorded - self._settled_at > _SETTLE_NANOSECONDS
                or len(self._pending) > _SETTLE_COUNT):
            self.settle_completed()
        return True

    def settle_completed(self):
        """Hands over every window whose events the devices have passed. Does not wait."""
        if not self._lock.acquire(blocking=False):
            return  # another thread is at it
        try:
            self._settled_at = self._now()
            while self._pending and self._is_complete(self._pending[0]):
                self._settle(self._pending.popleft())
        finally:
            self._lock.release()

    def edges(self, stretch):
        """(begin, end) of an ended stretch on the host's clock; waits for the device."""
        if stretch.edges is None:
            event = stretch.end.event  # another thread may settle it meanwhile
            if event is not None:
                event.synchronize()
            with self._lock:
                self._settle(stretch.begin)
                self._settle(stretch.end)
        return stretch.edges

    @staticmethod
    def _is_complete(mark):
        return mark.time is not None or mark.event.query()

    def _settle(self, mark):
        if mark.time is not None:
            return
        clock = self._map(mark.device)
        if clock.is_old():
            clock.refresh()
        mark.event.synchronize()  # a begin on another stream than its end
        mark.time = clock.host_time(mark.event, mark.recorded)
        self._pool[mark.device].append(mark.event)
        mark.event = None
        stretch = mark.stretch
        if stretch is not None:
            self._settle(stretch.begin)
            begin = stretch.begin.time
            stretch.edges = (begin, max(begin, mark.time))
            mark.stretch = None
            self._add(*stretch.edges, stretch.name)

    def _map(self, device):
        with self._lock:
            if device not in self._maps:
                self._maps[device] = ClockMap(self._torch, device, self._now)
            return self._maps[device]


def torch_with_cuda():
    """The torch module, where the program has imported it and has begun to use CUDA."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    return torch
