"""jouleprof monitor."""

import csv
import io
import json
import re
import time

import pytest


def test_csv(gpu):
    rows = list(csv.DictReader(io.StringIO(gpu("monitor", "--format", "csv", "-d", "300ms", "-c", "4").out)))
    mine = [r for r in rows if r["device"] == "gpu0"]
    assert len(mine) == 4
    assert abs(float(mine[-1]["power_watts"]) - 250) < 2
    energies = [float(r["energy_joules"]) for r in mine if r["energy_joules"]]
    assert len(energies) >= 3 and energies == sorted(energies)
    assert 250 * 0.3 < energies[-1] < 250 * 1.5
    assert {r["provenance"] for r in mine} == {"simulated"}


def test_json_lines(gpu):
    lines = gpu("monitor", "--format", "jsonl", "-d", "300ms", "-c", "3").out.splitlines()
    assert len(lines) == 3
    for line in lines:
        assert json.loads(line)["devices"]


def test_a_table_shows_energy_and_provenance(gpu):
    lines = gpu("monitor", "-d", "300ms", "-c", "4", "-i", "0").out.splitlines()
    assert lines[0].split()[2:5] == ["power", "W", "energy"]
    last = lines[-1].split()
    assert last[1] == "gpu0" and last[4] == "J" and float(last[3]) > 0
    assert last[-1] == "SIMULATED"



def test_the_cpus_utilisation_begins_with_the_second_sample(tool):
    lines = tool("monitor", "--format", "jsonl", "-d", "300ms", "-c", "8").out.splitlines()
    shown = [d["utilisation_ratio"] for line in lines for d in json.loads(line)["devices"]
             if d["domain"] == "cpu"]
    if not shown:
        pytest.skip("the CPU is not one package here")
    assert shown[0] is None  # one sample has no difference
    assert 0 <= shown[-1] <= 1


def test_temperature_of_the_cpu(tool):
    chip = tool.folder / "sys/class/hwmon/hwmon3"
    chip.mkdir(parents=True)
    (chip / "name").write_text("coretemp\n")
    (chip / "temp1_label").write_text("Package id 0\n")
    (chip / "temp1_input").write_text("47000\n")
    (tool.folder / "proc").symlink_to("/proc")
    tool.environment["JOULEPROF_ROOT"] = str(tool.folder)
    lines = tool("monitor", "--format", "jsonl", "-d", "300ms", "-c", "5").out.splitlines()
    cpu = [d for d in json.loads(lines[-1])["devices"] if d["domain"] == "cpu"]
    assert [d["temperature_celsius"] for d in cpu] == [47]
    tool("run", "-q", "-o", "t.jprof", "--", "sleep", "1.2")
    tool("export", "t.jprof", "--format", "gauges", "-o", "t.gauges.csv")
    rows = list(csv.DictReader(io.StringIO((tool.folder / "t.gauges.csv").read_text())))
    readings = [r for r in rows if r.get("quantity") == "temperature_celsius"]
    assert readings, rows[:3]
    assert {(r["device"], float(r["value"])) for r in readings} == {("package-0", 47.0)}


def test_dmon_has_the_originals_columns(gpu):
    out = gpu("monitor", "--format", "dmon", "-s", "puc", "-d", "1", "-c", "2").out.splitlines()
    assert out[0].split() == "# gpu pwr gtemp mtemp sm mem enc dec jpg ofa mclk pclk".split()
    assert out[1].split()[:5] == ["#", "Idx", "W", "C", "C"]
    assert out[2].split()[:2] == ["0", "250"]
    stamped = gpu("monitor", "--format", "dmon", "-s", "p", "-o", "DT", "-c", "1", "-i", "0").out
    assert re.match(r"#Date +Time +gpu", stamped)
    assert re.search(r"^ \d{8} +\d\d:\d\d:\d\d", stamped, re.M)


def test_what_it_prints_can_be_imported_again(gpu):
    log = gpu("monitor", "--format", "dmon", "-o", "DT", "-d", "1", "-c", "4").out
    (gpu.folder / "dmon.log").write_text(log)
    gpu("import", "dmon.log", "-o", "dmon.jprof")
    assert "gpu0" in gpu("report", "dmon.jprof").out


def test_invalid_options(gpu):
    for arguments in (["-s", "x"], ["--format", "xml"], ["-d", "1ms"], ["-c", "0"], ["-o", "X"]):
        extra = [] if "--format" in arguments else ["--format", "dmon"]
        assert gpu("monitor", *extra, *arguments, status=2).err.startswith("jouleprof: ")


def test_ends_when_the_reader_closes_the_pipe(gpu):
    process = gpu.start("monitor", "--format", "csv", "-d", "50ms")
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=20) is not None


def test_the_power_of_a_board_at_rest_is_stored(tool):
    tool.simulate({"devices": [{"generation": "hopper", "idle_watts": 70}]})
    tool.environment["XDG_STATE_HOME"] = str(tool.folder / "state")
    process = tool.start("monitor", "--format", "csv", "-d", "200ms")
    end = time.monotonic() + 100
    stored = []
    for _ in process.stdout:
        stored = list((tool.folder / "state").rglob("*.json"))
        if stored or time.monotonic() > end:
            break
    process.kill()
    process.communicate()
    [board] = json.loads(stored[0].read_text())["devices"].values()
    assert abs(board["rest"][0]["power_watts"] - 70) < 1
    assert "held" not in board
