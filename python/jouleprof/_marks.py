"""Edges of windows on the GPU's own timeline: an event on the current stream, no waiting."""

import collections
import sys
import threading

from ._clock_map import ClockMap

_SETTLE_NANOSECONDS = 250_000_000  # how often completed events are looked for
_SETTLE_COUNT = 64
_ASKED_TOGETHER = 16  # marks of one stream: once the last is passed, all are
_MOST_STREAMS = 256


class Mark:
    """One edge. `time` is None until the device has passed it and that was looked up."""

    __slots__ = ("event", "device", "stream", "recorded", "time", "stretch")

    def __init__(self, event, device, stream, recorded):
        self.event = event
        self.device = device
        self.stream = stream  # None: not known
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
        # torch takes a microsecond to tell a stream's handle, and far longer to make its object.
        self._handle = getattr(getattr(torch, "_C", None), "_cuda_getCurrentRawStream", None)
        self._streams = {}  # by device and handle
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
        stream = self._stream(device)
        mark = Mark(event, device, stream, self._now())
        event.record(stream)
        self._pending.append(mark)
        return mark

    def _stream(self, device):
        """The current stream; None where only torch itself can find it."""
        if self._handle is None:
            return None
        key = device, self._handle(device)
        stream = self._streams.get(key)
        if stream is None:
            if len(self._streams) >= _MOST_STREAMS:
                self._streams.clear()
            stream = self._streams[key] = self._torch.cuda.current_stream()
        return stream

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
            while True:
                count = self._complete()
                if count == 0:
                    break
                for _ in range(count):
                    self._settle(self._pending.popleft(), complete=True)
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

    def _complete(self):
        """How many of the oldest pending marks are known to be passed: some, or all that are asked."""
        pending = self._pending
        if not pending:
            return 0
        if len(pending) >= _ASKED_TOGETHER:
            last = pending[_ASKED_TOGETHER - 1]
            # By index: other threads append.
            if (last.stream is not None
                    and all(pending[i].stream is last.stream for i in range(_ASKED_TOGETHER))
                    and self._is_passed(last)):
                return _ASKED_TOGETHER
        return 1 if self._is_passed(pending[0]) else 0

    @staticmethod
    def _is_passed(mark):
        return mark.time is not None or mark.event.query()

    def _settle(self, mark, complete=False):
        if mark.time is not None:
            return
        clock = self._map(mark.device)
        if clock.is_old():
            clock.refresh()
        if not complete:
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
