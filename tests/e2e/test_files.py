"""report, export and import: files that they read, and files that they refuse."""

import collections
import csv
import datetime
import io
import json
import os
import pathlib
import pty
import sqlite3
import statistics
import subprocess
import time

import pytest
from conftest import TOOL, domain

FIXTURES = pathlib.Path(__file__).resolve().parent.parent / "fixtures" / "imports"


@pytest.fixture
def recording(gpu):
    gpu("run", "-q", "-o", "x.jprof", "--", "sleep", "3")
    return gpu


def test_a_part_of_a_recording(recording):
    whole = recording.report("x.jprof")
    parts = [recording.report("x.jprof", "--to", "1234ms"),
             recording.report("x.jprof", "--from", "1234ms")]
    total = domain(whole, "gpu")["energy_joules"]
    assert sum(domain(p, "gpu")["energy_joules"] for p in parts) == pytest.approx(total, abs=2e-6)
    assert parts[0]["duration_seconds"] == pytest.approx(1.234)


def test_export_formats(recording):
    rows = list(csv.DictReader(io.StringIO(recording("export", "x.jprof").out)))
    gpu = [float(r["power_watts"]) for r in rows if r["device"] == "gpu0" and r["domain"] == "gpu"]
    assert len(gpu) > 20 and abs(gpu[0] - 250) < 1
    for name in ("counters", "gauges", "processes"):
        assert recording("export", "x.jprof", "--format", name).out.count("\n") > 1
    recording("export", "x.jprof", "--format", "aipowermeter", "-o", "p.json")
    recording("import", "p.json", "-o", "again.jprof")
    again = recording.report("again.jprof")
    whole = recording.report("x.jprof")
    assert sum(d["energy_joules"] for d in again["domains"] if d["domain"] == "gpu") == pytest.approx(
        domain(whole, "gpu")["energy_joules"], rel=0.02)
    assert recording("export", "x.jprof", "--format", "csv", "-o", "p.json", status=7).err.count("\n") == 1


def newer(path):
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 999")


def cut(path):
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 + 100])


@pytest.mark.parametrize("harm, status", [
    (lambda p: p.unlink(), 3),
    (lambda p: p.write_bytes(b""), 4),
    (lambda p: p.write_bytes(b"not a recording at all\n" * 100), 5),
    (newer, 5),
    (cut, 4),
])
def test_invalid_recordings_give_one_line(recording, harm, status):
    path = recording.folder / "x.jprof"
    harm(path)
    for verb in (["report", "x.jprof"], ["export", "x.jprof"], ["report", "x.jprof", "--json"]):
        process = recording(*verb, status=status)
        assert process.out == "" and process.err.count("\n") == 1
        assert process.err.startswith("jouleprof: ") and "x.jprof" in process.err


def test_a_folder_or_another_database_is_refused(tool):
    assert tool("report", ".", status=None).returncode in (3, 4)
    with sqlite3.connect(tool.folder / "other.db") as db:
        db.execute("CREATE TABLE t(x)")
    assert tool("report", "other.db", status=5).err.count("\n") == 1


@pytest.mark.parametrize("content", [
    b"", b"\n\n", b"\x00\xff\xfe garbage \x80\n", b"a,b,c\n1,2,3\n",
    b"# gpu    pwr  gtemp\n# Idx      W      C\n",  # header only
    b"# gpu  gtemp\n# Idx  C\n    0   33\n",          # no power
    b'{"date": "2021',
])
def test_invalid_logs_give_one_line(tool, content):
    (tool.folder / "log").write_bytes(content)
    process = tool("import", "log", "-o", "out.jprof", status=None)
    assert process.returncode in (4, 5), process.err
    assert process.err.count("\n") == 1 and "log" in process.err
    assert not (tool.folder / "out.jprof").exists()


def test_a_file_of_an_unknown_type_has_its_status(tool):
    (tool.folder / "photo").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    (tool.folder / "letter").write_text("Dear reader,\n")
    for name in ("photo", "letter"):
        assert name in tool("import", name, "-o", "x.jprof", status=5).err


