"""jouleprof doctor."""

import contextlib
import json
import threading
import time


def test_names_sensors_with_traits_and_use(gpu):
    report = json.loads(gpu("doctor", "--json").out)
    assert report["schema"] == "jouleprof.doctor/1" and report["can_measure"] is True
    sensors = {s["kind"]: s for d in report["domains"] if d["domain"] == "gpu" for s in d["sensors"]}
    assert sensors["energy_counter"]["refresh_seconds"] == 0.1
    assert sensors["power_ring"]["refresh_seconds"] == 0.02
    assert sensors["energy_counter"]["use"]
    text = gpu("doctor").out
    assert "nvmlDeviceGetTotalEnergyConsumption" in text and "[simulated]" in text


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
def counting(path):
    """A counter of 50 W."""
    stop = threading.Event()

    def count():
        begin = time.monotonic()
        with open(path, "r+") as file:
            while not stop.wait(0.002):
                file.seek(0)
                file.write(f"{int(1e6 + 50e6 * (time.monotonic() - begin))}\n")
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
