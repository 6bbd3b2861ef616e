"""jouleprof.open and jouleprof.report: the figures of the tool, as tables and for notebooks."""

import contextlib
import dataclasses
import fcntl
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import time
import types

import pytest

import jouleprof
from conftest import CONSTANT
from jouleprof._energy import total_of

TOOL = os.environ.get("JOULEPROF_TOOL")
pytestmark = pytest.mark.skipif(not TOOL, reason="JOULEPROF_TOOL is not set")
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
KERNELS = EXAMPLES / "h200-kernels.jprof"
WORK = """
import time, jouleprof
monitor = jouleprof.Monitor("gpu0")
with monitor.window("<epoch>"):
    time.sleep(1)
"""


@pytest.fixture(autouse=True)
def tool(monkeypatch):
    monkeypatch.setenv("JOULEPROF_TOOL", TOOL)


@pytest.fixture(scope="module")
def reported():
    done = subprocess.run([TOOL, "report", KERNELS, "--json"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


@pytest.fixture
def windows(machine):
    """A recording of one window of a second, of a GPU that draws 250 W."""
    path = machine.gpus(CONSTANT).folder / "run.jprof"
    subprocess.run([TOOL, "run", "-q", "--idle", "0s", "-o", str(path), "--", sys.executable, "-c", WORK], check=True)
    return path


def test_figures_are_those_of_the_report(reported):
    recording = jouleprof.open(KERNELS)
    gpu = reported["domains"][0]
    total = recording.total("gpu0")
    assert (total.joules, total.low, total.high) == pytest.approx((gpu["energy_joules"], *gpu["interval_joules"]))
    assert total.provenance == "measured" and total.sensor == gpu["sensor"]
    assert recording.total().joules == pytest.approx(reported["total"]["energy_joules"], abs=1e-6)
    assert recording.total().provenance == "estimated"
    own = reported["command_energy"]
    assert recording.total("command").joules == pytest.approx(own["energy_joules"], abs=1e-6)
    assert repr(recording.total("command")).startswith("<Energy command: ")
    assert recording.total("command").to_dict()["domain"] == recording.average("command").domain == "command"
    assert repr(recording.total()).startswith("<Energy total: ")
    assert recording.total("command").high == pytest.approx(own["interval_joules"][1])
    mean = recording.average("gpu0")
    assert mean.watts == pytest.approx(gpu["mean_watts"]) and mean.low < mean.watts < mean.high
    largest = recording.max("gpu0")
    assert (largest.watts, largest.over_seconds) == (gpu["peak_watts"], gpu["peak_window_seconds"])
    missing = recording.total("dram package-0")
    assert missing.joules is None and missing.reason
    for sum_of_domains in ("total", "command"):
        assert recording.max(sum_of_domains).watts is None
        assert recording.max(sum_of_domains).reason == "only a single domain has a largest power"
    with pytest.raises(jouleprof.NotFound, match="it has: gpu0, gpu_memory gpu0"):
        recording.total("gpu7")


@pytest.mark.parametrize("name, watts", [("Tesla K40m", 200.0), ("Tesla K20", 150.0), ("NVIDIA A100", 300.0)])
def test_bounds_are_those_of_the_report(tmp_path, name, watts):
    log = tmp_path / "x.csv"
    log.write_text("timestamp, index, power.draw [W]\n" + "".join(
        f"2026/11/01 10:{i // 60:02}:{i % 60:02}.000, {gpu}, {watts:.2f} W\n" for i in range(10, 80) for gpu in (0, 1)))
    path = tmp_path / "x.jprof"
    subprocess.run([TOOL, "import", log, "--device-name", name, "-o", path], check=True, capture_output=True)
    done = subprocess.run([TOOL, "report", path, "--json"], stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    recording = jouleprof.open(path)
    bounds = []
    for of, energy in [(of, recording.total(of["device"])) for of in found["domains"]] + [
            (found["total"], recording.total())]:
        assert [energy.low, energy.high] == pytest.approx(of["interval_joules"], abs=2e-6)
        assert energy.error == pytest.approx((energy.high - energy.low) / 2, abs=2e-6)
        assert energy.to_dict()["low"] == energy.low
        power = jouleprof.Power.mean_of(energy, 2.0)
        assert [power.low, power.high] == [energy.low / 2, energy.high / 2]
        if name == "Tesla K40m":  # known to read high
            assert "-7.2 % +1.7 %" in repr(energy) and "-7.2 % +1.7 %" in repr(power), (energy, power)
        bounds.append((energy.low, energy.high))
    summed = total_of([recording.total(of["device"]) for of in found["domains"]])
    assert (summed.low, summed.high) == pytest.approx((bounds[0][0] + bounds[1][0], bounds[0][1] + bounds[1][1]))


def test_a_total_names_what_it_lacks(tmp_path):
    recording = jouleprof.open(KERNELS)
    assert recording.total().reason == recording.average().reason == "without dram package-0"
    windows = EXAMPLES.parent / "tests" / "fixtures" / "imports" / "zeus_windows.csv"
    subprocess.run([TOOL, "import", windows, "-o", tmp_path / "windows.jprof"], check=True)
    total = jouleprof.open(tmp_path / "windows.jprof").total()
    assert total.joules is None and "gpu0: the file holds the energy of whole windows" in total.reason


def test_an_upper_bound_is_no_half_width():
    domain = jouleprof.Domain("gpu", "gpu0", "", "", "", None, None)
    energy = jouleprof.Energy.of_json(domain, {"energy_joules": 0.1315, "interval_joules": [0.0, 772.0],
                                               "repeatability_joules": 0.1, "provenance": "measured"})
    assert (energy.low, energy.high, energy.error) == (0, 772, 386)
    assert repr(energy) == "<Energy gpu0: 131.5 mJ at most 772.0 J, measured>"
    assert str(energy.error) not in jouleprof.Measurement("x", 1.0, "host", (energy,)).table()


def test_parts_sum_to_the_whole():
    recording = jouleprof.open(KERNELS)
    whole, seconds = recording.total("gpu0"), recording.report()["duration_seconds"]
    first, second = recording.total("gpu0", end=8), recording.total("gpu0", start=8)
    assert first.microjoules + second.microjoules == whole.microjoules
    assert recording.average("gpu0", start=8).watts == pytest.approx(second.joules / (seconds - 8), rel=1e-6)


@pytest.mark.parametrize("part, expected", [({"start": -1}, "start must not be below 0"),
                                            ({"end": "8"}, "end is a number of seconds"),
                                            ({"start": float("nan")}, "start is a number of seconds")])
def test_parts_of_nonsense(part, expected):
    with pytest.raises(jouleprof.InvalidArgument, match=expected):
        jouleprof.open(KERNELS).total("gpu0", **part)
    with pytest.raises(jouleprof.InvalidArgument, match=expected):
        jouleprof.report(KERNELS, **part)


def test_a_curve_has_the_energy_of_its_part():
    recording = jouleprof.open(KERNELS)
    curve = recording.curve("gpu0", 2, 12)
    assert curve.seconds[0] >= 2 and curve.seconds[-1] <= 12
    steps = [b - a for a, b in zip(curve.seconds, curve.seconds[1:])]
    joules = sum(watts * step for watts, step in zip(curve.watts, steps))
    assert joules == pytest.approx(recording.total("gpu0", curve.seconds[0], curve.seconds[-1]).joules, rel=0.01)
    assert all(low <= watts <= high for low, watts, high in zip(curve.low, curve.watts, curve.high))
    with pytest.raises(jouleprof.NotFound, match="no curve of 'x'"):
        recording.curve("x")


@pytest.mark.parametrize("start, end, error, reason", [
    (5000, 6000, jouleprof.InvalidArgument, "lies outside of the recording"),
    (2, 1, jouleprof.InvalidArgument, "is empty"),
    (-5, -3, jouleprof.InvalidArgument, "must not be below 0"),
    (1.00001, 1.00002, jouleprof.Unavailable, "no point of the curve of 'gpu0'"),
])
def test_a_part_without_a_point_of_the_curve_has_a_reason(start, end, error, reason):
    with pytest.raises(error, match=reason):
        jouleprof.open(KERNELS).curve("gpu0", start, end)


@pytest.mark.parametrize("log, count", [("dmon_work.txt", 3700), ("zeus_windows.csv", None)])
def test_a_curve_of_a_file_without_a_wall_clock(tmp_path, log, count):
    path = tmp_path / "imported.jprof"
    subprocess.run([TOOL, "import", EXAMPLES.parent / "tests" / "fixtures" / "imports" / log, "-o", path], check=True)
    if count is None:
        with pytest.raises(jouleprof.Unavailable, match="no power curve"):
            jouleprof.open(path).curve("gpu0")
        return
    curve = jouleprof.open(path).curve("gpu0")
    assert (curve.seconds[0], len(curve.watts)) == (0, count)


def test_tables_are_the_lists_of_the_report(reported):
    recording = jouleprof.open(KERNELS)
    (run,) = recording.rows("runs")
    assert run["total_energy_joules"] == reported["total"]["energy_joules"]
    assert run["total_interval_high_joules"] == reported["total"]["interval_joules"][1]
    domains = recording.rows("domains")
    assert [d["label"] for d in domains] == ["gpu0", "gpu_memory gpu0", "package-0", "dram package-0"]
    assert domains[0]["interval_low_joules"] == reported["domains"][0]["interval_joules"][0]
    assert domains[0]["rest_power_watts"] == reported["domains"][0]["rest_power"]["watts"]
    assert domains[3]["energy_joules"] is None is domains[3]["interval_low_joules"]
    (process,) = recording.rows("processes")
    assert process["gpu0_joules"] == reported["processes"][0]["energy"][0]["energy_joules"]
    kernels = recording.rows("kernels")
    assert len(kernels) > 10 and kernels[0]["device"] == "gpu0"
    assert {"name", "energy_joules", "interval_low_joules", "busy_seconds"} <= set(kernels[0])
    samples = recording.rows("samples")
    assert isinstance(samples[0]["power_watts"], float) and samples[0]["device"] == "gpu0"
    assert recording.rows("gauges")[0]["quantity"]
    with pytest.raises(ValueError, match="no table 'rows'"):
        recording.rows("rows")
    with pytest.raises(AttributeError):
        recording.nothing


def test_data_frames():
    pandas = pytest.importorskip("pandas", reason="the Python module pandas is missing (pip install pandas)")
    recording = jouleprof.open(KERNELS)
    assert isinstance(recording.kernels, pandas.DataFrame)
    assert recording.kernels["energy_joules"].max() == recording.rows("kernels")[0]["energy_joules"]
    assert recording.domains["energy_joules"].isna().tolist() == [False, False, False, True]
    assert "kernels" in dir(recording)


def test_data_frames_have_their_columns_also_without_rows_or_figures(machine, tmp_path):
    pandas = pytest.importorskip("pandas", reason="the Python module pandas is missing (pip install pandas)")
    machine.gpus(CONSTANT)
    for name in ("empty", "full"):
        with jouleprof.Monitor("gpu0", log=tmp_path / f"{name}.jprof") as monitor:
            if name == "full":
                with monitor.window("a"):
                    time.sleep(0.1)
    empty, full = (jouleprof.open(tmp_path / f"{name}.jprof") for name in ("empty", "full"))
    for table in ("windows", "window_names", "shares"):
        assert len(empty.frame(table)) == 0 and set(full.frame(table)) <= set(empty.frame(table)), table
    assert empty.windows["energy_joules"].dtype == empty.domains["rest_joules"].dtype == "float64"
    assert empty.windows["name"].str.startswith("a").sum() == 0
    both = pandas.concat([empty.windows, full.windows])
    assert both["pid"].tolist() == [os.getpid()] * len(full.windows) and both["pid"].dtype == "int64"


def test_without_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(jouleprof.Unavailable, match="pip install"):
        jouleprof.open(KERNELS).kernels


def test_windows_and_their_table(windows):
    recording = jouleprof.open(windows)
    row = next(r for r in recording.rows("windows") if r["device"] == "gpu0" and r["domain"] == "gpu")
    assert row["name"] == "<epoch>" and row["energy_joules"] == pytest.approx(250 * row["duration_seconds"], rel=0.03)
    table = jouleprof.report(windows, by="window")
    shown = table._repr_html_()
    assert "&lt;epoch&gt;" in shown and "<epoch>" not in shown and "SIMULATED" in shown
    assert "<epoch>" in str(table) and "gpu0" in str(table)


def test_the_spread_of_windows(tmp_path, machine):
    machine.gpus(CONSTANT)
    script = ("import time, jouleprof\nmonitor = jouleprof.Monitor('gpu0')\n"
              "for i in range(5):\n    with monitor.window('step'): time.sleep(0.12 + 0.12 * (i == 2))\n")
    path = tmp_path / "x.jprof"
    subprocess.run([TOOL, "run", "-q", "--idle", "0s", "--shortest", "100ms", "-o", path, "--", sys.executable, "-c",
                    script], check=True)
    row = next(r for r in jouleprof.open(path).rows("window_names") if (r["device"], r["domain"]) == ("gpu0", "gpu"))
    assert (row["name"], row["count"], row["with_energy"], row["imported"]) == ("step", 5, 5, False)
    assert 0.12 <= row["median_seconds"] < row["mean_seconds"] < 0.24
    assert row["quartile_low_joules"] <= row["median_joules"] <= row["quartile_high_joules"]
    assert row["median_joules"] == pytest.approx(250 * row["median_seconds"], rel=0.1)
    assert row["energy_joules"] == pytest.approx(5 * row["mean_joules"], abs=1e-5)


def test_a_report_in_a_notebook(tmp_path, reported):
    report = jouleprof.report(KERNELS)
    assert "gpu0" in str(report) and " Wh (" in str(report)
    assert report.json == reported
    shown = report._repr_html_()
    assert shown.startswith("<iframe ") and "sandbox" in shown and "<script" not in shown
    report.save_html(tmp_path / "page.html")
    assert "<script" in (tmp_path / "page.html").read_text()
    report.save_figure(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_text().startswith("<svg ")
    kernels = jouleprof.report(KERNELS, by="kernel", top=5)
    assert kernels._repr_html_().count("<tr>") == 6
    assert "not resolvable" in jouleprof.report(KERNELS, by="kernel", top=1000)._repr_html_()
    with pytest.raises(jouleprof.Unavailable, match="has no trace of layers"):
        jouleprof.open(EXAMPLES / "h200-deit.jprof").rows("layers")
    with pytest.raises(FileNotFoundError, match="absent.jprof does not exist"):
        jouleprof.open("absent.jprof")
    with pytest.raises(jouleprof.NotFound, match="absent.jprof does not exist"):
        jouleprof.report(tmp_path / "absent.jprof")
    with pytest.raises(ValueError, match="by is one of"):
        jouleprof.report(KERNELS, by="colour")


def test_metrics_are_flat_numbers(gpu):
    time.sleep(0.5)
    with gpu.window("x") as window:
        time.sleep(0.2)
    found = jouleprof.metrics(gpu)
    assert found["energy/gpu0_watts"] == pytest.approx(250, rel=0.02)
    assert found["energy/joules_low"] < found["energy/gpu0_joules"] < found["energy/joules_high"]
    assert all(isinstance(value, (int, float)) for value in found.values())
    of_window = jouleprof.metrics(window, prefix="x/")
    assert of_window["x/joules"] == window.total.joules == jouleprof.metrics(window.energy)["energy/joules"]
    assert of_window["x/seconds"] == window.time and of_window["x/is_measured"] == 0


def test_metrics_of_now_have_the_seconds_of_their_energy(gpu):
    while "energy/joules" not in (found := jouleprof.metrics(gpu)):
        time.sleep(0.01)
    assert found["energy/joules"] / found["energy/seconds"] == pytest.approx(250, rel=0.01)


def test_metrics_of_now_leave_out_a_device_without_readings(machine):
    snapshot = machine.gpus(CONSTANT, CONSTANT).monitor("gpu0,gpu1").snapshot
    while any(state.energy.joules is None or state.power is None for state in snapshot().domains):
        time.sleep(0.05)
    gpu0, *others = snapshot().domains

    def names(age):
        states = (dataclasses.replace(gpu0, age=age), *others)
        now = dataclasses.replace(snapshot(), domains=states)
        return set(jouleprof.metrics(types.SimpleNamespace(snapshot=lambda: now)))

    sums = {f"energy/{name}" for name in ("joules", "joules_low", "joules_high", "is_measured")}
    assert names(1) - names(11) == {"energy/gpu0_joules"} | sums


def test_a_window_in_a_notebook(gpu):
    with gpu.window("<x>") as window:
        assert window._repr_html_() is None
        time.sleep(0.05)
    assert window._repr_html_() == window.energy._repr_html_() and "&lt;x&gt;" in window._repr_html_()


def test_another_file_is_no_recording(tmp_path):
    (tmp_path / "log.csv").write_text("time,watts\n")
    for path in (tmp_path / "log.csv", "/etc/passwd"):
        with pytest.raises(jouleprof.Unsupported, match="is not a jouleprof recording; logs of other tools are read by"):
            jouleprof.open(path)


def test_what_is_no_source_of_metrics_is_named():
    with pytest.raises(jouleprof.InvalidArgument, match="a Monitor, a Measurement or a Window, not 5"):
        jouleprof.metrics(5)


def test_a_folder_is_no_recording(tmp_path):
    with pytest.raises(jouleprof.InvalidArgument, match=r"is a folder, not a recording; jouleprof.open_all\("):
        jouleprof.open(tmp_path)


def test_absent_figures_are_not_in_metrics(machine):
    monitor = machine.gpus(CONSTANT, faults={"kind": "gpu_lost", "at_seconds": 0.3}).monitor("gpu0")
    time.sleep(0.8)
    with monitor.window("x") as window:
        time.sleep(0.1)
    assert set(jouleprof.metrics(window)) == {"energy/seconds"}


def test_a_total_without_a_lost_device_is_a_lower_bound(machine):
    from conftest import CONSTANT
    from jouleprof import codecarbon

    monitor = machine.gpus(CONSTANT, faults={"kind": "gpu_lost", "at_seconds": 0.5}).monitor("gpu0,cpu")
    tracker = codecarbon.EmissionsTracker(force_carbon_intensity_g_co2e_kwh=100, save_to_file=False)
    tracker.start()
    with monitor.window("x") as window:
        time.sleep(1)
    total, cpu = window.total, window["cpu"]
    assert total.is_partial and total.high is total.error is None
    assert (total.joules, total.low) == pytest.approx((cpu.joules, cpu.low), abs=1e-6)
    assert "at least" in repr(window.energy) and "at least" in str(window.energy)
    assert {"energy/seconds", "energy/package-0_joules"} == set(jouleprof.metrics(window))
    assert str(window.cost(jouleprof.Factors(source="x", grams_co2e_per_kwh=100))).startswith("at least ")
    assert tracker.stop() is None and tracker.final_emissions_data.cpu_energy > 0
    assert tracker.final_emissions_data.energy_consumed is tracker.final_emissions_data.gpu_power is None
    jouleprof.monitor().close()


def test_power_of_a_monitor(gpu):
    begin = gpu.now()
    time.sleep(0.5)
    latest, mean = gpu.power()["gpu0"], gpu.power(begin)["gpu0"]
    assert latest.watts == pytest.approx(250, rel=0.02) and latest.high is None
    assert mean.low < 250 < mean.high and mean.provenance == "simulated"


def test_windows_have_the_names_that_the_program_gave(machine):
    names = ["=1+1", "-x", "@a", "+b", "a,b", "'q", "", "value"]
    path = machine.folder / "names.jprof"
    with machine.gpus({"generation": "hopper"}).monitor("gpu0", log=path) as monitor:
        for name in names:
            with monitor.window(name):
                time.sleep(0.01)
    recording = jouleprof.open(path)
    for table in ("windows", "window_names"):
        assert [row["name"] for row in recording.rows(table) if row["domain"] == "gpu"] == names


@pytest.mark.parametrize("utf8", ["0", "1"])
def test_names_in_a_locale_without_utf8(machine, utf8):
    path = machine.gpus(CONSTANT).folder / "run.jprof"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": utf8}
    subprocess.run([TOOL, "run", "-q", "--idle", "0s", "-o", str(path), "--", sys.executable, "-c",
                    WORK.replace("<epoch>", "\\xfcben")], env=environment, check=True)
    names = "import sys, jouleprof; print(*{ascii(row['name']) for row in jouleprof.open(sys.argv[1]).rows('windows')})"
    done = subprocess.run([sys.executable, "-c", names, str(path)], env=environment, stdout=subprocess.PIPE, check=True)
    assert done.stdout.split() == [b"'\\xfcben'"]


def test_paths_that_begin_with_a_dash_or_are_bytes(machine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    machine.gpus({"generation": "hopper"}).monitor("gpu0", log="-run.jprof").close()
    for path in ("-run.jprof", b"-run.jprof", pathlib.Path("-run.jprof")):
        assert jouleprof.open(path).total("gpu0").provenance == "simulated"
    jouleprof.report("-run.jprof").save_html("-page.html")
    assert (tmp_path / "-page.html").exists()


def test_a_recording_without_a_reading_yet_is_not_corrupt(tmp_path):
    path = shutil.copy(KERNELS, tmp_path / "young.jprof")
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        (begin,) = file.execute("SELECT work_begin_nanoseconds FROM run").fetchone()
        file.execute("UPDATE run SET work_end_nanoseconds = NULL, complete = 0")
        for table, time_of in file.execute("SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE "
                                           "c.name IN ('at_nanoseconds', 'after_nanoseconds')").fetchall():
            file.execute(f"DELETE FROM {table} WHERE {time_of} > ?", (begin,))
    with open(f"{path}-lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # as its writer does
        with pytest.raises(jouleprof.Unavailable, match="report it again in a second"):
            jouleprof.open(path).total()


def test_what_a_tool_wrote_before_it_was_killed_is_no_table(tmp_path, monkeypatch):
    tool = tmp_path / "tool"
    tool.write_text(f'#!/bin/sh\n[ "$1" = export ] || exec {TOOL} "$@"\necho time_seconds,power_watts; echo 1,250; kill -9 $$\n')
    tool.chmod(0o755)
    recording = jouleprof.open(KERNELS)
    monkeypatch.setenv("JOULEPROF_TOOL", str(tool))
    with pytest.raises(jouleprof.Unavailable, match="ended by signal 9"):
        recording.rows("samples")


def test_numbers_of_nonsense():
    for top in (0, -1, "x", 1.5):
        with pytest.raises(jouleprof.InvalidArgument, match="top is a number of rows"):
            jouleprof.report(KERNELS, by="window", top=top)
    for edge in (float("nan"), "1"):
        with pytest.raises(jouleprof.InvalidArgument, match="start is a number of seconds"):
            jouleprof.open(KERNELS).curve("gpu0", start=edge)
