"""The tools that are compared: each measures the GPU's energy between begin() and end(), as its own manual says.

A tool that cannot do something raises Cannot with the reason. Energies are joules of GPU 0.
"""

import contextlib
import datetime
import os
import pty
import shutil
import subprocess
import sys
import tempfile
import threading
import time


class Cannot(Exception):
    pass


class Tool:
    """Measures between begin() and end(); a tool is used once, or for many windows after one another."""

    name = ""

    def begin(self):
        raise NotImplementedError

    def end(self):
        """Joules, or a function that gives them later."""
        raise NotImplementedError

    def close(self):
        pass


class Jouleprof(Tool):
    name = "jouleprof"

    def __init__(self):
        import jouleprof

        self._monitor = jouleprof.Monitor("gpu0")

    def begin(self):
        self._monitor.begin_window("w")

    def end(self):
        window = self._monitor.end_window("w")
        return lambda: window.energy["gpu0"].joules

    def close(self):
        self._monitor.close()


class Zeus(Tool):
    name = "Zeus"
    options = {}

    def __init__(self):
        from zeus.monitor import ZeusMonitor

        self._monitor = ZeusMonitor(gpu_indices=[0], cpu_indices=[], **self.options)

    def begin(self):
        self._monitor.begin_window("w", sync_execution=False)

    def end(self):
        return self._monitor.end_window("w", sync_execution=False).gpu_energy[0]


class ZeusInstant(Zeus):
    name = "Zeus, approx_instant_energy"
    options = {"approx_instant_energy": True}


class CodeCarbon(Tool):
    name = "CodeCarbon"

    def __init__(self, **options):
        from codecarbon import OfflineEmissionsTracker

        self._tracker = OfflineEmissionsTracker(country_iso_code="USA", gpu_ids=[0], save_to_file=False,
                                                log_level="error", allow_multiple_runs=True, **options)

    def begin(self):
        self._tracker.start()

    def end(self):
        self._tracker.stop()
        return self._tracker.final_emissions_data.gpu_energy * 3.6e6


class CodeCarbonTask(CodeCarbon):
    """Its windows: tasks of one tracker."""

    def begin(self):
        self._tracker.start_task("w")

    def end(self):
        energy = self._tracker.stop_task("w").gpu_energy * 3.6e6
        self._tracker._tasks.clear()  # so that a name may come again
        return energy


class PyJoules(Tool):
    name = "pyJoules"

    def __init__(self):
        from pyJoules.device.nvidia_device import NvidiaGPUDevice, NvidiaGPUDomain
        from pyJoules.energy_meter import EnergyMeter

        NvidiaGPUDevice.available_domains()  # it initialises NVML
        device = NvidiaGPUDevice()
        device.configure([NvidiaGPUDomain(0)])
        self._meter = EnergyMeter([device])

    def begin(self):
        self._meter.start("w")

    def end(self):
        self._meter.stop()
        (sample,) = self._meter.get_trace()
        return sample.energy["nvidia_gpu_0"] / 1e3  # its GPU domain is in mJ


class Perun(Tool):
    """A decorated function in a thread: it returns when end() says so."""

    name = "perun"
    _found = []  # of all runs: perun keeps one callback of a name

    def __init__(self):
        import perun.configuration  # noqa: F401

        self._folder = tempfile.mkdtemp()

    def begin(self):
        from perun import perun, register_callback
        from perun.configuration import config
        from perun.core import Perun as Core

        Core(config)  # callbacks need one

        def jouleprof_peers(node):
            self._found.append(node)

        register_callback(jouleprof_peers)
        started, self._stop = threading.Event(), threading.Event()

        @perun(data_out=self._folder, format="json")
        def job():
            started.set()
            self._stop.wait()

        self._found.clear()
        self._thread = threading.Thread(target=job, daemon=True)
        self._thread.start()
        if not started.wait(30):
            self._stop.set()
            raise Cannot("it did not start in 30 s")

    def end(self):
        self._stop.set()
        self._thread.join(60)
        if self._thread.is_alive():
            raise Cannot("it did not end in 60 s")
        return gpu_energy(self._found[-1])

    def close(self):
        shutil.rmtree(self._folder, ignore_errors=True)


