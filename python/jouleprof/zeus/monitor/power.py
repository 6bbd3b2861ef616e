"""As zeus.monitor.power of Zeus 0.16."""

import enum
import time as _time
from typing import Dict, List, Optional, Sequence, Tuple, Union

from ..._errors import InvalidArgument
from .._figures import ByGpu
from .._sampled import SampledGpus

__all__ = ["PowerDomain", "PowerMonitor"]

_Timeline = Dict[int, List[Tuple[float, float]]]

_MEAN_SECONDS = 1.0  # of the device's average power
_SET_NANOSECONDS = 100_000_000  # a wall clock that moves by more between two samples was set


class PowerDomain(enum.Enum):
    DEVICE_INSTANT = "device_instant"
    DEVICE_AVERAGE = "device_average"  # over the last second
    MEMORY_AVERAGE = "memory_average"


class PowerMonitor(SampledGpus):
    """The power of GPUs over time, sampled by a thread of this process every 0.1 s.

    get_energy does not integrate these samples: it is the energy that a window of the same time has.
    """

    def __init__(self, gpu_indices: Optional[Sequence[int]] = None, update_period: Optional[float] = None,
                 max_samples_per_gpu: Optional[int] = None,
                 power_domains: Optional[Sequence[Union[PowerDomain, str]]] = None) -> None:
        self._since: Dict[int, List[Tuple[float, float]]] = {}
        self._clocks: List[Tuple[int, int]] = []  # since when, and by how much the wall clock is ahead
        super().__init__(gpu_indices, update_period or 0.1, max_samples_per_gpu)
        supported = [d for d in PowerDomain if d is not PowerDomain.MEMORY_AVERAGE or self._has_memory()]
        wanted = supported if power_domains is None else [PowerDomain(d) for d in power_domains]
        absent = [d.value for d in wanted if d not in supported]
        if absent:
            self.stop()
            raise InvalidArgument(f"no sensor here for {', '.join(absent)}; there are: "
                                  f"{', '.join(d.value for d in supported)}")
        self.measurement_domains = wanted

    def get_power_timeline(self, power_domain: Union[PowerDomain, str], gpu_index: Optional[int] = None,
                           start_time: Optional[float] = None, end_time: Optional[float] = None) -> _Timeline:
        """{GPU: [(seconds since 1970, watts)]}."""
        self._take()
        return self._timeline(self._checked(power_domain).value, gpu_index, start_time, end_time)

    def get_all_power_timelines(self, gpu_index: Optional[int] = None, start_time: Optional[float] = None,
                                end_time: Optional[float] = None) -> Dict[str, _Timeline]:
        """The same by the names of the domains."""
        return {d.value: self.get_power_timeline(d, gpu_index, start_time, end_time)
                for d in self.measurement_domains}

    def get_energy(self, start_time: float, end_time: float) -> Dict[int, float]:
        """Joules by GPU between two values of time.time(); waits until the sensors have reported the end.
        A GPU without a figure is missing."""
        self._follow_clock()
        # Our clock began with the machine; what lies before has no figure.
        begin, end = (max(self._monotonic(round(t * 1e9)), 0) for t in (start_time, end_time))
        if end < begin:
            raise InvalidArgument("the end lies before the start")
        measured = self._monitor.between(begin, max(min(end, _time.monotonic_ns()), 1))
        return ByGpu.of(measured, self.gpu_indices)

    def get_power(self, time: Optional[float] = None) -> Optional[Dict[int, float]]:
        """Watts by GPU at a time, None: the latest. None before the first sample."""
        self._take()
        return self._at(self._checked(PowerDomain.DEVICE_INSTANT).value, time)

    def _checked(self, domain):
        domain = PowerDomain(domain)
        if domain not in self.measurement_domains:
            raise InvalidArgument(f"{domain.value} is not monitored; monitored: "
                                  f"{', '.join(d.value for d in self.measurement_domains)}")
        return domain

    def _follow_clock(self):
        now = _time.monotonic_ns()
        ahead = _time.time_ns() - now
        if self._clocks and abs(ahead - self._clocks[-1][1]) < _SET_NANOSECONDS:
            now, _ = self._clocks.pop()
        self._clocks.append((now, ahead))

    def _monotonic(self, wall):
        """Of a time that the wall clock showed twice: the later."""
        until = _time.monotonic_ns()
        for since, ahead in reversed(self._clocks):
            if since <= wall - ahead <= until:
                return wall - ahead
            until = since
        return wall - self._clocks[-1][1]

    def _has_memory(self):
        return any(state.power is not None or not state.domain.reason
                   for _, state in self._states(self._monitor.snapshot(), "gpu_memory"))

    def _samples(self, snapshot):
        self._follow_clock()
        found = {}
        for series, kind in (("device_instant", "gpu"), ("memory_average", "gpu_memory")):
            for gpu, state in self._states(snapshot, kind):
                if state.power is not None:
                    found[series, gpu] = (snapshot.time - (state.age or 0.0), state.power)
        for gpu, state in self._states(snapshot):
            mean = self._mean(gpu, state)
            if mean is not None:
                found["device_average", gpu] = (snapshot.time - (state.age or 0.0), mean)
        return found

    def _mean(self, gpu, state):
        """Over the last second, of the energy; None during the first."""
        joules, seconds = state.energy.joules, state.energy_seconds
        if joules is None:
            return None
        kept = self._since.setdefault(gpu, [])
        kept.append((seconds, joules))
        while len(kept) > 2 and seconds - kept[1][0] >= _MEAN_SECONDS:
            kept.pop(0)
        length = seconds - kept[0][0]
        return (joules - kept[0][1]) / length if length >= _MEAN_SECONDS else None