def test_a_reader_that_has_enough_is_no_error(recording):
    for command in (["export", "x.jprof", "--format", "csv"], ["report", "x.jprof", "--json"], ["report", "x.jprof"]):
        read_end, write_end = os.pipe()
        os.close(read_end)
        # Python has SIGPIPE ignored, and its wrapper of the tool hands that on.
        done = subprocess.run([TOOL, *command], cwd=recording.folder, env=recording.environment, stdout=write_end,
                              stderr=subprocess.PIPE, text=True, restore_signals=False, timeout=60)
        os.close(write_end)
        assert (done.returncode, done.stderr) == (0, ""), command


def test_a_recording_that_is_being_written_says_so_and_is_no_output(gpu):
    (gpu.folder / "done.jprof").write_bytes(b"")
    gpu("run", "-q", "--idle", "0", "-f", "-o", "done.jprof", "--", "sleep", "0.5")
    process = gpu.start("run", "--idle", "0", "-o", "live.jprof", "--", "sleep", "60")
    try:
        end = time.monotonic() + 60
        while gpu("report", "live.jprof", status=None).returncode != 0 and time.monotonic() < end:
            time.sleep(0.1)
        text = gpu("report", "live.jprof").out
        assert "still being written" in text and "CUT OFF" not in text and "cut off" not in text
        for verb in (["export", "done.jprof", "--format", "csv"], ["report", "done.jprof", "--html", "live.jprof"]):
            refused = gpu(*verb, *([] if "--html" in verb else ["-o", "live.jprof"]), "-f", status=7)
            assert "is writing a recording there" in refused.err
        live = gpu.report("live.jprof")
        assert live["complete"] is False and live["being_written"] is True
        gpu("report", "live.jprof", "--html", "live.html")
        page = (gpu.folder / "live.html").read_text()
        assert "STILL BEING WRITTEN" in page and "CUT OFF" not in page
    finally:
        process.kill()
        process.communicate()
    assert "CUT OFF" in gpu("report", "live.jprof").out
    assert gpu.report("live.jprof")["being_written"] is False


def test_rest_of_a_simulated_board_stays_in_its_scenario(tool):
    uuid = "GPU-12345678-1234-1234-1234-123456789abc"

    def rest():
        [board] = [d for d in json.loads(tool("doctor", "--json", status=None).out)["domains"] if d["domain"] == "gpu"]
        return board["rest"]

    for watts in (70, 80):
        scenario = {"devices": [{"generation": "hopper", "uuid": uuid, "idle_watts": watts}]}
        tool.simulate(scenario)
        assert rest() is None
        tool.environment["CUDA_VISIBLE_DEVICES"] = ""  # the load then finds no GPU
        assert f"power at rest {watts}.0 W" in tool("doctor", "--calibrate", status=6).err
        del tool.environment["CUDA_VISIBLE_DEVICES"]
        assert abs(rest()["power_watts"] - watts) < 0.5
    scenario["devices"][0]["idle_watts"] = 70
    assert abs(tool.simulate(scenario) and rest()["power_watts"] - 70) < 0.5


def test_our_own_csv_is_imported_again(recording):
    for name in ("csv", "counters"):
        recording("export", "x.jprof", "--format", name, "-o", f"{name}.csv")
        recording("import", f"{name}.csv", "-o", f"{name}.jprof")
        assert recording.report(f"{name}.jprof")["simulated"]  # as the board was
        again = domain(recording.report(f"{name}.jprof"), "gpu")
        assert again["mean_watts"] == pytest.approx(
            domain(recording.report("x.jprof"), "gpu")["mean_watts"], rel=0.05)
    (recording.folder / "monitor.csv").write_text(
        recording("monitor", "--format", "csv", "-d", "500ms", "-c", "6").out)
    recording("import", "monitor.csv", "-o", "monitor.jprof")
    report = recording.report("monitor.jprof")
    assert domain(report, "gpu")["mean_watts"] == pytest.approx(250, rel=0.05)
    assert report["simulated"]


def test_any_csv_by_the_names_of_its_columns(tool):
    (tool.folder / "log.csv").write_text("when;board\n" + "".join(
        f"{1772420400 + i};80000\n" for i in range(11)))
    tool("import", "log.csv", "--time-column", "when", "--power-column", "gpu0=board:mW", "-o", "x.jprof")
    assert domain(tool.report("x.jprof"), "gpu")["energy_joules"] == pytest.approx(800)
    refused = tool("import", "log.csv", "--power-column", "watts", "-o", "y.jprof", status=2).err
    assert "it has no column 'watts'; it has: when, board" in refused
    assert "--power-column" in tool("import", "log.csv", "--time-column", "when", "-o", "y.jprof", status=2).err


