"""What the tool's sensors report while the workload runs."""

from .._errors import Error
from ._workload import Refused


class Observer:
    """The energy and the clocks of the device that does the work."""

    def __init__(self, monitor, device):
        self._monitor = monitor
        self._label = self._find(device)
        self._noise = {}  # of what was compared: a change within it is none

    @property
    def label(self):
        return self._label

    def sm_clock(self):
        """Hertz; None where there is none."""
        if self._label is None:
            return None
        return self._monitor.snapshot()[self._label].gauges.get("sm_clock_hertz")

    def power_change(self, begin, middle, end):
        """Relative, from the first half to the second; None without a figure."""
        early, late = self._energy(begin, middle), self._energy(middle, end)
        if early is None or late is None or not early.joules:
            return None
        noise = (early.repeatability or 0) + (late.repeatability or 0)
        self._noise["power"] = noise / early.joules
        return abs(late.joules - early.joules) / early.joules

    def tolerance(self, name, usual):
        return max(usual, self._noise.get(name, 0))

    def relative_noise(self, begin, end):
        """The sensor's part of the 95 % interval of the energy of [begin, end), without the
        calibration error; None without a figure."""
        energy = self._energy(begin, end)
        if energy is None or not energy.joules:
            return None
        return (energy.repeatability or 0) / energy.joules

    def _energy(self, begin, end):
        if self._label is None:
            return None
        try:
            energy = self._monitor.between(begin, end)[self._label]
        except Error:
            return None
        return energy if energy.joules is not None else None

    def _find(self, device):
        kind = "gpu" if device.startswith("cuda") else "cpu"
        index = int(device.partition(":")[2] or 0) if kind == "gpu" else None
        gpus = [domain.index for domain in self._monitor.domains if domain.kind == "gpu"]
        if index is not None and gpus and None not in gpus and index > max(gpus):
            raise Refused(f"there is no {device}: GPUs 0 to {max(gpus)} are visible")
        for domain in self._monitor.domains:
            if domain.kind == kind and domain.is_whole and not domain.reason and (
                    index is None or domain.index == index):
                return domain.label
        return None
