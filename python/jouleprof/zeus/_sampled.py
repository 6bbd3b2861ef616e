"""Samples of a monitor's snapshots by a thread of this process: what Zeus keeps of power and temperature."""

import bisect
import collections
import threading

from .._errors import Error, InvalidArgument
from .._live.monitor import Monitor


class Sampled:
    """Calls `_samples(snapshot)` every `period` seconds, which returns {(series, GPU): (time, value)}.

    Times are seconds since 1970. Of each series the latest `most` samples are kept; None: all.
    """

    def __init__(self, gpu_indices, period, most):
        self._monitor = Monitor(gpu_indices=gpu_indices)
        self.gpu_indices = list(gpu_indices) if gpu_indices is not None else self._monitor.gpu_indices
        if not self.gpu_indices:
            self._monitor.close()
            raise InvalidArgument("no GPU to monitor; see `jouleprof doctor`")
        self.update_period = period
        self._kept = collections.defaultdict(lambda: collections.deque(maxlen=most))
        self._lock = threading.Lock()
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
                kept = self._kept[key]
                if not kept or sample[0] > kept[-1][0]:
                    kept.append(sample)

    def _samples(self, snapshot):
        raise NotImplementedError

    def _timeline(self, series, gpu_index, start_time, end_time):
        """{GPU: [(time, value)]}, both ends included."""
        with self._lock:
            return {
                gpu: [(t, value) for t, value in self._kept[series, gpu]
                      if (start_time is None or t >= start_time) and (end_time is None or t <= end_time)]
                for gpu in self._chosen(gpu_index)}

    def _at(self, series, time):
        """{GPU: value} of the samples nearest to `time`, None: of the latest; None while a GPU has none."""
        found = {}
        with self._lock:
            for gpu in self.gpu_indices:
                kept = self._kept[series, gpu]
                if not kept:
                    return None
                found[gpu] = kept[-1][1] if time is None else _nearest(kept, time)
        return found

    def _chosen(self, gpu_index):
        if gpu_index is None:
            return self.gpu_indices
        if gpu_index not in self.gpu_indices:
            raise InvalidArgument(f"GPU {gpu_index} is not monitored; monitored: {self.gpu_indices}")
        return [gpu_index]

    def _states(self, snapshot, kind="gpu"):
        return [(s.domain.index, s) for s in snapshot.domains
                if s.domain.kind == kind and s.domain.index in self.gpu_indices]


def _nearest(samples, time):
    times = [t for t, _ in samples]
    place = bisect.bisect_left(times, time)
    around = [samples[i] for i in (place - 1, place) if 0 <= i < len(samples)]
    return min(around, key=lambda sample: abs(sample[0] - time))[1]
