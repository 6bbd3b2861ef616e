"""AMD's and Intel's libraries, where /sys shows no board of theirs: on a simulated one."""

import pathlib
import shutil

import pytest

from conftest import SIM, domain

LIBRARY = pathlib.Path(SIM).parents[1] / "vendor_sim" / "libjouleprof_vendor_sim.so"


def simulate(tool, variable, scenario):
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built")
    if any(pathlib.Path("/sys/class/drm").glob("card*/device/gpu_metrics")):
        pytest.skip("this machine has boards of its own")
    library = shutil.copy(LIBRARY, tool.folder / "library.so")
    tool.environment[variable] = str(library)
    tool.environment["JOULEPROF_VENDOR_SCENARIO"] = scenario


def test_the_partitions_of_an_instinct_are_counted_once(tool):
    partitions = "".join(f"amd 1 74a1 c0{n} 640 3e80000\n" for n in range(8))
    simulate(tool, "JOULEPROF_AMDSMI_LIBRARY", partitions + "amd 2 73bf 300 90 10000\n")
    tool("run", "-q", "-o", "a.jprof", "--idle", "0s", "--", "sleep", "4")
    report = tool.report("a.jprof")
    board = domain(report, "gpu", "amdsmi-0")
    assert board["provenance"] == "simulated"
    assert abs(board["energy_joules"] / report["duration_seconds"] - 640) < 0.03 * 640
    low, high = board["interval_joules"]  # of boards that no meter was held against: up to 8 % low
    assert 0.07 < high / board["energy_joules"] - 1 < 0.1
    other = domain(report, "gpu", "amdsmi-1")
    assert other["energy_joules"] is None


def test_level_zero_counts_the_card_or_its_package(tool):
    simulate(tool, "JOULEPROF_LEVEL_ZERO_LIBRARY", "intel 300 150 120\nintel 800 0 90\n")
    tool("run", "-q", "-o", "z.jprof", "--idle", "0s", "--", "sleep", "4")
    report = tool.report("z.jprof")
    for device, watts in (("ze-0", 150), ("ze-1-package", 90)):
        energy = domain(report, "gpu", device)["energy_joules"]
        assert abs(energy / report["duration_seconds"] - watts) < 0.03 * watts


def test_nvidia_gpus_whose_driver_fails_are_named_next_to_a_board_that_is_measured(tool):
    tool.simulate({"devices": [{"generation": "hopper"}],
                   "faults": [{"kind": "fail", "call": "nvmlInit", "at_seconds": 0}]})
    simulate(tool, "JOULEPROF_LEVEL_ZERO_LIBRARY", "intel 300 150 120\n")
    tool("run", "-q", "-o", "n.jprof", "--idle", "0s", "--", "sleep", "1")
    report = tool.report("n.jprof")
    assert domain(report, "gpu", "ze-0")["energy_joules"] is not None
    nvidia = domain(report, "gpu", "other-gpus")
    assert nvidia["energy_joules"] is None
    assert "nvmlInit" in nvidia["reason"]
    assert "without DRAM and other-gpus" in " ".join(tool("report", "n.jprof").out.split())


@pytest.mark.parametrize("library", ["libc.so.6", "/nonexistent/libamd_smi.so"])
def test_a_library_that_cannot_be_used_is_the_reason_of_the_missing_gpu(tool, library):
    if any(pathlib.Path("/sys/class/drm").glob("card*/device/gpu_metrics")):
        pytest.skip("this machine has boards of its own")
    tool.environment["JOULEPROF_AMDSMI_LIBRARY"] = library
    tool("run", "-q", "-o", "o.jprof", "--idle", "0s", "--", "true")
    reason = domain(tool.report("o.jprof"), "gpu")["reason"]
    assert ("libamd_smi lacks functions" if library == "libc.so.6" else library) in reason
