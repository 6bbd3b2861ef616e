"""jouleprof doctor."""

import contextlib
import json
import threading
import time

import pytest


def test_names_sensors_with_traits_and_use(gpu):
    report = json.loads(gpu("doctor", "--json").out)
    assert report["schema"] == "jouleprof.doctor/1" and report["can_measure"] is True
    sensors = {s["kind"]: s for d in report["domains"] if d["domain"] == "gpu" for s in d["sensors"]}
    assert sensors["energy_counter"]["refresh_seconds"] == 0.1
    assert sensors["power_ring"]["refresh_seconds"] == 0.02
    assert sensors["energy_counter"]["use"]
    text = gpu("doctor").out
    assert "nvmlDeviceGetTotalEnergyConsumption" in text and "[simulated]" in text
    assert "its unit is verified" in " ".join(text.split())


@pytest.mark.parametrize("columns", [60, 80])
def test_lines_fit_columns(gpu, columns):
    gpu.environment["COLUMNS"] = str(columns)
    assert max(map(len, gpu("doctor").out.splitlines())) <= columns


def test_json_names_a_calibration_that_failed(tool):
    process = tool("doctor", "--json", "--calibrate", status=6)
    calibration = json.loads(process.out)["calibration"]
    assert calibration["done"] is False and calibration["kind"] == "not found"
    assert process.err.startswith("jouleprof: ") and calibration["reason"] in process.err
    assert tool("doctor", "--calibrate", status=6).out == ""
    assert json.loads(tool("doctor", "--json", status=None).out)["calibration"] is None


def test_observes_the_power_at_rest_and_forgets_it(gpu):
    gpu.simulate({"devices": [{"generation": "hopper", "power": {"shape": "constant", "watts": 70}},
                             {"generation": "hopper", "processes": {"pid": 1}}]})
    gpu.environment["CUDA_VISIBLE_DEVICES"] = ""  # the load then finds no GPU
    process = gpu("doctor", "--json", "--calibrate", status=6)
    assert "power at rest 70.0 W" in process.err
    assert "1 process(es) hold a context on it" in process.err
    boards = [d for d in json.loads(process.out)["domains"] if d["domain"] == "gpu"]
    assert abs(boards[0]["rest"]["power_watts"] - 70) < 0.5
    assert boards[0]["rest"]["spread_watts"] == 1
    assert boards[0]["held"] is None and boards[1]["rest"] is None
    assert "power at rest 70.0 W ± 1 W, observed 20" in gpu("doctor").out

    assert "of 0 GPU(s)" in gpu("doctor", "--forget", "--devices", "1").err
    assert "power at rest" in gpu("doctor").out
    forgotten = gpu("doctor", "--forget", "--devices", "0")
    assert "of 1 GPU(s)" in forgotten.err and "power at rest" not in forgotten.out
    gpu("doctor", "--forget", "--devices", "7", status=2)


def test_waits_until_the_power_no_longer_falls(gpu):
    # A context ended a second ago: 88 W then, 80 W at rest.
    gpu.simulate({"devices": [{"generation": "hopper", "idle_watts": 80, "held_watts": 127,
                               "after_context": {"watts": 88, "decay_seconds": 1},
                               "processes": {"pid": 1, "to_seconds": 1}}]})
    gpu.environment["JOULEPROF_NVML_EPOCH"] = str(time.time() - 2)
    gpu.environment["CUDA_VISIBLE_DEVICES"] = ""
    report = json.loads(gpu("doctor", "--json", "--calibrate", status=6).out)
    rest = [d["rest"] for d in report["domains"] if d["domain"] == "gpu"]
    assert abs(rest[0]["power_watts"] - 80) < 0.6


def test_says_that_nothing_can_be_measured(tool):
    tool.environment["JOULEPROF_ROOT"] = str(tool.folder)
    process = tool("doctor", status=6)
    assert "Nothing can be measured" in process.out
    report = json.loads(tool("doctor", "--json", status=6).out)
    assert report["can_measure"] is False
    assert any("NVML" in m["what"] for m in report["missing"])


def test_rapl_without_permission_names_the_least_invasive_fix(tool):
    zone = tool.folder / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    (zone / "name").write_text("package-0\n")
    (zone / "max_energy_range_uj").write_text("262143328850\n")
    tool.environment["JOULEPROF_ROOT"] = str(tool.folder)
    (zone / "energy_uj").mkdir()  # cannot be read, not even by root
    missing = json.loads(tool("doctor", "--json", status=6).out)["missing"]
    rapl = [m for m in missing if "RAPL" in m["what"] or "package-0" in m["what"]]
    assert rapl and "chmod -R" not in json.dumps(missing)


