"""As zeus.metric of Zeus 0.16: energy and power for a Prometheus push gateway.

Threads of this process wait for the energies and send them; begin_window and end_window do not wait.
"""

import atexit
import queue
import threading
import weakref

from .._errors import Error, InvalidArgument
from .._live import sync
from ._push import Family, Gateway, Histogram
from .monitor.energy import ZeusMonitor
from .monitor.power import PowerMonitor

__all__ = ["EnergyCumulativeCounter", "EnergyHistogram", "PowerGauge"]

_KINDS = ("gpu", "cpu", "dram")
_open: "weakref.WeakSet[EnergyHistogram]" = weakref.WeakSet()


class EnergyHistogram:
    """A histogram of the energies of windows. close() waits until all are sent, as the end of the program does."""

    def __init__(self, cpu_indices, gpu_indices, pushgateway_url, job,
                 gpu_bucket_range=(50.0, 100.0, 200.0, 500.0, 1000.0),
                 cpu_bucket_range=(10.0, 50.0, 100.0, 500.0, 1000.0),
                 dram_bucket_range=(5.0, 10.0, 20.0, 50.0, 150.0)):
        bounds = dict(zip(_KINDS, (gpu_bucket_range, cpu_bucket_range, dram_bucket_range)))
        for kind, values in bounds.items():
            if not list(values):
                raise InvalidArgument(f"{kind}_bucket_range is empty; leave it out for the default")
        self._families = {kind: Histogram(*_name_of(kind), values) for kind, values in bounds.items()}
        self._gateway = Gateway(pushgateway_url, job)
        self.energy_monitor = ZeusMonitor(gpu_indices=gpu_indices, cpu_indices=cpu_indices)
        self._ended = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="jouleprof-push", daemon=True)
        self._thread.start()
        _open.add(self)

    def begin_window(self, name, sync_execution=True):
        self.energy_monitor.begin_window(f"__EnergyHistogram_{name}", sync_execution)

    def end_window(self, name, sync_execution=True):
        self._ended.put((name, self.energy_monitor.end_window(f"__EnergyHistogram_{name}", sync_execution)))

    def close(self):
        self._ended.put(None)
        self._thread.join(30)

    def _run(self):
        while True:
            ended = self._ended.get()
            if ended is None:
                return
            name, measurement = ended
            for kind, index, joules in _figures(measurement):
                self._families[kind].observe((name, index), joules)
            self._gateway.push(family for family in self._families.values() if family.values)


class EnergyCumulativeCounter:
    """Counters of the energy since begin_window, sent every `update_period` seconds and at end_window."""

    def __init__(self, cpu_indices, gpu_indices, update_period, pushgateway_url, job):
        self._indices = {"gpu_indices": gpu_indices, "cpu_indices": cpu_indices}
        self.update_period = update_period
        self._gateway = Gateway(pushgateway_url, job)
        self._running = {}

    def begin_window(self, name, sync_execution=False):
        _begin(self._running, name, self._indices["gpu_indices"], sync_execution, self._run)

    def end_window(self, name, sync_execution=False):
        _end(self._running, name, self._indices["gpu_indices"], sync_execution)

    def _run(self, name, stopping):
        families = {kind: Family(_name_of(kind)[0], "counter", _name_of(kind)[1]) for kind in _KINDS}
        monitor = ZeusMonitor(**self._indices)
        monitor.begin_window(name, sync_execution=False)
        is_last = False
        while not is_last:
            is_last = stopping.wait(self.update_period)
            measurement = monitor.end_window(name, sync_execution=False)
            if not is_last:
                monitor.begin_window(name, sync_execution=False)
            for kind, index, joules in _figures(measurement):
                values = families[kind].values
                values[name, index] = values.get((name, index), 0.0) + joules
            self._gateway.push(family for family in families.values() if family.values)
        if monitor.monitor is not None:
            monitor.monitor.close()


class PowerGauge:
    """The power of GPUs, sent every `update_period` seconds between begin_window and end_window."""

    def __init__(self, gpu_indices, update_period, pushgateway_url, job):
        self._gpus = gpu_indices
        self.update_period = update_period
        self._gateway = Gateway(pushgateway_url, job)
        self._running = {}

    def begin_window(self, name, sync_execution=False):
        _begin(self._running, name, self._gpus, sync_execution, self._run)

    def end_window(self, name, sync_execution=False):
        _end(self._running, name, self._gpus, sync_execution)

    def _run(self, name, stopping):
        family = Family("power_monitor_gpu_power_watts", "gauge", "Power of a GPU")
        monitor = PowerMonitor(self._gpus, min(self.update_period, 0.1), max_samples_per_gpu=1)
        is_last = False
        while not is_last:
            is_last = stopping.wait(self.update_period)
            family.values = {(name, gpu): watts for gpu, watts in (monitor.get_power() or {}).items()}
            self._gateway.push([family])
        monitor.stop()


def _name_of(kind):
    return f"energy_monitor_{kind}_energy_joules", f"Energy of windows, {kind}"


def _figures(measurement):
    """(kind, index, joules), once they are final."""
    try:
        measurement.wait()
        by_kind = zip(_KINDS, (measurement.gpu_energy, measurement.cpu_energy, measurement.dram_energy))
        return [(kind, index, joules) for kind, energies in by_kind for index, joules in (energies or {}).items()]
    except Error:
        return []  # the monitor was closed


def _begin(running, name, gpus, sync_execution, run):
    if name in running:
        raise InvalidArgument(f"window '{name}' is open already")
    if sync_execution:
        sync.function_of("torch")(gpus)
    stopping = threading.Event()
    thread = threading.Thread(target=run, args=(name, stopping), name="jouleprof-push", daemon=True)
    running[name] = thread, stopping
    thread.start()


def _end(running, name, gpus, sync_execution):
    if name not in running:
        raise InvalidArgument(f"no window '{name}' is open")
    if sync_execution:
        sync.function_of("torch")(gpus)
    thread, stopping = running.pop(name)
    stopping.set()
    thread.join(30)


@atexit.register
def _close_all():
    for histogram in list(_open):
        histogram.close()
