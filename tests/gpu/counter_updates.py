"""The updates of an energy counter, polled by a thread."""

import bisect
import threading
import time


class CounterUpdates:
    """`read` gives the counter's joules, `clock` the time of a reading. Polls until it is closed."""

    def __init__(self, read, clock):
        self._read, self._clock = read, clock
        self.times, self.joules = [], []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._stop.set()
        self._thread.join()

    def energy(self, begin, end):
        """Joules between two times, interpolated between updates; NaN where the counter was not read."""
        return self._at(end) - self._at(begin)

    def _poll(self):
        last = None
        while not self._stop.is_set():
            joules, now = self._read(), self._clock()
            if joules != last:
                self.times.append(now)
                self.joules.append(joules)
                last = joules
            time.sleep(0.002)

    def _at(self, t):
        i = bisect.bisect(self.times, t)
        if not 0 < i < len(self.times):
            return float("nan")
        share = (t - self.times[i - 1]) / (self.times[i] - self.times[i - 1])
        return self.joules[i - 1] + share * (self.joules[i] - self.joules[i - 1])