def test_what_is_not_known_of_an_import_is_not_said(tool):
    rows = "".join(f" 0 {120 if i in range(4, 12) else 60} {90 if i in range(4, 12) else 0} 1000\n" for i in range(16))
    (tool.folder / "log").write_text("# gpu pwr sm pclk\n# Idx W % MHz\n" + rows)
    tool("import", "--trim", "log", "-o", "x.jprof")
    assert tool.report("x.jprof")["start_time"] is None
    assert "1970" not in tool("report", "x.jprof").out
    assert "processes;" not in tool("report", "x.jprof").out  # a log of a board does not say whose its energy was
    job = tool.report("x.jprof", "--by", "rank")  # rest and held are known together alone, and are the work's
    assert [job["energy_joules"], job["undivided_joules"], job["not_charged_joules"]] == [720, 0, 0]
    # A pause of the other tool is no step of the clock.
    (tool.folder / "paused").write_text("#Date Time gpu pwr\n" + "".join(
        f"20260302 03:{minute:02}:{second:02} 0 60\n" for minute in (0, 5) for second in range(20)))
    tool("import", "paused", "-o", "y.jprof")
    assert not any("clock was set" in w for w in tool.report("y.jprof")["warnings"])
    assert any("paused 1 time" in w for w in tool.report("y.jprof")["warnings"])


def test_imported_windows_are_shown_with_their_names(tool):
    line = ('{{"date": "2026-03-02 03:00:{:02}", "metrics": {{"cpu": {{"intel_power": 40, '
            '"per_process_cpu_power": {{"4711": 10}}, "per_process_cpu_uses": {{"4711": 0.5}}, '
            '"per_process_mem_use_abs": {{"4711": 1000}}}}}}}}\n')
    (tool.folder / "power_metrics.json").write_text("".join(line.format(s) for s in range(11)))
    tool("import", "power_metrics.json", "-o", "x.jprof")
    assert "process 4711" in tool("report", "x.jprof").out


def test_no_such_log(tool):
    assert "nowhere" in tool("import", "nowhere", "-o", "x.jprof", status=3).err


@pytest.mark.parametrize("name, active, idle", [
    ("deit-t_power.csv", 68.000, 61.0),
    ("deit-b-power.csv", 86.567, 61.0),
    ("bert-b-128_power.csv", 80.773, 62.0),
])
def test_dmon_logs_give_their_known_answers(tool, peers, name, active, idle):
    tool("import", "--trim", peers / "nvidia_smi_dmon" / name, "-o", "x.jprof")
    report = tool.report("x.jprof")
    d = domain(report, "gpu")
    assert d["mean_watts"] == pytest.approx(active, abs=0.01)
    assert d["rest_joules"] / report["duration_seconds"] == pytest.approx(idle, abs=0.01)


@pytest.mark.parametrize("name, seconds, joules", [
    ("example_data.power_metrics.json", 17.317741,
     {"package": 1141.261559, "dram": 200.165402, "gpu0": 323.783011, "gpu1": 1199.646679}),
    ("measure_power.power_metrics.json", 24.127467, {"package": 562.127268, "platform": 884.956594}),
])
def test_aipowermeter_files_give_their_known_answers(tool, peers, name, seconds, joules):
    tool("import", peers / "aipowermeter" / name, "-o", "x.jprof")
    report = tool.report("x.jprof")
    assert report["duration_seconds"] == pytest.approx(seconds, abs=1e-3)
    kinds = {"package": "cpu", "dram": "dram", "platform": "platform"}
    for key, truth in joules.items():
        d = domain(report, "gpu", key) if key.startswith("gpu") else domain(report, kinds[key])
        assert d["energy_joules"] == pytest.approx(truth, rel=1e-4), key


@pytest.mark.parametrize("name, seconds, joules", [
    ("aipowermeter_newer.json", 10, {"cpu": 600, "dram": 50, "gpu0": 300, "gpu1": 800}),
    ("zeus_monitor.csv", 2, {"gpu0": 80}),
])
def test_synthetic_logs_give_their_closed_forms(tool, name, seconds, joules):
    tool("import", FIXTURES / name, "-o", "x.jprof")
    report = tool.report("x.jprof")
    assert report["duration_seconds"] == pytest.approx(seconds, abs=1e-3)
    for key, truth in joules.items():
        d = domain(report, "gpu", key) if key.startswith("gpu") else domain(report, key)
        assert d["energy_joules"] == pytest.approx(truth, rel=1e-4), key


