"""run --kernels of a program that uses ROCm, on a simulated MI300X.

The board's table in /sys counts the energy of kernels whose power is known. A simulated rocprofiler-sdk
loads the library that is injected as AMD's does.
"""

import json
import pathlib
import shutil
import subprocess
import time

import pytest
from conftest import SIM, TOOL, Tool

BUILD = pathlib.Path(SIM).parents[2]
PROGRAM = BUILD / "tests" / "rocm_sim" / "jouleprof_hip_program"
LIBRARY = BUILD / "tests" / "rocm_sim" / "librocprofiler-sdk.so"
INJECT = pathlib.Path(TOOL).resolve().parents[1] / "inject" / "libjouleprof_inject.so"
UNIQUE = "5d1a3b9f00c0ffee"
IDLE = 140.0
# Name, watts above idle, period, duty and phase in seconds. They never run at once.
KERNELS = [("_Z4gemmPf", 420.0, 1.1, 0.33, 0.0), ("softmax", 180.0, 1.1, 0.22, 0.45),
           ("_Z4copyPf", 90.0, 1.1, 0.2, 0.8)]
SECONDS = 16
LATE = 0.05  # of a kernel's time: by how much a busy machine begins and ends its launches late
# In which the tool starts and sees the board idle; the longer ones are for a machine that is busy.
BEFORE = (7, 14, 40)

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="the simulated ROCm is not built")


def squares():
    return [":".join(str(part) for part in kernel) for kernel in KERNELS]


class Machine(Tool):
    """With one MI300X, and ROCm in /opt/rocm unless it is left out."""

    def __init__(self, folder, rocm=True):
        super().__init__(folder)
        root = folder / "root"
        device = root / "sys/devices/pci0000:c0/0000:c1:00.0"
        device.mkdir(parents=True)
        (device / "uevent").write_text("DRIVER=amdgpu\nPCI_SLOT_NAME=0000:c1:00.0\n")
        (device / "device").write_text("0x74a1\n")
        (device / "unique_id").write_text(UNIQUE + "\n")
        (device / "product_name").write_text("AMD Instinct MI300X\n")
        card = root / "sys/class/drm/card0"
        card.mkdir(parents=True)
        (card / "device").symlink_to(device)
        (root / "sys/bus/pci/devices").mkdir(parents=True)
        (root / "sys/bus/pci/devices/0000:c1:00.0").symlink_to(device)
        (root / "dev").mkdir()
        (root / "dev/kfd").write_text("")
        if rocm:
            (root / "opt/rocm/lib").mkdir(parents=True)
            shutil.copy(LIBRARY, root / "opt/rocm/lib/librocprofiler-sdk.so")
        self.table = device / "gpu_metrics"
        self.environment = {k: v for k, v in self.environment.items() if not k.startswith("ROC")}
        self.environment["JOULEPROF_ROOT"] = str(root)
        self.environment["JOULEPROF_INJECT_LIBRARY"] = str(INJECT)

    def kernels(self, begin, *options, end=None, name="x.jprof"):
        """Runs the program with its kernels from `begin` on."""
        end = begin + SECONDS if end is None else end
        load = [str(begin), str(end), *squares()]
        board = subprocess.Popen([PROGRAM, "board", self.table, str(IDLE), *load],
                                 stdin=subprocess.PIPE)
        try:
            for _ in range(200):
                if self.table.exists() and self.table.stat().st_size:
                    break
                time.sleep(0.02)
            return self("run", "--kernels", "-f", "-o", name, "--idle", "1s", *options, "--",
                        "sh", "-c", f"while [ $(date +%s) -lt {begin - 2} ]; do sleep 0.1; done; "
                        f"exec {PROGRAM} run {' '.join(load)}", status=None)
        finally:
            board.stdin.close()
            board.wait()


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    for before in BEFORE:
        tool = Machine(tmp_path_factory.mktemp("rocm"))
        tool.run = tool.kernels(round(time.time()) + before)
        if tool.run.returncode == 77:
            continue
        assert tool.run.returncode == 0, tool.run.err
        busy = {row["symbol"] or row["name"]: row["busy_seconds"] for row in rows(tool, "kernel")["rows"]}
        if all(busy.get(name, 0) == pytest.approx(SECONDS * duty, rel=0.02) for name, _, _, duty, _ in KERNELS):
            return tool
    if tool.run.returncode == 77:
        pytest.fail("the tool took too long to start, three times")
    return tool  # its launches were late each time


def rows(tool, by, name="x.jprof"):
    devices = json.loads(tool("report", name, "--by", by, "--json").out)["devices"]
    assert len(devices) == 1
    return devices[0]


def test_kernels_of_a_simulated_mi300x(traced):
    device = rows(traced, "kernel")
    assert device["uuid"] == f"GPU-{UNIQUE}"
    launches = {name: int(count) for name, count in map(str.split, traced.run.out.splitlines())}
    found = {row["symbol"] or row["name"]: row for row in device["rows"]}
    assert set(found) == {name for name, *_ in KERNELS}
    for name, watts, period, duty, _ in KERNELS:
        row = found[name]
        assert row["launches"] == launches[name]
        truth = watts * row["busy_seconds"]
        assert row["busy_seconds"] == pytest.approx(SECONDS * duty, rel=0.1)
        assert row["energy_joules"] == pytest.approx(truth, rel=LATE)
        low, high = row["interval_joules"]
        assert low <= truth <= high
    assert device["idle_watts"] == pytest.approx(IDLE, rel=0.02)


def test_ranges_of_roctx(traced):
    found = {row["name"]: row for row in rows(traced, "range")["rows"]}
    for name, watts, *_ in KERNELS:
        row = found[f"{name}_range"]
        assert row["energy_joules"] == pytest.approx(watts * row["busy_seconds"], rel=LATE)


def test_no_program_is_harmed_where_rocprofiler_is_absent_or_another(tmp_path):
    def done(tool):
        begin = round(time.time()) + 8
        process = tool.kernels(begin, end=begin + 1)
        assert process.returncode == 0, process.err
        assert process.out
        return " ".join(tool.report("x.jprof")["warnings"])

    assert "librocprofiler-sdk.so was not found" in done(Machine(tmp_path / "absent", rocm=False))
    old = Machine(tmp_path / "old")
    old.environment["JOULEPROF_ROCM_SIM_VERSION"] = "500"
    assert "rocprofiler-sdk 0.5.0 has other records" in done(old)
    none = Machine(tmp_path / "none")
    none.environment["JOULEPROF_ROCPROFILER_LIBRARY"] = ""
    assert "rocprofiler" not in done(none)
