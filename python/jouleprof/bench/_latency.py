"""The measurement itself: blocks until the mean is known well enough, in one window of energy."""

import dataclasses
import time
from typing import List, Optional

from . import _blocks
from ._blocks import Block, relative_half_width, run_block

_LAG_NANOSECONDS = 400_000_000  # the sensors have reported what is older


@dataclasses.dataclass
class Limits:
    least_seconds: float
    most_seconds: float
    target: Optional[float]  # relative half-width; None: least_seconds decide


@dataclasses.dataclass
class Steady:
    begin: int  # CLOCK_MONOTONIC, nanoseconds
    end: int
    blocks: List[Block]  # or requests
    spread: Optional[float]  # relative 95 % half-width of the mean time of an iteration
    noise: Optional[float]  # the same of the window's energy, from the sensor alone
    reached_target: Optional[bool]  # None: there was none

    @property
    def iterations(self):
        return sum(block.count for block in self.blocks)


def repeat(once, seconds_of, observer, window, limits):
    """Calls `once` in `window` until the mean of its seconds is known well enough."""
    blocks = []
    next_look = limits.least_seconds

    def errors(end):
        return relative_half_width([seconds_of(block) for block in blocks]), observer.relative_noise(begin, end)

    begin = time.monotonic_ns()
    with window:
        while True:
            blocks.append(once())
            seconds = (blocks[-1].end - begin) * 1e-9
            if seconds < min(next_look, limits.most_seconds):
                continue
            if limits.target is None or seconds >= limits.most_seconds:
                break
            # A question takes a millisecond: it is asked few times.
            next_look = 1.5 * seconds
            if _is_within(limits.target, *errors(blocks[-1].end - _LAG_NANOSECONDS)):
                break
    end = time.monotonic_ns()
    spread, noise = errors(end)
    reached = None if limits.target is None else _is_within(limits.target, spread, noise)
    return Steady(begin, end, blocks, spread, noise, reached)


def measure(step, device, plan, observer, monitor, name, limits):
    """Runs blocks in one window `name`."""
    count, group = plan
    device.synchronise()
    return repeat(lambda: run_block(step, device, count, group), lambda block: block.seconds_each, observer,
                  monitor.window(name, sync_execution=False), limits)


def _is_within(target, spread, noise):
    if spread is None:
        return False
    return (spread**2 + (noise or 0) ** 2) ** 0.5 <= target


def latency_of(steady, device):
    first = steady.blocks[0]
    busy = sum(block.end - block.begin for block in steady.blocks) * 1e-9
    return _blocks.latency_of([block.seconds_each for block in steady.blocks],
                              [seconds for block in steady.blocks for seconds in block.groups(device)],
                              busy / steady.iterations, steady.spread, first.group, first.count)
