"""The Python package on a simulated GPU.

Needs JOULEPROF_SIM, the simulated NVML, and the package: installed, or by PYTHONPATH=<build>/python.
JOULEPROF_TOOL, the command line, JOULEPROF_INJECT, the library for traced programs, and
JOULEPROF_ZEUS_PYTHON and JOULEPROF_TORCH_PYTHON, interpreters with Zeus and with PyTorch, and
JOULEPROF_LLAMA_SERVER, llama.cpp's server, are for the tests that use them.
"""

import ctypes
import json
import os
import time

import pytest

SIM = os.environ["JOULEPROF_SIM"]

for name in list(os.environ):
    if name.startswith(("CUDA_", "JOULEPROF_")) and name not in (
            "JOULEPROF_SIM", "JOULEPROF_TOOL", "JOULEPROF_ZEUS_PYTHON", "JOULEPROF_INJECT",
            "JOULEPROF_TORCH_PYTHON", "JOULEPROF_LLAMA_SERVER"):
        del os.environ[name]
os.environ["JOULEPROF_NVML_LIBRARY"] = "/nonexistent/libnvidia-ml.so.1"

CONSTANT = {"generation": "hopper", "idle_watts": 250}
SQUARE = {
    "generation": "hopper",
    "idle_watts": 100,
    "power": {"shape": "square", "low_watts": 100, "high_watts": 600, "period_seconds": 0.5},
}


class Machine:
    """GPUs put into this machine, and monitors opened on it."""

    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self._patch = monkeypatch
        self._monitors = []

    def gpus(self, *devices, **scenario):
        path = self.folder / "scenario.json"
        path.write_text(json.dumps({"devices": list(devices), **scenario}))
        self._patch.setenv("JOULEPROF_NVML_LIBRARY", SIM)
        self._patch.setenv("JOULEPROF_NVML_SCENARIO", str(path))
        return self

    def monitor(self, *args, **options):
        import jouleprof

        monitor = jouleprof.Monitor(*args, **options)
        self._monitors.append(monitor)
        return monitor

    def close(self):
        for monitor in self._monitors:
            monitor.close()

    @staticmethod
    def truth(begin, end, device=0):
        """Joules that the simulated GPU took between two values of jouleprof.now()."""
        energy = ctypes.CDLL(SIM).jouleprof_nvml_sim_energy_joules
        energy.restype = ctypes.c_double
        energy.argtypes = [ctypes.c_uint, ctypes.c_longlong, ctypes.c_longlong]
        offset = time.time_ns() - time.monotonic_ns()
        return energy(device, begin + offset, end + offset)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without GPUs, for a start."""
    machine = Machine(tmp_path, monkeypatch)
    yield machine
    machine.close()


@pytest.fixture
def gpu(machine):
    """A monitor of one GPU that draws exactly 250 W, and nothing else."""
    return machine.gpus(CONSTANT).monitor("gpu0")
