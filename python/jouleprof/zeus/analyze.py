"""As zeus.analyze of the first versions of Zeus: energy and mean power of the logs of zeus_monitor.

The figures are those of the polled powers, without an interval: `jouleprof import` of the same file has one."""

import csv
import datetime
from typing import List, Optional, Tuple

from .._arguments import number
from .._errors import Corrupt, InvalidArgument, existing

__all__ = ["avg_power", "energy"]


def energy(logfile: str, start: Optional[float] = None, end: Optional[float] = None) -> float:
    """Joules from `start` to `end`, seconds since the log's first row; below 0: before its last row. None: all.
    The trapezoidal rule between rows, with power interpolated at both ends."""
    rows = _rows(logfile)
    length = rows[-1][0]
    begin, finish = (default if t is None else t + length if t < 0 else t for t, default in ((start, 0.0), (end, length)))
    if not 0 <= begin < finish <= length:
        raise InvalidArgument(f"{logfile} covers {length:g} s, which do not contain {begin:g} to {finish:g} s")
    inner = [row for row in rows if begin < row[0] < finish]
    cut = [(begin, _at(rows, begin)), *inner, (finish, _at(rows, finish))]
    return sum((t1 - t0) * (p0 + p1) / 2 for (t0, p0), (t1, p1) in zip(cut, cut[1:]))


def avg_power(logfile: str, start: Optional[float] = None, end: Optional[float] = None) -> float:
    """Watts, the mean over the same time."""
    length = _rows(logfile)[-1][0]
    begin, finish = (default if t is None else t + length if t < 0 else t for t, default in ((start, 0.0), (end, length)))
    return energy(logfile, start, end) / (finish - begin)


def _rows(logfile: str) -> List[Tuple[float, float]]:
    """(seconds since the first row, watts); the last row may be cut off."""
    found: List[Tuple[float, float]] = []
    with open(existing(logfile), newline="", encoding="utf-8-sig") as file:
        lines = list(csv.DictReader(file, skipinitialspace=True))
    for place, row in enumerate(lines, 2):
        try:
            when = datetime.datetime.fromisoformat(row["Time"].strip().replace("/", "-")).timestamp()
            found.append((when, number(float(row["Power"]), "a power", least=0)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if place < len(lines) + 1:
                raise Corrupt(f"{logfile}:{place}: no row of zeus_monitor, which has Time and Power: {error}") from None
    if len(found) < 2:
        raise Corrupt(f"{logfile} has fewer than two rows of Time and Power")
    if any(b[0] < a[0] for a, b in zip(found, found[1:])):
        raise Corrupt(f"{logfile}: the times go back")
    return [(when - found[0][0], watts) for when, watts in found]


def _at(rows: List[Tuple[float, float]], moment: float) -> float:
    for (t0, p0), (t1, p1) in zip(rows, rows[1:]):
        if t0 <= moment <= t1:
            return p0 if t1 == t0 else p0 + (p1 - p0) * (moment - t0) / (t1 - t0)
    return rows[-1][1]