def test_a_synthetic_dmon_log_gives_its_closed_form(tool):
    tool("import", "--trim", FIXTURES / "dmon_work.txt", "-o", "x.jprof")
    report = tool.report("x.jprof")
    d = domain(report, "gpu")
    assert d["mean_watts"] == pytest.approx(120, abs=0.01)
    assert d["rest_joules"] / report["duration_seconds"] == pytest.approx(60, abs=0.01)


def test_windows_that_lack_a_gpu_make_a_lower_bound(tool):
    rows = ["start_time,window_name,elapsed_time,gpu0_energy,gpu1_energy",
            "2026-03-02 03:00:00,a,10,1000,1000", "2026-03-02 03:00:10,a,10,1000,"]
    (tool.folder / "z.csv").write_text("\n".join(rows) + "\n")
    tool("import", "z.csv", "-o", "x.jprof")
    assert tool("report", "x.jprof").out.startswith("PARTIAL: at least 833.3 mWh (3.000 kJ; no interval")
    assert "gpu1       at least 1.000 kJ reported" in tool("report", "x.jprof").out
    assert tool.report("x.jprof")["total"]["is_partial"]
    assert "at least 1.500 kJ" in tool("report", "x.jprof", "--per", "2:epoch").out


def test_synthetic_zeus_files_give_their_closed_forms(tool):
    tool("import", FIXTURES / "zeus_windows.csv", "-o", "x.jprof")
    least = min(tool.report("x.jprof")["windows"], key=joules)
    assert (power_limit(least), joules(least)) == (200, 2400)
    tool("import", FIXTURES / "zeus_sweep.csv", "-o", "y.jprof")
    runs = [w for w in tool.report("y.jprof")["windows"] if "wide" in w["name"]]
    least = min(runs, key=joules)
    assert (power_limit(least), joules(least)) == (150, 1560)


def power_limit(window):
    (value,) = [x["value"] for x in window["labels"] if x["name"] == "power_limit_watts"]
    return int(value)


def joules(window):
    (energy,) = window["energy"]
    assert energy["interval_joules"] is None and energy["provenance"] is None
    return energy["energy_joules"]


def test_a_sweep_is_kept_row_by_row(tool, peers):
    tool("import", peers / "zeus" / "summary_power_v100.csv", "-o", "x.jprof")
    rows = list(csv.DictReader(io.StringIO(tool("export", "x.jprof", "--format", "windows").out)))
    assert len(rows) == 476 and all(float(r["energy_joules"]) > 0 for r in rows)
    assert not any(r["interval_low_joules"] or r["provenance"] for r in rows)


def test_a_sweep_is_reported_with_its_known_answers(tool, peers):
    tool("import", peers / "zeus" / "summary_power_v100.csv", "-o", "x.jprof")
    report = tool.report("x.jprof")
    assert report["duration_seconds"] is None and report["total"]["energy_joules"] is None
    groups = {}
    for window in report["windows"]:
        assert window["imported"] and window["count"] == 1
        groups.setdefault(window["name"], []).append(window)
    assert len(groups) == 68
    least = [min(runs, key=joules) for runs in groups.values()]
    highest = [max(runs, key=power_limit) for runs in groups.values()]
    assert collections.Counter(map(power_limit, least)) == {
        100: 24, 125: 21, 150: 15, 175: 4, 200: 2, 225: 1, 250: 1}
    saving = [1 - joules(a) / joules(b) for a, b in zip(least, highest)]
    slowdown = [a["mean_seconds"] / b["mean_seconds"] - 1 for a, b in zip(least, highest)]
    assert 100 * statistics.mean(saving) == pytest.approx(21.36, abs=0.005)
    assert 100 * statistics.mean(slowdown) == pytest.approx(16.53, abs=0.005)
    text = tool("report", "x.jprof").out
    assert "power limit W" in text and "Measured by another tool" in text and " more" in text
    assert tool("report", "x.jprof", "--from", "1s", status=None).returncode == 2


