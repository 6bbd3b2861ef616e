"""What `monitor.gpus` and `monitor.cpus` of Zeus are: devices by number, with their figures now.

Units are Zeus's: milliwatts and millijoules. Energies count since the monitor was opened.
"""

import collections

from .._errors import InvalidArgument, Unavailable, Unsupported

CpuDramMeasurement = collections.namedtuple("CpuDramMeasurement", "cpu_mj dram_mj", defaults=(None,))


class Gpu:
    """One GPU, as CUDA numbers it."""

    def __init__(self, monitor, index):
        self._monitor = monitor
        self.gpu_index = index

    def get_name(self):
        return self._state().domain.name

    def get_instant_power_usage(self):
        return round(1e3 * _known(self._state().power, self._label(), "power"))

    def get_average_memory_power_usage(self):
        state = self._state("gpu_memory")
        return round(1e3 * _known(state.power, state.domain.label, "power"))

    def get_power_management_limit(self):
        return round(1e3 * self._gauge("power_limit_watts"))

    def get_gpu_temperature(self):
        return round(self._gauge("temperature_celsius"))

    def supports_get_total_energy_consumption(self):
        return True

    def get_total_energy_consumption(self):
        energy = self._state().energy
        return round(1e3 * _known(energy.joules, self._label(), "energy", energy.reason))

    def __getattr__(self, name):
        if name.startswith(("set", "reset")):
            raise Unsupported(f"{name} is not in jouleprof.zeus; jouleprof.PowerLimitOptimizer, `jouleprof sweep` and "
                              "`jouleprof apply` change settings, and restore them")
        raise AttributeError(f"{name} is not in jouleprof.zeus")

    def _label(self):
        return f"GPU {self.gpu_index}"

    def _gauge(self, name):
        return _known(self._state().gauges.get(name), self._label(), name)

    def _state(self, kind="gpu"):
        for state in self._monitor.snapshot().domains:
            if state.domain.kind == kind and state.domain.index == self.gpu_index:
                return state
        raise Unavailable(f"GPU {self.gpu_index} has no {kind} sensor here; see `jouleprof doctor`")


class NoSuchDevice(InvalidArgument, LookupError):
    """As of a list or a dict, a LookupError."""


class Devices:
    """`len(gpus)`, `gpus.get_name(0)`."""

    def __init__(self, devices):
        self._devices = devices

    def __len__(self):
        return len(self._devices)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def call(index, *arguments, **options):
            if index not in self._devices:
                raise NoSuchDevice(f"{index!r} is not among the measured ones: {list(self._devices)}")
            return getattr(self._devices[index], name)(*arguments, **options)

        return call


class Gpus(Devices):
    def __init__(self, monitor):
        super().__init__({i: Gpu(monitor, i) for i in monitor.gpu_indices} if monitor else {})

    @property
    def gpus(self):
        return list(self._devices.values())


class Cpu:
    """One processor package with a sensor."""

    def __init__(self, monitor, index, cpu, dram):
        self._monitor = monitor
        self.cpu_index = index
        self._labels = cpu, dram

    def supports_get_dram_energy_consumption(self):
        return self._labels[1] is not None

    def get_total_energy_consumption(self):
        snapshot = self._monitor.snapshot()
        joules = [None if label is None else snapshot[label].energy.joules for label in self._labels]
        cpu, dram = [None if value is None else value * 1e3 for value in joules]
        return CpuDramMeasurement(_known(cpu, self._labels[0], "energy"), dram)


class Cpus(Devices):
    """Those whose energy a sensor reads: a plain number could not say that it is an estimate."""

    def __init__(self, monitor):
        states = monitor.snapshot().domains if monitor else ()
        by_kind = {kind: [s for s in states if s.domain.kind == kind] for kind in ("cpu", "dram")}
        drams = {s.domain.device: s.domain.label for s in by_kind["dram"] if is_of_sensor(s)}
        super().__init__({
            i: Cpu(monitor, i, state.domain.label, drams.get(state.domain.device))
            for i, state in enumerate(by_kind["cpu"]) if is_of_sensor(state)})

    @property
    def cpus(self):
        return list(self._devices.values())

    @property
    def indices(self):
        return list(self._devices)


def is_of_sensor(figure):
    return figure.provenance in ("measured", "simulated")


def _known(value, device, what, reason=""):
    if value is None:
        raise Unavailable(f"the {what} of {device} is not known" + (f": {reason}" if reason else ""))
    return value
