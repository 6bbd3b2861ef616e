"""Runs NVIDIA's Python binding (nvidia-ml-py) on the simulated library.

Usage: nvml_ml_py_test.py FOLDER, which holds libnvidia-ml.so.1. Exits with 77 (skipped) where the
binding is not installed.
"""

import json
import os
import subprocess
import sys
import tempfile

SKIPPED = 77

SCENARIO = {
    "devices": [
        {
            "generation": "hopper",
            "power": {"shape": "constant", "watts": 250},
            "processes": {"pid": "self", "sm_utilisation_ratio": 0.4, "memory_mib": 100},
        },
        {"generation": "hopper", "mig": {"profile": "1g.10gb"}},
    ],
    "faults": {"kind": "gpu_lost", "device": 1, "at_seconds": 3600},
}


def check():
    """The library is in the loader's path."""
    import pynvml

    pynvml.nvmlInit()
    assert pynvml.nvmlDeviceGetCount() == 2
    gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
    assert pynvml.nvmlDeviceGetName(gpu) == "NVIDIA H100 80GB HBM3"
    assert pynvml.nvmlDeviceGetPowerUsage(gpu) == 250000
    assert pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu) > 0
    assert pynvml.nvmlDeviceGetArchitecture(gpu) == pynvml.NVML_DEVICE_ARCH_HOPPER
    assert pynvml.nvmlDeviceGetPciInfo(gpu).busId == "00000000:01:00.0"
    assert pynvml.nvmlDeviceGetMemoryInfo(gpu).used == (512 + 100) << 20
    assert pynvml.nvmlDeviceGetPowerManagementLimitConstraints(gpu) == [200000, 700000]
    assert pynvml.nvmlDeviceGetTemperature(gpu, pynvml.NVML_TEMPERATURE_GPU) > 25

    field, scope = pynvml.NVML_FI_DEV_POWER_INSTANT, pynvml.NVML_POWER_SCOPE_GPU
    (value,) = pynvml.nvmlDeviceGetFieldValues(gpu, [(field, scope)])
    assert (value.nvmlReturn, value.value.uiVal) == (pynvml.NVML_SUCCESS, 250000)

    kind, samples = pynvml.nvmlDeviceGetSamples(gpu, pynvml.NVML_TOTAL_POWER_SAMPLES, 0)
    assert kind == pynvml.NVML_VALUE_TYPE_UNSIGNED_INT
    assert len(samples) == 120
    assert {s.sampleValue.uiVal for s in samples} == {250000}
    stamps = [s.timeStamp for s in samples]
    assert [b - a for a, b in zip(stamps, stamps[1:])] == [20000] * 119

    (process,) = pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)
    assert (process.pid, process.usedGpuMemory) == (os.getpid(), 100 << 20)
    (use,) = pynvml.nvmlDeviceGetProcessUtilization(gpu, 0)
    assert (use.pid, use.smUtil) == (os.getpid(), 40)

    parent = pynvml.nvmlDeviceGetHandleByIndex(1)
    assert pynvml.nvmlDeviceGetMigMode(parent) == [1, 1]
    mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(parent, 0)
    assert pynvml.nvmlDeviceGetUUID(mig).startswith("MIG-")

    pynvml.nvmlDeviceSetPowerManagementLimit(gpu, 300000)
    assert pynvml.nvmlDeviceGetPowerManagementLimit(gpu) == 300000
    try:
        pynvml.nvmlDeviceGetFanSpeed(gpu)
    except pynvml.NVMLError_NotSupported:
        pass
    else:
        raise AssertionError("nvmlDeviceGetFanSpeed is supported")
    pynvml.nvmlShutdown()


def main():
    if len(sys.argv) == 1:
        check()
        return 0
    try:
        import pynvml  # noqa: F401
    except ImportError:
        print("skipped: the Python module pynvml is missing (pip install nvidia-ml-py)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "scenario.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(SCENARIO, file)
        environment = dict(os.environ)
        environment["LD_LIBRARY_PATH"] = sys.argv[1]
        environment["JOULEPROF_NVML_SCENARIO"] = path
        environment.pop("JOULEPROF_NVML_EPOCH", None)
        return subprocess.run([sys.executable, __file__], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