def gpu_energy(node):
    """Joules of the GPU in a run of perun."""
    for kind, metric in node.metrics.items():
        if getattr(kind, "value", kind) == "gpu_energy":
            return float(metric.value) * metric.metric_md.mag.value
    for child in node.nodes.values():
        with contextlib.suppress(Cannot):
            return gpu_energy(child)
    raise Cannot("its result has no GPU energy")


class Polled(Tool):
    """A command of nvidia-smi that prints watts; its energy between two times is the integral of the rows."""

    command = ()

    def __init__(self):
        if not shutil.which("nvidia-smi"):
            raise Cannot("nvidia-smi is not installed")
        self._lines = []
        here, there = pty.openpty()  # a terminal, so that each row is printed at once
        self._process = subprocess.Popen(self.command, stdout=there, stderr=subprocess.STDOUT)
        os.close(there)
        self._reader = threading.Thread(target=self._read, args=(here,), daemon=True)
        self._reader.start()
        deadline = time.monotonic() + 4
        while not any(map(self.row, list(self._lines))) and time.monotonic() < deadline:
            time.sleep(0.05)

    def _read(self, terminal):
        with contextlib.suppress(OSError), open(terminal, errors="replace") as lines:
            self._lines.extend(iter(lines.readline, ""))

    @staticmethod
    def row(line):
        """(seconds of the wall clock, watts) of a line, or None."""
        raise NotImplementedError

    def begin(self):
        self._begin = time.time()

    def end(self):
        begin, end = self._begin, time.time()
        return lambda: self.energy(begin, end)

    def energy(self, begin, end):
        """The mean of the rows within, times the length; with fewer than one row, what the row before says."""
        rows = [row for row in map(self.row, list(self._lines)) if row]
        within = [watts for at, watts in rows if begin <= at <= end]
        if not within:
            before = [watts for at, watts in rows if at <= end]
            if not before:
                raise Cannot(f"it printed no watts: {''.join(self._lines).strip()[:80]!r}")
            within = before[-1:]
        return sum(within) / len(within) * (end - begin)

    def close(self):
        self._process.kill()
        self._process.wait()


class Smi(Polled):
    name = "nvidia-smi, 10 Hz"
    command = ("nvidia-smi", "-i", "0", "--query-gpu=timestamp,power.draw", "--format=csv,noheader,nounits",
               "-lms", "100")

    @staticmethod
    def row(line):
        with contextlib.suppress(ValueError):
            at, watts = line.strip().split(", ")
            return datetime.datetime.strptime(at, "%Y/%m/%d %H:%M:%S.%f").timestamp(), float(watts)
        return None


class Dmon(Polled):
    name = "nvidia-smi dmon"
    command = ("nvidia-smi", "dmon", "-i", "0", "-s", "p", "-d", "1", "-o", "DT")

    @staticmethod
    def row(line):
        with contextlib.suppress(ValueError, IndexError):
            words = line.split()
            at = datetime.datetime.strptime(f"{words[0]} {words[1]}", "%Y%m%d %H:%M:%S")
            return at.timestamp(), float(words[3])
        return None


# In the order in which they begin around one job; perun takes seconds to start, so it is the first.
AROUND_A_JOB = (Perun, CodeCarbon, ZeusInstant, Zeus, PyJoules, Smi, Dmon, Jouleprof)
JOB_TOOLS = (Jouleprof, Zeus, ZeusInstant, CodeCarbon, Perun, PyJoules, Smi, Dmon)


def command_line():
    """jouleprof's own: JOULEPROF_TOOL, or the installed package's."""
    return [os.environ["JOULEPROF_TOOL"]] if "JOULEPROF_TOOL" in os.environ else [sys.executable, "-m", "jouleprof"]


def open_tools(kinds):
    """(tools that run here, name -> why another cannot)"""
    tools, cannot = [], {}
    for kind in kinds:
        try:
            tools.append(kind())
        except Exception as error:  # what a tool raises is its own
            cannot[kind.name] = f"{type(error).__name__}: {error}".splitlines()[0][:120]
    return tools, cannot


os.environ.setdefault("PERUN_LOG_LVL", "ERROR")
