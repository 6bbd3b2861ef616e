"""As zeus.metric of Zeus 0.16: energy and power for a Prometheus push gateway.

Threads of this process wait for the energies and send them; begin_window and end_window do not wait.
"""

import atexit
import queue
import threading
import urllib.error
import urllib.parse
import urllib.request
import warnings
import weakref

from .._arguments import nanoseconds
from .._errors import Error, InvalidArgument
from .._live import sync
from .._native import now
from .._prometheus import Family, Histogram
from .monitor.energy import ZeusMonitor

__all__ = ["EnergyCumulativeCounter", "EnergyHistogram", "PowerGauge"]

_KINDS = ("gpu", "cpu", "dram")
_LABELS = ("index", "window")
_open: "weakref.WeakSet[EnergyHistogram]" = weakref.WeakSet()


class Gateway:
    """Sends all families of a job. A gateway that does not answer is a warning, once: the training goes on."""

    def __init__(self, url, job):
        url = url if "://" in url else f"http://{url}"
        self._url = f"{url.rstrip('/')}/metrics/job/{urllib.parse.quote(job, safe='')}"
        self._lock = threading.Lock()
        self._has_warned = False

    def push(self, families):
        body = "".join(f"{line}\n" for family in families for line in family.lines()).encode()
        request = urllib.request.Request(self._url, body, {"Content-Type": "text/plain; version=0.0.4"}, method="PUT")
        with self._lock:
            try:
                with urllib.request.urlopen(request, timeout=10):
                    pass
            except (urllib.error.URLError, OSError) as error:
                if not self._has_warned:
                    warnings.warn(f"jouleprof: {self._url} did not take the metrics: {error}", RuntimeWarning,
                                  stacklevel=2)
                self._has_warned = True


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
        self._families = {kind: Histogram(*_name_of(kind), _LABELS, values) for kind, values in bounds.items()}
        self._gateway = Gateway(pushgateway_url, job)
        self.energy_monitor = ZeusMonitor(gpu_indices=gpu_indices, cpu_indices=cpu_indices)
        self._ended = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="jouleprof-push", daemon=True)
        self._thread.start()
        _open.add(self)

    def begin_window(self, name, sync_execution=True):
        """Begins a window of this name; waits for the GPUs first if `sync_execution`."""
        self.energy_monitor.begin_window(f"__EnergyHistogram_{name}", sync_execution)

    def end_window(self, name, sync_execution=True):
        """Ends the window; its energy is in the metrics soon."""
        self._ended.put((name, self.energy_monitor.end_window(f"__EnergyHistogram_{name}", sync_execution)))

    def close(self):
        """Waits for what has ended to be in the metrics, for at most 30 s."""
        self._ended.put(None)
        self._thread.join(30)

    def _run(self):
        while True:
            ended = self._ended.get()
            if ended is None:
                return
            name, measurement = ended
            for kind, index, joules in _figures(measurement.wait):
                self._families[kind].observe((index, name), joules)
            self._gateway.push(family for family in self._families.values() if family.values)


class _Periodic:
    """Windows, each with a thread that sends its figures every `update_period` seconds and at its end."""

    def __init__(self, cpu_indices, gpu_indices, update_period, pushgateway_url, job):
        nanoseconds(update_period, "update_period")
        # Open before a window begins, which then lacks nothing.
        self._monitor = ZeusMonitor(gpu_indices=gpu_indices, cpu_indices=cpu_indices)
        self._gpus = gpu_indices
        self.update_period = update_period
        self._gateway = Gateway(pushgateway_url, job)
        self._running = {}

    def begin_window(self, name, sync_execution=False):
        """Begins a window of this name; waits for the GPUs first if `sync_execution`."""
        if name in self._running:
            raise InvalidArgument(f"window '{name}' is open already")
        self._synchronise(sync_execution)
        ended = queue.SimpleQueue()
        thread = threading.Thread(target=self._run, args=(name, now(), ended), name="jouleprof-push", daemon=True)
        self._running[name] = thread, ended
        thread.start()

    def end_window(self, name, sync_execution=False):
        if name not in self._running:
            raise InvalidArgument(f"no window '{name}' is open")
        self._synchronise(sync_execution)
        thread, ended = self._running.pop(name)
        ended.put(now())
        thread.join(30)

    def _ends(self, ended):
        """Of each period, when it is over; the last is the end of the window."""
        while True:
            try:
                yield ended.get(timeout=self.update_period)
                return
            except queue.Empty:
                yield now()

    def _synchronise(self, sync_execution):
        if sync_execution:
            sync.function_of("torch")(self._gpus)


class EnergyCumulativeCounter(_Periodic):
    """Counters of the energy since begin_window, sent every `update_period` seconds and at end_window."""

    def _run(self, name, begin, ended):
        families = {kind: Family(_name_of(kind)[0], "counter", _name_of(kind)[1], _LABELS) for kind in _KINDS}
        for end in self._ends(ended):
            for kind, index, joules in _figures(lambda: self._monitor.measurement_of(begin, max(begin, end))):
                families[kind].add((index, name), joules)
            begin = end
            self._gateway.push(family for family in families.values() if family.values)


class PowerGauge(_Periodic):
    """The power of GPUs, sent every `update_period` seconds between begin_window and end_window."""

    def __init__(self, gpu_indices, update_period, pushgateway_url, job):
        super().__init__([], gpu_indices, update_period, pushgateway_url, job)
        if not self._monitor.gpu_indices:
            raise InvalidArgument("no GPU to monitor; see `jouleprof doctor`")

    def _run(self, name, begin, ended):
        family = Family("power_monitor_gpu_power_watts", "gauge", "Power of a GPU", _LABELS)
        for _ in self._ends(ended):
            try:
                states = self._monitor.monitor.snapshot().domains
            except Error:
                return  # the monitor was closed
            family.values = {(state.domain.index, name): state.power for state in states
                             if state.domain.kind == "gpu" and state.power is not None}
            self._gateway.push([family])


def _name_of(kind):
    return f"energy_monitor_{kind}_energy_joules", f"Energy of windows, {kind}"


def _figures(measured):
    """(kind, index, joules) of what it returns, once they are final."""
    try:
        measurement = measured()
        by_kind = zip(_KINDS, (measurement.gpu_energy, measurement.cpu_energy, measurement.dram_energy))
        return [(kind, index, joules) for kind, energies in by_kind for index, joules in (energies or {}).items()]
    except Error:
        return []  # the monitor was closed


@atexit.register
def _close_all():
    for histogram in list(_open):
        histogram.close()
