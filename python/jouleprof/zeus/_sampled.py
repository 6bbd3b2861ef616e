"""What Zeus keeps of the power and temperature of GPUs."""

from .._arguments import nanoseconds, whole
from .._errors import InvalidArgument
from .._live.monitor import Monitor
from .._live.sampled import Sampled


class SampledGpus(Sampled):
    """Series are pairs of a name and a GPU."""

    def __init__(self, gpu_indices, period, most):
        nanoseconds(period, "update_period")
        if most is not None:
            most = whole(most, "max_samples_per_gpu is a number of samples above 0", 1)
        monitor = Monitor(gpu_indices=gpu_indices)
        self.gpu_indices = list(gpu_indices) if gpu_indices is not None else monitor.gpu_indices
        if not self.gpu_indices:
            monitor.close()
            raise InvalidArgument("no GPU to monitor; see `jouleprof doctor`")
        super().__init__(monitor, period, most)

    def _timeline(self, series, gpu_index, start_time, end_time):
        """{GPU: [(time, value)]}, both ends included."""
        with self._lock:
            return {
                gpu: [(t, value) for t, value in self._kept[series, gpu]
                      if (start_time is None or t >= start_time) and (end_time is None or t <= end_time)]
                for gpu in self._chosen(gpu_index)}

    def _at(self, series, time):
        """{GPU: value} of the samples nearest to `time`, None: of the latest; None while a GPU has none."""
        with self._lock:
            kept = {gpu: self._kept[series, gpu] for gpu in self.gpu_indices}
            if not all(kept.values()):
                return None
            # A clock that was set back leaves samples out of order.
            return {gpu: (samples[-1] if time is None else min(reversed(samples), key=lambda s: abs(s[0] - time)))[1]
                    for gpu, samples in kept.items()}

    def _chosen(self, gpu_index):
        if gpu_index is None:
            return self.gpu_indices
        if gpu_index not in self.gpu_indices:
            raise InvalidArgument(f"GPU {gpu_index} is not monitored; monitored: {self.gpu_indices}")
        return [gpu_index]

    def _states(self, snapshot, kind="gpu"):
        return [(s.domain.index, s) for s in snapshot.domains
                if s.domain.kind == kind and s.domain.index in self.gpu_indices]
