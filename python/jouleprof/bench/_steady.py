"""Warm-up: iterations until time, power and clocks are steady, not a fixed number of them."""

import dataclasses
from typing import List, Optional

from ._blocks import run_block

_SPAN_SECONDS = 2.0  # compared: its first half with its second half; longer for long blocks
_BLOCKS_IN_SPAN = 8
_LAG_NANOSECONDS = 400_000_000  # the sensors have reported what is older
_TOLERANCE = 0.01


@dataclasses.dataclass
class WarmUp:
    seconds: float
    iterations: int
    steady: bool
    remark: str  # what still changed; empty when steady
    compared: List[str]  # "time", "power", "sm_clock_hertz"


class Halves:
    """Values with their times; the change from the first to the second half of the last span."""

    def __init__(self):
        self._values = []

    def add(self, begin, end, value):
        self._values.append((begin, end, value))

    def change(self, span):
        """Relative, within the last `span` nanoseconds; None before a whole span was observed."""
        if not self._values:
            return None
        end = self._values[-1][1]
        begin = end - span
        if self._values[0][0] > begin:
            return None
        middle = (begin + end) // 2
        first = [v for b, e, v in self._values if begin <= (b + e) // 2 < middle]
        second = [v for b, e, v in self._values if (b + e) // 2 >= middle]
        if not first or not second:
            return None
        early, late = sum(first) / len(first), sum(second) / len(second)
        return abs(late - early) / early if early > 0 else None


def warm_up(step, device, plan, observer, least_seconds, most_seconds):
    """Runs blocks until nothing changes by more than 1 % within a span of 2 s, or `most_seconds` have
    passed."""
    times, clocks = Halves(), Halves()
    first = last = None
    iterations = 0
    count, group = plan
    while True:
        block = run_block(step, device, count, group)
        first = first or block
        last = block
        iterations += count
        times.add(block.begin, block.end, block.seconds_each)
        clock = observer.sm_clock()
        if clock is not None:
            clocks.add(block.begin, block.end, clock)
        seconds = (last.end - first.begin) * 1e-9
        if seconds < min(least_seconds, most_seconds):
            continue
        span = max(int(_SPAN_SECONDS * 1e9), _BLOCKS_IN_SPAN * (last.end - last.begin))
        changes = {"time": times.change(span)}
        if changes["time"] is not None:
            if observer.label is not None:
                changes["power"] = _power_change(observer, first.begin, last.end, span)
            if clock is not None:
                changes["sm_clock_hertz"] = clocks.change(span)
        moving = [_described(name, change, span) for name, change in changes.items()
                  if change is None or change > observer.tolerance(name, _TOLERANCE)]
        if not moving or seconds >= most_seconds:
            return WarmUp(seconds, iterations, not moving, "; ".join(moving), list(changes))


def _described(name, change, span):
    if change is None:
        return f"{name} was not observed for {span * 1e-9:.3g} s"
    return f"{name} changed by {100 * change:.1f} % within {span * 1e-9:.3g} s"


def _power_change(observer, begin, now, span) -> Optional[float]:
    end = now - _LAG_NANOSECONDS
    half = span // 2
    if end - 2 * half < begin:
        return None
    return observer.power_change(end - 2 * half, end - half, end)
