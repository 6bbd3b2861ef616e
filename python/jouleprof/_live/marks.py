"""Edges of windows on the GPU's own timeline: an event on the current stream, no waiting."""

import collections
import sys
import threading

from .clock_map import ClockMap, event_class

_SETTLE_NANOSECONDS = 250_000_000  # how often completed events are looked for
_SETTLE_COUNT = 64  # or after so many more marks
_ASKED_TOGETHER = 64  # marks of one stream: once the last is passed, all are
_MOST_LANES = 256
# A launch from Python takes longer: marks of one stream nearer than that are at the same place in it.
_SAME_PLACE_NANOSECONDS = 4_000


class Lane:
    """A stream that is marked, with what its device's marks share."""

    __slots__ = ("stream", "clock", "events", "lock", "latest", "latest_made")

    def __init__(self, stream, clock, events):
        self.stream = stream  # None: not known
        self.clock = clock
        self.events = events  # that can be used again
        self.lock = threading.RLock()  # marks become pending in the order that the stream has them
        self.latest = None
        self.latest_made = 0  # host time after it was recorded


class Mark:
    """A place in a stream, and when the device came by it."""

    __slots__ = ("event", "lane", "recorded", "time", "ended")

    def __init__(self, event, lane, recorded, ended):
        self.event = event
        self.lane = lane
        self.recorded = recorded  # host time before it was
        self.time = None  # on the host's clock, once it was looked up
        self.ended = ended  # the MarkedInterval that ends here and waits for its time


class MarkedInterval:
    """A window between two marks; handed to the library once both have a time."""

    __slots__ = ("name", "begin", "end", "edges")

    def __init__(self, name, begin):
        self.name = name
        self.begin = begin  # the marks, until `edges` is known
        self.end = None
        self.edges = None  # (begin, end) in host nanoseconds