@contextlib.contextmanager
def counting(*paths):
    """Counters of 50 W."""
    stop = threading.Event()

    def count():
        begin = time.monotonic()
        with contextlib.ExitStack() as files:
            opened = [files.enter_context(open(path, "r+")) for path in paths]
            while not stop.wait(0.002):
                value = f"{int(1e6 + 50e6 * (time.monotonic() - begin))}\n"
                for file in opened:
                    file.seek(0)
                    file.write(value)
                    file.flush()

    thread = threading.Thread(target=count)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_rapl_that_stands_still_is_named(tool):
    zone = tool.folder / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    for name, text in {"name": "package-0", "energy_uj": "23737296043",
                       "max_energy_range_uj": "262143328850"}.items():
        (zone / name).write_text(text + "\n")
    tool.environment["JOULEPROF_ROOT"] = str(tool.folder)
    missing = json.loads(tool("doctor", "--json", status=6).out)["missing"]
    assert any("stands still at 23737.3 J" in m["reason"] for m in missing), missing


def test_rapl_is_measured(tool):
    zone = tool.folder / "sys/class/powercap/intel-rapl:0"
    zone.mkdir(parents=True)
    for name, text in {"name": "package-0", "energy_uj": "1000000",
                       "max_energy_range_uj": "262143328850"}.items():
        (zone / name).write_text(text + "\n")
    tool.environment["JOULEPROF_ROOT"] = str(tool.folder)
    with counting(zone / "energy_uj"):
        report = json.loads(tool("doctor", "--json").out)
    assert [d["device"] for d in report["domains"] if d["domain"] == "cpu"] == ["package-0"]


def test_counters_of_one_energy_count_once(tool):
    powercap = tool.folder / "sys/class/powercap"
    zones = {"intel-rapl:0": "package-0", "intel-rapl-mmio:0": "package-0"}
    for zone, name in zones.items():
        (powercap / zone).mkdir(parents=True)
        for file, text in {"name": name, "energy_uj": "1000000", "max_energy_range_uj": "262143328850"}.items():
            (powercap / zone / file).write_text(text + "\n")
    tool.environment["JOULEPROF_ROOT"] = str(tool.folder)
    with counting(*(powercap / zone / "energy_uj" for zone in zones)):
        missing = json.loads(tool("doctor", "--json").out)["missing"]
        tool("run", "-q", "--idle", "0s", "-o", "x.jprof", "--", "sleep", "1")
    assert any("intel-rapl-mmio:0/energy_uj is the register of powercap:intel-rapl:0" in m["reason"] for m in missing)
    report = json.loads(tool("report", "x.jprof", "--json").out)
    packages = [d for d in report["domains"] if d["domain"] == "cpu"]
    assert [d["device"] for d in packages] == ["package-0"]


def test_a_module_is_in_no_total(tool):
    """A superchip of 370 W, 250 of them its GPU's, whose samples without a scope are of the module; and the module and the
    processor once more by hwmon."""
    hwmon = tool.folder / "sys/class/hwmon"
    for number, (label, watts) in enumerate({"Module": 400, "Grace": 150, "CPU": 90}.items()):
        folder = hwmon / f"hwmon{number}"
        folder.mkdir(parents=True)
        for file, text in {"name": "power_meter", "power1_average": str(watts * 10**6), "power1_average_interval": "1000",
                           "power1_oem_info": f"{label} Power Socket 0"}.items():
            (folder / file).write_text(text + "\n")
    tool.environment["JOULEPROF_ROOT"] = str(tool.folder)
    tool.simulate({"devices": [{
        "generation": "grace_hopper", "idle_watts": 250, "module_power": [{"shape": "constant", "watts": 120}],
        "gpu_scope": True}]})
    tool("run", "-q", "--idle", "0s", "-o", "x.jprof", "--", "sleep", "2")
    report = json.loads(tool("report", "x.jprof", "--json").out)
    watts = {(d["domain"], d["device"]): d["mean_watts"] for d in report["domains"]}
    assert watts["gpu", "gpu0"] == pytest.approx(250, rel=0.01)
    assert watts["module", "gpu0"] == pytest.approx(370, rel=0.01)
    assert watts["module", "module-0"] == pytest.approx(400, rel=0.01)
    assert report["total"]["energy_joules"] == pytest.approx((250 + 150) * report["duration_seconds"], rel=0.02)