def test_a_window_log_is_reported_with_its_known_answers(tool, peers):
    tool("import", peers / "zeus" / "profile_A40+bert-base-uncased+gpu0.csv", "-o", "x.jprof")
    windows = tool.report("x.jprof")["windows"]
    least = min(windows, key=joules)
    assert (power_limit(least), joules(least)) == (200, pytest.approx(2481.354, abs=5e-4))
    fastest = min(w["mean_seconds"] for w in windows)
    bounded = min((w for w in windows if w["mean_seconds"] <= 1.1 * fastest), key=joules)
    assert (power_limit(bounded), joules(bounded)) == (275, pytest.approx(2758.486, abs=5e-4))
    assert "Measured by another tool" in tool("report", "x.jprof").out


def test_help_of_every_verb(tool):
    assert "where did the energy go?" in tool("--help").out
    for verb in ("doctor", "run", "monitor", "report", "export", "import"):
        out = tool(verb, "--help").out
        assert out.startswith(f"Usage: jouleprof {verb}") and "Examples:" in out
    assert tool("frobnicate", status=2).err.count("\n") == 2
    assert tool("--version").out.startswith("jouleprof ")


def test_latency_gives_the_energy_of_one_inference(tool):
    """60 W idle and 120 W at work: known answers of the fixture."""
    log = FIXTURES / "dmon_work.txt"
    rows = {line.split()[0]: line.split()[1:] for line in
            tool("import", log, "-o", "x.jprof", "--latency", "10ms").out.splitlines()}
    assert rows["idle"] == ["60.00", "60.00", "600.0", "mJ"]
    assert rows["total"] == ["120.00", "120.00", "1.200", "J"]
    assert rows["active"] == ["60.00", "60.00", "600.0", "mJ"]
    assert "above 0" in tool("import", log, "-f", "-o", "x.jprof", "--latency", "0s", status=2).err
    sweep = FIXTURES / "zeus_sweep.csv"
    refused = tool("import", sweep, "-o", "y.jprof", "--latency", "1ms", status=4)
    assert "needs a power log" in refused.err and not (tool.folder / "y.jprof").exists()


def test_published_energy_of_deit_b(tool, peers):
    """87 W and 61 W on an A100, and 4.37 ms: 113.62 mJ active."""
    log = peers / "nvidia_smi_dmon" / "deit-b-power.csv"
    out = tool("import", log, "-o", "x.jprof", "--latency", "4.37ms").out
    assert "113.6 mJ" in out and "380.2 mJ" in out


def test_costs_are_of_the_output_alone(gpu):
    gpu("run", "-q", "--idle", "0s", "-o", "a.jprof", "--", "sleep", "0.5")
    plain = gpu.report("a.jprof")
    priced = gpu.report("a.jprof", "--price", "0.30 EUR/kWh", "--carbon", "230", "--pue", "1.2")
    costs = priced.pop("costs")
    assert plain.pop("costs") is None and plain == priced
    assert costs["currency"] == "EUR"
    assert costs["carbon_grams"] == pytest.approx(costs["energy_joules"] / 3.6e6 * 1.2 * 230,
                                                  abs=1e-8)
    assert "cost " in gpu("report", "a.jprof", "--price", "0.30/kWh").out
    gpu("report", "a.jprof", "--pue", "1.2", status=2)
    gpu("report", "a.jprof", "--price", "x", status=2)
    gpu("report", "a.jprof", "--carbon", "missing.csv", status=3)
    gpu("report", "a.jprof", "--price", "1", "--by", "kernel", status=2)


def test_a_folder_of_one_experiment(tool):
    folder = tool.folder / "experiment"
    folder.mkdir()
    rows = [f"2026/08/17 22:00:{s:02d}.000, {gpu}, {100 + 50 * gpu} W" for s in range(11) for gpu in (0, 1)]
    (folder / "gpus.csv").write_text("\n".join(["timestamp, index, power.draw [W]", *rows, ""]))
    records = [{"date": f"2026-08-17 22:00:{s:02d}", "metrics": {"cpu": {"intel_power": 40}}} for s in range(11)]
    (folder / "power_metrics.json").write_text("".join(json.dumps(r) + "\n" for r in records))
    (folder / "notes.txt").write_text("learning rate 0.1\n")
    notes = tool("import", "experiment", "-o", "x.jprof").err
    assert "1 file of the folder left out, without power or of no known format: notes.txt" in notes
    report = tool.report("x.jprof")
    energies = {d["device"]: d["energy_joules"] for d in report["domains"]}
    assert energies == {"gpu0": pytest.approx(1000), "gpu1": pytest.approx(1500), "cpu": pytest.approx(400)}
    assert report["total"]["energy_joules"] == pytest.approx(2900)


