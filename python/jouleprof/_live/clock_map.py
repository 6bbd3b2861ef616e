"""When, on the host's clock, a GPU passed an event.

A CUDA event carries the GPU's time, and only differences of two events can be had, as a float32 of
milliseconds. So reference events are made whose host time is known: recorded on a stream of their
own, which has no other work, between two host stamps. A new one every ten seconds keeps the
differences short (float32 then resolves a microsecond) and shows how the two clocks drift.
"""

import collections

REFERENCE_SECONDS = 10.0
_NARROW_NANOSECONDS = 100_000
_TRIES = 5
_KEPT = 16

_Reference = collections.namedtuple("_Reference", "event host")


class ClockMap:
    """Of one device. Not safe to use from several threads at once."""

    def __init__(self, torch, device, now):
        self._new_event = event_class(torch)
        self._now = now
        self._stream = torch.cuda.Stream(device=device)
        self._references = collections.deque(maxlen=_KEPT)
        self._intervals = ()  # (its host time, time elapsed to, rate) of references, the latest first
        self._rate = 1.0  # host nanoseconds in one of the device's
        self.refresh()

    def refresh(self):
        """Makes a reference. Waits for the device to pass it: some 20 us."""
        best = None
        for _ in range(_TRIES):
            event = self._new_event(enable_timing=True)
            before = self._now()
            event.record(self._stream)
            event.synchronize()
            after = self._now()
            width = after - before
            # A wide one waited for something, and the device passed it just before the end.
            host = before + width // 2 if width < _NARROW_NANOSECONDS else after - 10_000
            if best is None or width < best[0]:
                best = (width, _Reference(event, host))
            if width < _NARROW_NANOSECONDS // 2:
                break
        self._references.append(best[1])
        if len(self._references) > 1:
            self._rate = self._rate_between(self._references[-2], self._references[-1])
        known = list(self._references)
        rates = [self._rate_between(a, b) for a, b in zip(known, known[1:])] + [self._rate]
        self._intervals = tuple((a.host, a.event.elapsed_time, rate * 1e6)
                                for a, rate in zip(known, rates))[::-1]

    def keep_fresh(self):
        """Makes a reference when the last is old."""
        if self._now() - self._references[-1].host > REFERENCE_SECONDS * 1e9:
            self.refresh()

    def host_time(self, event, recorded):
        """When the device passed a completed `event`, recorded at the host's `recorded`."""
        for start, milliseconds_to, rate in self._intervals:
            if start <= recorded:
                break
        host = start + round(milliseconds_to(event) * rate)
        # The device can't have passed it before it was recorded.
        return host if host > recorded else recorded

    def _rate_between(self, a, b):
        elapsed = a.event.elapsed_time(b.event) * 1e6
        if b.host - a.host < 1e9 or elapsed <= 0:
            return self._rate
        return (b.host - a.host) / elapsed


def event_class(torch):
    """Torch's class of events, without its methods in Python where it can be had. Those of the plain
    one need the stream."""
    return getattr(getattr(torch, "_C", None), "_CudaEventBase", torch.cuda.Event)
