"""Iterations in blocks: within a block none waits for the device, as in torch.utils.benchmark."""

import dataclasses
import time
from typing import Any, List

from .. import _student

_SYNCHRONISING_SHARE = 1e-4  # of a block's time, at most
_LEAST_SECONDS = 0.1  # of a block, unless one iteration takes longer
_MOST = 10**7
_MOST_VALUES = 1000
_BATCHES = 6


@dataclasses.dataclass
class Block:
    begin: int  # CLOCK_MONOTONIC, nanoseconds; the device was idle
    end: int  # all iterations are done
    count: int
    group: int  # iterations between two marks
    marks: List[Any]  # looked up later: while the block runs that would keep the device waiting

    @property
    def seconds_each(self):
        return (self.end - self.begin) * 1e-9 / self.count

    def groups(self, device):
        """Seconds of one iteration, a mean over each group."""
        return [seconds / self.group for seconds in device.seconds(self.marks)]


def run_block(step, device, count, group=1):
    """`count` iterations; a multiple of `group`."""
    device.synchronise()
    mark = device.mark
    begin = time.monotonic_ns()
    marks = [mark()]
    for _ in range(count // group):
        for _ in range(group):
            step()
        marks.append(mark())
    device.synchronise()
    end = time.monotonic_ns()
    return Block(begin, end, count, group, marks)


def choose_plan(step, device):
    """(iterations of a block, iterations between two marks), so that waiting and marks take no time
    that counts."""
    count = _choose_count(step, device)
    seconds = run_block(step, device, count, count).seconds_each
    group = min(count, max(1, round(device.LEAST_MARKED_SECONDS / seconds)))
    return -(-count // group) * group, group


def _choose_count(step, device):
    empty = sorted(_empty_block(device) for _ in range(5))[2]
    least = max(_LEAST_SECONDS, empty / _SYNCHRONISING_SHARE)
    count = 1
    while True:
        block = run_block(step, device, count, count)
        seconds = (block.end - block.begin) * 1e-9
        if seconds >= least or seconds >= 1 or count >= _MOST:
            return count
        count = min(_MOST, max(count + 1, int(count * min(10, 1.1 * least / max(seconds, 1e-9)))))


def _empty_block(device):
    block = run_block(lambda: None, device, 1)
    return (block.end - block.begin) * 1e-9


def quantile(ordered, share):
    """Of an ordered list: linear between the two nearest values."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def latency_of(blocks, values, mean, error, group=1, per_block=1):
    """Fields of the result: the median of the seconds of `blocks`, as torch.utils.benchmark has it, and quantiles of
    `values`, each the mean of `group` iterations."""
    blocks, values = sorted(blocks), sorted(values)
    lower, median, upper = (quantile(blocks, share) for share in (0.25, 0.5, 0.75))
    return {
        "median_seconds": median, "quartiles_seconds": [lower, median, upper],
        "interquartile_range_seconds": upper - lower, "mean_seconds": mean, "mean_relative_error_ratio": error,
        **{f"p{p}_seconds": quantile(values, p / 100) for p in (50, 90, 99)}, "quantiles_of_iterations": group,
        "blocks": len(blocks), "iterations_per_block": per_block, "distribution_seconds": distribution(values),
    }


def relative_half_width(values):
    """Half of the 95 % interval of the mean, relative to it; None for fewer than four values. Neighbours may be
    correlated, as where clocks wander, so that it is the wider one of all values and of the means of batches in order
    (batch means, Conway 1963)."""
    n = len(values)
    mean = sum(values) / n if n else 0
    if n < 4 or mean <= 0:
        return None
    half = _half_width(values)
    if n >= 2 * _BATCHES:
        edges = [i * n // _BATCHES for i in range(_BATCHES + 1)]
        half = max(half, _half_width([sum(values[a:b]) / (b - a) for a, b in zip(edges, edges[1:])]))
    return half / mean


def _half_width(values):
    n = len(values)
    mean = sum(values) / n
    variance = sum((v - mean) ** 2 for v in values) / (n - 1)
    return _student.quantile(n - 1) * (variance / n) ** 0.5


def distribution(ordered):
    """All ascending values; of more than 1000, those with 1000 evenly spaced ranks, the first and the last among them."""
    if len(ordered) <= _MOST_VALUES:
        return list(ordered)
    last = len(ordered) - 1
    return [ordered[round(i * last / (_MOST_VALUES - 1))] for i in range(_MOST_VALUES)]
