"""Energies times a factor per kilowatt-hour that changes with the time: carbon and price."""

import abc
import bisect
import csv
import datetime
import time

from .._arguments import number
from .._energy import JOULES_PER_KWH
from .._errors import Corrupt, NotFound, existing
from .monitor.energy import ZeusMonitor


class Provider(abc.ABC):
    """A factor per kilowatt-hour over time."""

    @abc.abstractmethod
    def at(self, unix_seconds):
        """The factor at this time."""

    def now(self):
        return self.at(time.time())

    def changes(self, begin, end):
        """When it changes between two times."""
        return []


class Constant(Provider):
    def __init__(self, value):
        self._value = number(value, "a factor per kilowatt-hour", least=0)

    def at(self, unix_seconds):
        return self._value


class OfFile(Provider):
    """A CSV file with a column of times in UTC and one of values, each of which lasts until the next row.

    The last lasts as long as the shortest other one, a single one an hour. Other times have no value."""

    def __init__(self, path, time_word, value_word):
        self._path = path = existing(path)
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file)
            head = next(rows, [])
            places = [next((i for i, name in enumerate(head) if word in name.lower()), None)
                      for word in (time_word, value_word)]
            if None in places:
                raise Corrupt(f"{path}: the header has no columns '{time_word}' and '{value_word}'")
            self._steps = sorted(_step(path, line, row, *places) for line, row in enumerate(rows, 2)
                                 if row and row[places[1]].strip())
        if not self._steps:
            raise Corrupt(f"{path} has no value")
        times = [t for t, _ in self._steps]
        self._length = min((b - a for a, b in zip(times, times[1:])), default=3600.0)

    def at(self, unix_seconds):
        place = bisect.bisect_right(self._steps, (unix_seconds, float("inf"))) - 1
        if place < 0 or unix_seconds >= self._steps[place][0] + self._length:
            when = datetime.datetime.fromtimestamp(unix_seconds, datetime.timezone.utc)
            raise NotFound(f"{self._path} has no value for {when:%Y-%m-%d %H:%M} UTC")
        return self._steps[place][1]

    def changes(self, begin, end):
        return [t for t, _ in self._steps if begin < t < end]


class FactoredMonitor:
    """Windows whose energies are multiplied, each part by the factor of its time. end_window waits until the
    sensors have reported the end, about 0.15 s. `_result`: the class of what it returns."""

    def __init__(self, provider, gpu_indices, cpu_indices, sync_execution_with):
        self.zeus_monitor = ZeusMonitor(gpu_indices=gpu_indices, cpu_indices=cpu_indices,
                                        sync_execution_with=sync_execution_with)
        self._provider = provider

    def begin_window(self, key, sync_execution=True):
        self.zeus_monitor.begin_window(key, sync_execution)

    def end_window(self, key, sync_execution=True):
        measurement = self.zeus_monitor.end_window(key, sync_execution).wait()
        products = {"gpu": {}, "cpu": None, "dram": None}
        for part, factor in self._parts(measurement):
            for kind in products:
                energies = getattr(part, f"{kind}_energy")
                for index, joules in (energies or {}).items():
                    products[kind] = products[kind] or {}
                    products[kind][index] = products[kind].get(index, 0.0) + joules / JOULES_PER_KWH * factor
        return self._result(measurement.time, measurement.gpu_energy, products["gpu"], measurement.cpu_energy,
                            products["cpu"], measurement.dram_energy, products["dram"])

    def _parts(self, measurement):
        """(measurement, factor) of each stretch with one factor."""
        whole = measurement.jouleprof
        now = time.time_ns() - time.monotonic_ns()
        if whole.begin is None:
            return []
        begin, end = [(t + now) * 1e-9 for t in (whole.begin, whole.end)]
        changes = self._provider.changes(begin, end)
        if not changes:
            return [(measurement, self._provider.at(begin))]
        edges = [whole.begin, *(round(t * 1e9) - now for t in changes), whole.end]
        return [(self.zeus_monitor.measurement_of(a, b), self._provider.at((a + now) * 1e-9))
                for a, b in zip(edges, edges[1:])]


def _step(path, line, row, time_place, value_place):
    try:
        text = row[time_place].strip().replace("Z", "+00:00")
        when = datetime.datetime.fromisoformat(text)
        if when.tzinfo is None:
            when = when.replace(tzinfo=datetime.timezone.utc)
        return when.timestamp(), number(float(row[value_place]), "a factor per kilowatt-hour")
    except (ValueError, IndexError) as error:
        raise Corrupt(f"{path}:{line}: {error}") from None