def test_a_log_of_ours_comes_back_from_aipowermeters_format(recording):
    recording("export", "x.jprof", "-o", "power_metrics.json")
    recording("import", "power_metrics.json", "-o", "again.jprof")
    first, again = recording.report("x.jprof"), recording.report("again.jprof")
    assert again["duration_seconds"] == pytest.approx(first["duration_seconds"], abs=1e-5)
    was = sum(d["energy_joules"] for d in first["domains"] if d["domain"] == "gpu")
    gpus = [d for d in again["domains"] if d["domain"] == "gpu" and d["device"].startswith("gpu")]
    assert sum(d["energy_joules"] for d in gpus) == pytest.approx(was, rel=0.01)
    cpus = [next(d["provenance"] for d in report["domains"] if d["domain"] == "cpu") for report in (first, again)]
    assert cpus == ["estimated", "estimated"]


def test_segments_of_aipowermeters_format_end_at_pauses(tool):
    def record(minute, second):
        return json.dumps({"date": f"2026-08-17 22:{minute:02d}:{second:02d}",
                           "metrics": {"cpu": {"intel_power": 40}}}) + "\n"

    end = '"END OF RECORDING SEGMENT"\n'
    log = "".join(record(0, s) for s in range(11)) + end + "".join(record(30, s) for s in range(11)) + end
    (tool.folder / "old.json").write_text(log)
    tool("import", "old.json", "-o", "x.jprof")
    tool("export", "x.jprof", "-o", "power_metrics.json", "--format", "aipowermeter")
    lines = (tool.folder / "power_metrics.json").read_text().splitlines()
    ends = [i for i, line in enumerate(lines) if line.startswith('"END')]
    assert len(ends) == 2 and ends[1] == len(lines) - 1
    segments = [[json.loads(line) for line in part] for part in (lines[:ends[0]], lines[ends[0] + 1:ends[1]])]
    joules = 0
    for segment in segments:  # as AIPowerMeter's own reader integrates
        seconds = [datetime.datetime.fromisoformat(r["date"]).timestamp() for r in segment]
        watts = [r["metrics"]["cpu"]["intel_power"] for r in segment]
        joules += sum((b - a) * (p + q) / 2 for a, b, p, q in zip(seconds, seconds[1:], watts, watts[1:]))
    assert joules == pytest.approx(800, rel=1e-3)


EMISSIONS = """timestamp,project_name,run_id,experiment_id,duration,emissions,emissions_rate,cpu_power,gpu_power,\
ram_power,cpu_energy,gpu_energy,ram_energy,energy_consumed,country_name,country_iso_code,region,cloud_provider,\
cloud_region,os,python_version,codecarbon_version,cpu_count,cpu_model,gpu_count,gpu_model,longitude,latitude,\
ram_total_size,tracking_mode,on_cloud,pue
2026-04-11T08:00:10,mnist,A,e,10.0,2.5e-06,2.5e-07,42.5,250.0,6.0,1e-06,9e-06,7.5e-07,1.075e-05,France,FRA,,,,Linux,\
3.12,3.0.4,8,Xeon,1,H100,2.3,48.8,64,machine,N,1.0
2026-04-11T08:01:00,mnist,B,e,20.0,2.5e-06,2.5e-07,42.5,250.0,6.0,2e-06,18e-06,15e-07,2.15e-05,France,FRA,,,,Linux,\
3.12,3.0.4,8,Xeon,1,H100,2.3,48.8,64,machine,N,1.0
"""
JOULES = (1.075e-5 + 2.15e-5) * 3.6e6