class Marker:
    """Marks for one monitor. All methods may be called from any thread."""

    def __init__(self, torch, add, now, devices=None):
        self._torch = torch
        self._devices = devices  # only these are marked; None: all
        self._add = add  # called with (begin, end, name) of every window that is settled
        self._now = now
        # Torch's functions in C where they can be had: the Python around them takes longer than they.
        # A stream's handle takes a microsecond to get, and its object far longer to make.
        cuda, core = torch.cuda, getattr(torch, "_C", None)
        self._is_capturing = getattr(
            core, "_cuda_isCurrentStreamCapturing", cuda.is_current_stream_capturing)
        self._device = getattr(core, "_cuda_getDevice", cuda.current_device)
        self._handle = getattr(core, "_cuda_getCurrentRawStream", None)
        self._new_event = event_class(torch) if self._handle else cuda.Event
        self._lanes = {}  # by device and handle
        self._events = collections.defaultdict(list)  # by device
        self._maps = {}
        self._pending = collections.deque()
        self._settled_at = now()
        self._settle_count = _SETTLE_COUNT
        self._lock = threading.RLock()

    def begin(self, name):
        """An interval that begins where the current stream is now; None where that can't be marked."""
        mark = self._mark(None)
        return MarkedInterval(name, mark) if mark is not None else None

    def end(self, interval):
        """Ends an interval where the stream is now; the host's time, or 0 where that can't be marked."""
        mark = self._mark(interval)
        if mark is None:
            return 0
        recorded = mark.recorded
        if (len(self._pending) > self._settle_count
                or recorded - self._settled_at > _SETTLE_NANOSECONDS):
            self.settle_completed()
        return recorded

    def settle_completed(self):
        """Hands over every window whose events the devices have passed. Does not wait."""
        if not self._lock.acquire(blocking=False):
            return  # another thread is at it
        try:
            self._settled_at = self._now()
            while self._pending:
                asked = self._count_of_one_stream()
                passed = self._count_passed(asked)
                if passed:
                    self._pending[0].lane.clock.keep_fresh()
                for _ in range(passed):
                    self._settle(self._pending.popleft())
                if passed < asked:
                    break
        finally:
            # What the device has not come to is not asked for again at each window.
            self._settle_count = len(self._pending) + _SETTLE_COUNT
            self._lock.release()

    def edges(self, interval):
        """(begin, end) of an ended interval on the host's clock; waits for the device."""
        marks = interval.begin, interval.end
        for mark in marks:
            event = mark and mark.event  # another thread may settle it meanwhile
            if event is not None:
                event.synchronize()
        with self._lock:
            for mark in marks:
                if mark is not None and mark.time is None:
                    mark.lane.clock.keep_fresh()
                    self._settle(mark)
        return interval.edges

    def _mark(self, ended):
        """Marks this place of the current stream, for the interval that ends here or for one that
        begins (None); None where that can't be."""
        if self._is_capturing():
            return None  # an event would become part of the graph
        device = self._device()
        handle = self._handle and self._handle(device)
        lane = self._lanes.get((device, handle)) or self._new_lane(device, handle)
        if lane is None:
            return None
        lane.lock.acquire()
        try:
            recorded = self._now()
            # In a loop a window begins where the last one has ended.
            if ended is None and recorded - lane.latest_made < _SAME_PLACE_NANOSECONDS:
                return lane.latest
            try:
                event = lane.events.pop()
            except IndexError:
                event = self._new_event(enable_timing=True)
                recorded = self._now()
            event.record(lane.stream)
            mark = Mark(event, lane, recorded, ended)
            if ended is not None:
                ended.end = mark
            self._pending.append(mark)  # from here on another thread may settle it
            if lane.stream is not None:
                lane.latest, lane.latest_made = mark, self._now()
        finally:
            lane.lock.release()
        return mark

    def _new_lane(self, device, handle):
        """None for a device that is not measured."""
        if self._devices is not None and device not in self._devices:
            return None
        with self._lock:
            if device not in self._maps:
                self._maps[device] = ClockMap(self._torch, device, self._now)
            if len(self._lanes) >= _MOST_LANES:
                self._lanes.clear()
            # Without a handle only torch itself can find the stream, each time anew.
            stream = None if self._handle is None else self._torch.cuda.current_stream()
            lane = Lane(stream, self._maps[device], self._events[device])
            return self._lanes.setdefault((device, handle), lane)

    def _count_of_one_stream(self):
        """How many of the oldest pending marks can be asked for by the last of them."""
        pending = self._pending
        lane = pending[0].lane
        most = 1 if lane.stream is None else min(len(pending), _ASKED_TOGETHER)
        count = 1
        while count < most and pending[count].lane is lane:  # by index: other threads append
            count += 1
        return count

    def _count_passed(self, count):
        """How many of these are passed. The last is asked first: most often it is."""
        if self._is_passed(self._pending[count - 1]):
            return count
        passed, first_open = 0, count - 1
        while passed < first_open:
            middle = (passed + first_open) // 2
            if self._is_passed(self._pending[middle]):
                passed = middle + 1
            else:
                first_open = middle
        return passed

    @staticmethod
    def _is_passed(mark):
        return mark.time is not None or mark.event.query()

    def _settle(self, mark):
        """Looks up the time of a mark that is passed, if `edges` has not."""
        if mark.time is not None:
            return
        mark.time = mark.lane.clock.host_time(mark.event, mark.recorded)
        mark.lane.events.append(mark.event)
        mark.event = None
        interval, mark.ended = mark.ended, None
        if interval is None:
            return
        if interval.begin.time is None:
            self._settle(interval.begin)  # CUDA failed when it was its turn
        begin = interval.begin.time
        interval.edges = (begin, mark.time if mark.time > begin else begin)
        interval.begin = interval.end = None
        self._add(*interval.edges, interval.name)


def torch_with_cuda():
    """The torch module, where the program has imported it and has begun to use CUDA."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return None
    return torch
