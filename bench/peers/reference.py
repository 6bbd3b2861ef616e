"""The energy counter of GPU 0, read each millisecond by a process of its own: the reference of all errors.

The counter rises at its own update times. Energy between two marks is the counter's difference between the updates
around them, less the power at rest times what those lie apart from the marks.
"""

import bisect
import multiprocessing
import os
import time

SETTLE_SECONDS = 0.3  # after a job, until the sensors have seen all of it


def _poll(connection):
    import pynvml

    pynvml.nvmlInit()
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    times, joules = [], []
    last = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
    connection.send(os.getpid())
    while not connection.poll():
        before = time.perf_counter()
        value = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
        if value != last:
            times.append(before)
            joules.append(value / 1000)
            last = value
        time.sleep(0.001)
    connection.recv()
    connection.send((times, joules))


class Reference:
    """`with Reference() as reference: ...`; marks are time.perf_counter(), which all processes share."""

    def __enter__(self):
        context = multiprocessing.get_context("spawn")
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_poll, args=(other,), daemon=True)
        self._process.start()
        self._connection.recv()
        return self

    def __exit__(self, *_):
        time.sleep(SETTLE_SECONDS + 0.3)
        self._connection.send("stop")
        self.times, self.joules = self._connection.recv()
        self._process.join()

    def span(self, begin, end):
        """(joules, seconds) between the last update before `begin` and the first one after `end` has settled."""
        first = bisect.bisect_right(self.times, begin) - 1
        last = bisect.bisect_left(self.times, end + SETTLE_SECONDS)
        if first < 0 or last >= len(self.times):
            raise ValueError("the marks are outside of what was read")
        return self.joules[last] - self.joules[first], self.times[last] - self.times[first]

    def watts(self, begin, end):
        """Mean power of an interval without changes."""
        first = bisect.bisect_left(self.times, begin)
        last = bisect.bisect_right(self.times, end) - 1
        if last <= first:
            raise ValueError("no two updates of the counter lie within")
        return (self.joules[last] - self.joules[first]) / (self.times[last] - self.times[first])

    def energy(self, begin, end, rest_watts):
        joules, seconds = self.span(begin, end)
        return joules - rest_watts * (seconds - (end - begin))