def test_energies_of_windows_are_a_total_where_nothing_else_is_known(tool):
    (tool.folder / "emissions.csv").write_text(EMISSIONS)
    tool("import", "emissions.csv", "-o", "old.jprof")
    text = tool("report", "old.jprof", "--carbon", "56", "--price", "0.30 EUR/kWh", "--per", "2:run").out
    text = " ".join(text.split())
    assert text.startswith("32.25 mWh (116.1 J; no interval: the file states none), reported by codecarbon; CPU 9.3 %, "
                           "GPU 84 %, DRAM 7.0 %")
    assert "unavailable" not in text.lower() and "±0" not in text
    assert "0.001806 g CO2e (no interval: the file states none): 116.1 J reported by another tool" in text
    assert "58.05 J (no interval" in text
    report = tool.report("old.jprof", "--carbon", "56", "--per", "2:run")
    assert report["total"]["reported_joules"] == pytest.approx(JOULES, abs=1e-5)
    assert report["total"]["energy_joules"] is None and report["total"]["interval_joules"] is None
    assert sum(d["reported_joules"] for d in report["domains"]) == pytest.approx(JOULES, abs=1e-5)
    assert report["costs"]["energy_joules"] == pytest.approx(JOULES, abs=1e-5)
    assert report["costs"]["interval_joules"] is None
    assert report["per_unit"]["joules"] == pytest.approx(JOULES / 2, abs=1e-5)
    assert report["per_unit"]["interval_joules"] is None
    tool("report", "old.jprof", "--html", "old.html")
    page = (tool.folder / "old.html").read_text()
    assert "<strong>116.1 J</strong>" in page and "<strong>no energy</strong>" not in page
    tool("report", "old.jprof", "--svg", "old.svg")
    assert "116.1 J" in (tool.folder / "old.svg").read_text()


def test_on_a_terminal_an_imported_file_with_costs_and_units_is_within_15_lines(tool):
    (tool.folder / "emissions.csv").write_text(EMISSIONS)
    tool("import", "emissions.csv", "-o", "old.jprof")
    leader, follower = pty.openpty()
    subprocess.run([TOOL, "report", "old.jprof", "--price", "0.30 EUR/kWh", "--carbon", "56", "--per", "2:run"],
                   cwd=tool.folder, env=tool.environment, stdout=follower, check=True)
    os.close(follower)
    text = os.read(leader, 1 << 16).decode()
    assert text.count("\n") <= 15 and "per run" in text and "cost  " in text and "0.001806 g CO2e: " in text, text
    assert "country" not in text and "country iso code" in tool("report", "old.jprof").out


def test_an_emissions_file_of_all_devices_together_has_a_total(tool):
    """As the first versions of CodeCarbon wrote it."""
    (tool.folder / "emissions.csv").write_text(
        "timestamp,experiment_id,project_name,duration,emissions,energy_consumed,country_name,country_iso_code,region,"
        "on_cloud,cloud_provider,cloud_region\n"
        "2021-03-01T08:00:10,a,mnist,10.0,2.5e-06,1.075e-05,France,FRA,,N,,\n"
        "2021-03-01T08:01:00,b,mnist,20.0,2.5e-06,2.15e-05,France,FRA,,N,,\n")
    tool("import", "emissions.csv", "-o", "old.jprof")
    text = " ".join(tool("report", "old.jprof").out.split())
    assert text.startswith("32.25 mWh (116.1 J; no interval: the file states none), reported by codecarbon; all devices "
                           "together command")
    report = tool.report("old.jprof", "--carbon", "56")
    assert report["total"]["reported_joules"] == pytest.approx(JOULES, abs=1e-5)
    assert report["costs"]["energy_joules"] == pytest.approx(JOULES, abs=1e-5)


def test_windows_within_others_are_counted_once_and_overlapping_ones_not_added(tool):
    head = "start_time,window_name,elapsed_time,gpu0_energy\n"
    nested = "1775894400.0,epoch,10.0,1000\n1775894401.0,step,1.0,90\n1775894410.0,eval,2.0,100\n"
    (tool.folder / "zeus.csv").write_text(head + nested)
    tool("import", "zeus.csv", "-o", "zeus.jprof")
    report = tool.report("zeus.jprof")
    assert report["total"]["reported_joules"] == 1100
    assert any("1 of 3 windows lies within others" in w for w in report["warnings"])
    (tool.folder / "zeus.csv").write_text(head + nested + "1775894409.0,late,2.0,150\n")
    tool("import", "zeus.csv", "-o", "overlap.jprof")
    report = tool.report("overlap.jprof")
    assert report["total"]["reported_joules"] is None
    assert "overlap in part" in report["domains"][0]["reason"]
