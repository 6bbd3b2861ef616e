"""Samples of a monitor's snapshots, by a thread of this process."""

import bisect
import collections
import threading

from .._errors import Error

_SAME_SECONDS = 1  # one reading has two times as far apart, because a snapshot's clock jitters


class Sampled:
    """Calls `_samples(snapshot)` every `period` seconds, which returns {series: (time, value)}.

    Times are seconds since 1970. Of each series the latest `most` samples are kept; None: all. Closes the monitor
    when it stops."""

    def __init__(self, monitor, period, most=None):
        self._monitor = monitor
        self.update_period = period
        self._kept = collections.defaultdict(lambda: collections.deque(maxlen=most))
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self._take()
        self._thread = threading.Thread(target=self._run, name="jouleprof-samples", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the sampling; what was sampled can still be asked for."""
        self._stopping.set()
        self._thread.join()
        self._take()
        self._monitor.close()

    def _run(self):
        while not self._stopping.wait(self.update_period):
            try:
                self._take()
            except Error:
                return  # the monitor was closed at exit

    def _take(self):
        if self._monitor.closed:
            return
        found = self._samples(self._monitor.snapshot())
        with self._lock:
            for key, sample in found.items():
                if self._is_new(key, sample[0]):
                    self._kept[key].append(sample)

    def _is_new(self, key, moment):
        """Whether the series does not have the reading of this time: it is later, or the wall clock was set back."""
        kept = self._kept[key]
        return not kept or not 0 <= kept[-1][0] - moment < _SAME_SECONDS

    def _samples(self, snapshot):
        raise NotImplementedError


def nearest(samples, time):
    """The sample nearest to a time; None of an empty list."""
    place = bisect.bisect_left(samples, (time,))
    around = [samples[i] for i in (place - 1, place) if 0 <= i < len(samples)]
    return min(around, key=lambda sample: abs(sample[0] - time), default=None)
