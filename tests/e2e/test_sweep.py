"""sweep: runs on simulated GPUs, and that settings are restored whatever is killed."""

import re
import json
import os
import pathlib
import signal
import sqlite3
import sys
import time
import xml.etree.ElementTree

import pytest
from conftest import SIM, Tool

WORK = """
import ctypes, os, sys, time
sim = ctypes.CDLL(os.environ["JOULEPROF_NVML_LIBRARY"])
sim.nvmlInit_v2()
sim.jouleprof_nvml_sim_speed_ratio.restype = ctypes.c_double
speed = sim.jouleprof_nvml_sim_speed_ratio(0)
for i in range(int(sys.argv[2]) if len(sys.argv) > 2 else 1):
    time.sleep(float(sys.argv[1]) / speed)
    print(f"step {i}: {speed / float(sys.argv[1]):.6f} units/s", flush=True)
"""
# Work during which another program changes the limit.
OTHERS = """
import ctypes, os, time
sim = ctypes.CDLL(os.environ["JOULEPROF_NVML_LIBRARY"])
sim.nvmlInit_v2()
sim.jouleprof_nvml_sim_speed_ratio.restype = ctypes.c_double
for watts in (700, 200):
    open(os.environ["JOULEPROF_NVML_STATE"], "a").write(f"{time.time_ns()} 0 {watts}\\n")
    end = time.monotonic() + 4
    while time.monotonic() < end:
        speed = sim.jouleprof_nvml_sim_speed_ratio(0)
        time.sleep(0.1 / speed)
        print(f"{10 * speed:.6f} units/s", flush=True)
"""
# The time of a unit as the work prints it: that of the whole command varies with the machine's load.
PER_UNIT = ("--throughput", r"([0-9.]+) units/s")
# A program that waits until it is killed, after it has said so.
WAIT = """
import pathlib, time
pathlib.Path("waiting").touch()
while True: time.sleep(0.05)
"""


def board(**keys):
    return {"generation": "hopper", "idle_watts": 120, "power": {"shape": "constant", "watts": 600},
            "power_limit": {"minimum_watts": 150, "default_watts": 700, "maximum_watts": 700}, **keys}


class Machine(Tool):
    def __init__(self, folder, *devices):
        super().__init__(folder)
        self.simulate({"devices": list(devices)})
        self.environment["JOULEPROF_NVML_STATE"] = str(folder / "state")
        self.environment["JOULEPROF_NVML_EPOCH"] = str(int(time.time()) - 5)
        self.environment["JOULEPROF_CONTROL_FOLDER"] = str(folder / "control")
        (folder / "work.py").write_text(WORK)
        (folder / "wait.py").write_text(WAIT)

    def limit(self, device=0):
        """As set by any process; None: never."""
        value = None
        state = self.folder / "state"
        for line in state.read_text().splitlines() if state.exists() else []:
            fields = line.split()
            if len(fields) == 3 and int(fields[1]) == device:
                value = float(fields[2])
        return value

    def set_limit(self, watts, device=0):
        with open(self.folder / "state", "a") as state:
            state.write(f"{time.time_ns()} {device} {watts}\n")

    def records(self):
        return sorted((self.folder / "control").glob("*.restore.json"))

    def sweep(self, *options, work=("0.05",), **how):
        return self("sweep", *options, "--", sys.executable, "work.py", *work, **how)

    def recommendation(self, *options):
        return json.loads(self("recommend", "sweep.jprof", "--json", *options).out)["sweeps"][0]


def wait_until(holds):
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path, board())


def processes_with(environment):
    """Processes of a test's own: those with its control folder in their environment."""
    mark = f"JOULEPROF_CONTROL_FOLDER={environment['JOULEPROF_CONTROL_FOLDER']}".encode()
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if mark in (folder / "environ").read_bytes():
                found[int(folder.name)] = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            pass
    return found


def pid_of(machine, word):
    return next(pid for pid, words in processes_with(machine.environment).items()
                if len(words) > 1 and words[1] == word)


def test_a_sweep_ranks_its_settings_and_restores_the_limit_found(machine):
    machine.set_limit(650)
    process = machine.sweep("--limits", "700,400,200", "--repeats", "3", *PER_UNIT, work=("0.4",))
    assert "recommend  " in process.err
    assert machine.limit() == 650
    assert machine.records() == []
    sweep = machine.recommendation()
    assert sweep["simulated"] and machine("recommend", "sweep.jprof").out.startswith("SIMULATED: ")
    assert [p["setting"] for p in sweep["points"]] == [700, 400, 200]
    # What it saves in a day has the interval of the saving.
    day = machine.recommendation("--hours", "10")
    saved, (low, high) = day["saved_joules_per_day"], day["saved_interval_joules_per_day"]
    best = next(p for p in day["points"] if p["setting"] == day["recommended"])
    assert low < saved < high
    assert [low / saved, high / saved] == pytest.approx([x / best["saving_ratio"] for x in best["saving_interval_ratio"]], rel=1e-4)
    assert f"kWh less ({low / 3.6e6:.3g} to {high / 3.6e6:.3g})" in machine("recommend", "sweep.jprof", "--hours", "10").out
    assert sweep["points"][2]["mean_watts"] == pytest.approx(200, rel=0.02)
    assert sweep["recommended"] == 200
    report = json.loads(machine("report", "sweep.jprof", "--run", "2", "--json").out)
    assert next(d for d in report["domains"] if d["domain"] == "gpu")["energy_joules"] > 10
    assert "give one of its runs" in machine("report", "sweep.jprof", status=2).err
    assert "no recording of a run 99" in machine("report", "sweep.jprof", "--run", "99", status=3).err
    # As a figure, with each measurement in each of its panels.
    machine("recommend", "sweep.jprof", "--svg", "report.svg")
    figure = xml.etree.ElementTree.parse(machine.folder / "report.svg").getroot()
    raw = [c for c in figure.iter("{http://www.w3.org/2000/svg}circle") if c.get("class") == "raw"]
    assert len(raw) >= 6 * sum(p["measurements"] for p in sweep["points"])
    # As Zeus's profile, which is read again.
    machine("recommend", "sweep.jprof", "--profile", "profile.json")
    profile = json.loads((machine.folder / "profile.json").read_text())["measurements"]
    assert [m["power_limit"] for m in profile] == [700, 400, 200]
    assert profile[2]["energy"] == pytest.approx(sweep["points"][2]["energy_joules"])
    machine("import", "profile.json", "-o", "profile.jprof")
    again = json.loads(machine("recommend", "profile.jprof", "--json").out)["sweeps"][0]
    assert again["recommended"] == 200
    # Each run's readings are in the file.
    runs = sqlite3.connect(machine.folder / "sweep.jprof").execute(
        "SELECT summary, length(recording) FROM run").fetchall()
    assert 1 + 2 * 3 + 2 <= len(runs) <= 1 + 3 * 3  # one setting may be ruled out
    assert all(size > 1000 for _, size in runs)
    assert {json.loads(summary)["requested"] for summary, _ in runs} == {700, 400, 200}


def test_only_gpus_that_the_command_sees_are_set_and_counted(tmp_path):
    machine = Machine(tmp_path, board(), board(), board())
    machine.environment["CUDA_VISIBLE_DEVICES"] = "1"
    machine.sweep("--limits", "700,300", "--repeats", "2", *PER_UNIT, work=("0.2",))
    assert machine.limit(1) == 700 and machine.limit(0) is None and machine.limit(2) is None
    assert machine.recommendation()["points"][0]["mean_watts"] == pytest.approx(600, rel=0.02)  # of one GPU
    assert "nvidia-smi -pl 300 -i 1 " in machine("recommend", "sweep.jprof").out
    (tmp_path / "state").unlink()
    machine("apply", "--power", "400", "--", "true")
    assert machine.limit(1) == 700 and machine.limit(0) is None and machine.limit(2) is None
    machine("apply", "--power", "400", "-i", "2", "--", "true")  # named
    assert machine.limit(2) == 700 and machine.limit(0) is None
    for hidden in ("", "7"):
        machine.environment["CUDA_VISIBLE_DEVICES"] = hidden
        assert "would see no GPU" in machine("apply", "--power", "400", "--", "true", status=125).err
        assert "would see no GPU" in machine.sweep("--limits", "700,300", "--force", status=2).err
    assert machine.limit(0) is None


def test_the_work_reads_its_limit_from_its_environment(machine):
    machine("sweep", "--limits", "700,300", "--repeats", "2", "--", "sh", "-c",
            "echo $MAX_WATT >>limits; sleep 0.3")
    runs = sqlite3.connect(machine.folder / "sweep.jprof").execute("SELECT summary FROM run ORDER BY rowid")
    limits = [json.loads(summary)["requested"] for summary, in runs]
    assert set(limits) == {700, 300}
    assert [float(limit) for limit in (machine.folder / "limits").read_text().split()] == limits


def test_windows_and_printed_numbers_are_the_work(machine):
    machine.sweep("--limits", "700,200", "--repeats", "2", "--min-repeats", "2",
                  "--throughput", r"([0-9.]+) units/s", work=("0.1", "4"))
    assert machine.recommendation("--objective", "time")["recommended"] == 700
    slow = machine.recommendation()["points"][1]
    # The printed rate is exact: loading is not in it.
    assert slow["slowdown_ratio"] == pytest.approx((480 / 80) ** (1 / 3) - 1, abs=1e-4)
    assert slow["energy_joules"] == pytest.approx(200 * 0.1 * (480 / 80) ** (1 / 3), rel=0.03)


def test_a_clock_is_locked_and_unlocked(machine):
    machine.sweep("--knob", "sm-clock", "--limits", "1980,990", "--repeats", "2", "--min-repeats", "2",
                  work=("0.2",))
    assert machine.recommendation()["knob"] == "sm_clock_megahertz"
    state = (machine.folder / "state").read_text()
    assert "clock 990\n" in state
    assert state.endswith("clock unlocked\n")


def test_a_memory_clock_is_locked_and_unlocked(machine):
    process = machine.sweep("--knob", "memory-clock", "--repeats", "2", "--min-repeats", "2", *PER_UNIT,
                            work=("0.4",))
    assert "a locked memory clock slows whatever uses memory" in process.err
    sweep = machine.recommendation()
    assert sweep["knob"] == "memory_clock_megahertz"
    assert [p["setting"] for p in sweep["points"]] == [2619, 1309]
    # Half of the clock is half of the speed, and an eighth of the power above idle.
    assert sweep["points"][1]["slowdown_ratio"] == pytest.approx(1, abs=0.01)
    assert sweep["points"][1]["mean_watts"] == pytest.approx(120 + 480 / 8, rel=0.02)
    assert (machine.folder / "state").read_text().endswith("memory-clock unlocked\n")
    assert re.search(r"nvidia-smi -lmc (2619|1309) -i 0 ", machine("recommend", "sweep.jprof").out)


def test_observed_units_are_grouped_by_the_limit_that_someone_else_sets(machine):
    (machine.folder / "others.py").write_text(OTHERS)
    command = ("--observe", "--throughput", r"([0-9.]+) units/s", "--", sys.executable, "others.py")
    process = machine("sweep", *command)
    assert "nothing was set" in process.err
    sweep = machine.recommendation("--objective", "time")
    assert [p["setting"] for p in sweep["points"]] == [700, 200]
    assert sweep["recommended"] == 700
    slow = sweep["points"][1]
    assert slow["mean_watts"] == pytest.approx(200, rel=0.03)
    assert slow["slowdown_ratio"] == pytest.approx((480 / 80) ** (1 / 3) - 1, abs=1e-4)
    assert machine.records() == []
    # A further run is added; what the others set stays.
    machine("sweep", "--observe", "--resume")
    assert machine.recommendation()["points"][1]["measurements"] == 2
    assert machine.limit() == 200
    assert "were only observed" in machine("sweep", "--resume", status=2).err
    assert "add a run to it with --observe --resume" in machine("sweep", *command, status=2).err


def test_observed_commands_are_compared_from_run_to_run(machine):
    machine.set_limit(600)
    assert machine("sweep", "--observe", "--force", "--", "sh", "-c",
                   "echo at $MAX_WATT; sleep 0.3").out.startswith("at 600\n")
    process = machine("sweep", "--observe", "--force", "--", sys.executable, "work.py", "0.3")
    assert "one power limit that can be ranked" in process.err
    machine.set_limit(200)
    machine("sweep", "--observe", "--resume")
    assert [p["setting"] for p in machine.recommendation()["points"]] == [600, 200]
    assert "--observe groups runs by the power limit alone" in machine(
        "sweep", "--observe", "--knob", "sm-clock", "--", "true", status=2).err
    assert "another command" in machine("sweep", "--observe", "--resume", "--", "true", status=2).err


def test_a_limit_that_the_work_never_reaches_is_named(machine):
    machine.sweep("--limits", "700,650,300", "--repeats", "2", "--min-repeats", "2", work=("0.4",))
    sweep = machine.recommendation()
    assert [u["setting"] for u in sweep["unranked"]] == [650]
    assert "never reached" in sweep["unranked"][0]["reason"]


def test_a_limit_that_another_limiter_lowers_is_named(tmp_path):
    machine = Machine(tmp_path, board(power_limit={"minimum_watts": 150, "default_watts": 700,
                                                   "maximum_watts": 700, "other_limit_watts": 400}))
    machine.sweep("--limits", "600,400,300", "--repeats", "2", "--min-repeats", "2")
    sweep = machine.recommendation()
    assert [p["setting"] for p in sweep["points"]] == [400, 300]
    assert "400 W is enforced instead" in sweep["unranked"][0]["reason"]


def test_work_that_heat_slows_is_not_ranked(tmp_path):
    hot = {"ambient_celsius": 25, "celsius_per_watt": 0.1, "slowdown_celsius": 80}
    machine = Machine(tmp_path, board(temperature=hot))
    machine.environment["JOULEPROF_NVML_EPOCH"] = str(int(time.time()) - 60)
    process = machine.sweep("--limits", "700,650", "--repeats", "2", "--min-repeats", "2", status=4)
    assert "slowed by heat in 100 % of the readings" in process.err


def test_runs_that_are_left_out_or_far_from_the_others_are_named(machine):
    machine.sweep("--limits", "700,200", "--repeats", "4", "--min-repeats", "4", *PER_UNIT,
                  work=("0.4",))
    database = sqlite3.connect(machine.folder / "sweep.jprof")
    runs = [json.loads(summary) for summary, in database.execute("SELECT summary FROM run ORDER BY number")]
    hot, slow = [run for run in runs if run["block"] > 0 and run["setting"] == 700][:2]
    hot["unranked"] = "slowed by heat in 5 % of the readings"
    slow["seconds"] *= 3
    for run in (hot, slow):
        database.execute("UPDATE run SET summary = ? WHERE number = ?", (json.dumps(run), run["number"]))
    database.commit()
    text = " ".join(machine("recommend", "sweep.jprof").out.split())
    assert (f"left out run {hot['number']}, block {hot['block']} at 700 W: slowed by heat in 5 % of the readings"
            in text), text
    assert f"outlier run {slow['number']}, block {slow['block']} at 700 W: about " in text, text
    assert "times the time of its setting's other runs; it counts" in text, text
    sweep = machine.recommendation()
    assert sweep["left_out"] == 1 and [run["setting"] for run in sweep["left_out_runs"]] == [700]
    assert [run["name"] for run in sweep["outliers"]] == [f"run {slow['number']}, block {slow['block']}"]


def test_the_loss_that_the_work_prints_is_kept(machine):
    process = machine("sweep", "--limits", "700,300", "--repeats", "2", "--", "sh", "-c",
                      "echo epoch 1 loss: 2.5; echo epoch 2 loss: 0.75; echo val loss: 0.9; sleep 0.3")
    assert "epoch 2 loss: 0.75" in process.out
    runs = sqlite3.connect(machine.folder / "sweep.jprof").execute("SELECT summary FROM run")
    assert {json.loads(summary)["loss"] for summary, in runs} == {0.75}


def test_without_permission_nothing_is_changed(tmp_path):
    machine = Machine(tmp_path, board(power_limit={"settable": False}))
    process = machine.sweep("--limits", "700,300", status=10)
    assert "Nothing was changed. Ask the administrator" in process.err
    assert machine.limit() is None
    assert machine.records() == []


def test_a_dry_run_changes_nothing(machine):
    out = machine.sweep("--dry-run", "--knob", "power").out
    assert "nothing: this was a dry run" in out
    assert "found      700 W" in out
    assert machine("sweep", "--dry-run", "--", "sh", "-c", "echo at $MAX_WATT").out.startswith("at 700\n")
    assert machine.limit() is None
    assert not (machine.folder / "sweep.jprof").exists()


def test_boards_with_different_limits_have_none_in_common(tmp_path):
    other = {"minimum_watts": 150, "default_watts": 400, "maximum_watts": 700}
    machine = Machine(tmp_path, board(), board(power_limit=other))
    machine.environment["MAX_WATT"] = "123"
    show = ("--", "sh", "-c", "echo at ${MAX_WATT-none}; sleep 0.3")
    for how in ("--dry-run", "--observe"):
        assert machine("sweep", how, *show, status=None).out.startswith("at none\n")


def test_bad_options_say_what_to_give(machine):
    assert "power, sm-clock or memory-clock" in machine.sweep("--knob", "fan", status=2).err
    assert "one group" in machine.sweep("--throughput", "x", status=2).err
    assert "2 to 50 settings between 150 and 700" in machine.sweep("--limits", "600,600", status=2).err
    for limits, other in (("700,50", "50"), ("900,400", "900")):  # which would be others than those asked for
        refused = machine.sweep("--limits", limits, status=2).err
        assert f"--limits {other}: the board allows 150 to 700 W" in refused
    assert "such as 300:700" in machine.sweep("--range", "7", status=2).err
    assert "say what to measure" in machine("sweep", status=2).err
    assert machine.limit() is None


def test_work_that_cannot_be_measured_ends_the_sweep(machine):
    """And not only after all blocks of all settings."""
    process = machine.sweep("--limits", "700,500,300", "--per", "stepp", status=6)
    assert "not measured in two runs in a row: it has no window named stepp" in process.err
    runs = sqlite3.connect(machine.folder / "sweep.jprof").execute("SELECT count(*) FROM run")
    assert runs.fetchone() == (2,)
    assert machine.limit() == 700


def test_a_sweep_that_recommends_nothing_has_another_status(machine):
    process = machine.sweep("--limits", "700,300", "--repeats", "2", "--max-power", "1", "-q", status=4)
    assert "no measured setting meets the constraints" in process.err


def test_a_failing_command_ends_the_sweep_and_resume_goes_on(machine):
    (machine.folder / "work.py").write_text(
        "import os, sys; sys.exit((os.path.exists('bad') and os.environ['MAX_WATT'] == '300') * 3)")
    (machine.folder / "bad").touch()
    process = machine.sweep("--limits", "700,300", "--repeats", "2", "--min-repeats", "2", status=3)
    assert "status 3 at 300" in process.err
    assert machine.limit() == 700
    assert machine.records() == []
    # Fewer than two settings: why there are no more is said nevertheless.
    assert "the command failed with status 3" in machine("recommend", "sweep.jprof", status=None).out
    (machine.folder / "bad").unlink()
    assert "exists; continue it with --resume" in machine.sweep(status=2).err
    (machine.folder / "work.py").write_text(WORK)
    assert "another command" in machine("sweep", "--resume", "--", "true", status=2).err
    db = sqlite3.connect(machine.folder / "sweep.jprof")
    machine("sweep", "--resume")
    assert db.execute("SELECT count(*) FROM run").fetchone()[0] > 1
    assert "the command failed with status 3" in machine("recommend", "sweep.jprof").out
    assert "--repeats" in machine("sweep", "--resume", "--repeats", "3", status=2).err


def test_a_setting_that_the_board_allows_no_more_is_said_before_any_run(machine):
    (machine.folder / "work.py").write_text(
        "import os, sys; open('runs', 'a').write('x'); sys.exit((os.environ['MAX_WATT'] == '300') * 3)")
    machine.sweep("--limits", "700,300", "--repeats", "2", "--min-repeats", "2", status=3)
    runs = (machine.folder / "runs").read_text()
    machine.simulate({"devices": [board(power_limit={"minimum_watts": 400, "default_watts": 700, "maximum_watts": 700})]})
    refused = machine("sweep", "--resume", status=125).err
    assert "sweep.jprof has runs to do at 300 W, and the GPU allows 400 to 700 now" in refused
    assert (machine.folder / "runs").read_text() == runs


def test_the_table_at_the_end_is_that_of_recommend(machine):
    noisy = WORK.replace("time.sleep(", "time.sleep((0.5 + os.getpid() % 7 / 7) * ").replace(
        "{speed /", "{(0.5 + os.getpid() % 5 / 5) * speed /")
    (machine.folder / "work.py").write_text(noisy)
    machine("sweep", "--limits", "700,300,200", "--repeats", "3", "--min-repeats", "3", *PER_UNIT, "--",
            sys.executable, "work.py", "0.2")
    printed = machine("sweep", "--resume").err
    table = machine("recommend", "sweep.jprof").out
    rows = [line for line in table.splitlines() if re.match(r"\S*\s*\d+ W\b", line)]
    assert len(rows) >= 2, table
    for row in table.splitlines():
        assert row in printed, (row, printed)


def test_a_board_that_is_lost_is_said_to_be(tmp_path):
    machine = Machine(tmp_path, board())
    found = machine("doctor", "--json", status=None)
    uuid = next(d["uuid"] for d in json.loads(found.out)["domains"] if d["domain"] == "gpu")
    machine.simulate({"devices": [board()], "faults": [{"kind": "gpu_lost", "at_seconds": 8}]})
    machine.environment["JOULEPROF_NVML_EPOCH"] = str(time.time())
    ended = machine.sweep("--limits", "500,300", "--repeats", "9", "--min-repeats", "9", status=6)
    assert "GPU is lost" in ended.err
    # What comes later does not know the UUID of any board that is there.
    left = machine("apply", "--restore", status=10).err
    for text in (ended.err, left, machine("recommend", "sweep.jprof", status=None).err,
                 machine("run", "--no-record", "--devices", uuid, "--", "true", status=None).err):
        assert "matches no GPU" not in text and "no device is called" not in text, text
    assert f"'{uuid}' is no GPU that answers, and may be gpu0: nvmlDeviceGetHandleByIndex(0): GPU is lost" in left
    assert "Xid" in left


def test_a_busy_board_is_refused(tmp_path):
    machine = Machine(tmp_path, board(processes=[{"pid": 1, "memory_mib": 100}]))
    assert "other processes use gpu0" in machine.sweep("--limits", "700,300", status=6).err
    assert machine.limit() is None


def test_apply_lasts_until_the_command_ends(machine):
    machine.set_limit(650)
    show = "import pathlib, sys; print(pathlib.Path('state').read_text().split()[-1]); sys.exit(4)"
    command = ("--", sys.executable, "-c", show)
    process = machine("apply", "--power", "300", *command, status=4)
    assert process.out == "300\n"
    assert "the power limit is 300 W until the command ends" in process.err
    assert machine.limit() == 650
    assert machine.records() == []
    machine.sweep("--limits", "700,300", "--repeats", "2", "--min-repeats", "2", *PER_UNIT, work=("0.3",))
    assert machine("apply", "sweep.jprof", *command, status=4).out == "300\n"
    assert machine.limit() == 650
    assert "the nearest is 150" in machine("apply", "--power", "10", *command, status=125).err
    machine("apply", "--power", "300", "--", "/no/such/program", status=127)
    assert machine.limit() == 650


def test_apply_sets_what_the_sweep_measured_and_recommend_printed(tmp_path):
    machine = Machine(tmp_path, board(), board())
    machine.sweep("-i", "0", "--limits", "700,300", "--repeats", "2", *PER_UNIT, work=("0.2", "4"))
    show = ("--", sys.executable, "-c", "import pathlib; print(pathlib.Path('state').read_text().strip())")
    set_limits = [line.split()[1:] for line in machine("apply", "sweep.jprof", *show).out.splitlines()]
    assert set_limits[-1] == ["0", "300"], set_limits
    assert machine.limit(1) is None
    assert "jouleprof apply sweep.jprof -- COMMAND" in machine("recommend", "sweep.jprof").out
    assert json.loads(machine("recommend", "sweep.jprof", "--json").out)["gpus"] == "0"  # of the page's command, too
    # Another question than the sweep's has another answer, which the file does not have.
    fastest = machine("recommend", "sweep.jprof", "--objective", "time").out
    words = re.search(r"jouleprof apply (--power \d+ -i 0) -- COMMAND", fastest)[1].split()
    assert words[1] == "700"
    assert "gpu0: the power limit is 700 W" in machine("apply", *words, *show).err
    machine.simulate({"devices": [board(uuid="GPU-deadbeef-0000-0000-0000-000000000000")]})
    assert "with --devices" in machine("apply", "sweep.jprof", *show, status=125).err
    assert "gpu0: the power limit is 300 W" in machine("apply", "sweep.jprof", "-i", "0", *show).err


def test_apply_says_that_another_limiter_is_lower(tmp_path):
    limit = {"minimum_watts": 150, "default_watts": 700, "maximum_watts": 700, "other_limit_watts": 400}
    machine = Machine(tmp_path, board(power_limit=limit))
    said = machine("apply", "--quiet", "--power", "600", "--", "true").err
    assert "gpu0: 400 W is enforced instead, by another limiter of the board" in said, said
    assert machine("apply", "--quiet", "--power", "300", "--", "true").err == ""


def start_waiting(machine, *limits, knob="power", check=True):
    """A sweep in the middle of a run at another setting than it found; `check`: at the first one."""
    process = machine.start("sweep", "--knob", knob, "--limits", ",".join(limits), "--", sys.executable,
                            "wait.py")
    wait_until(lambda: (machine.folder / "waiting").exists())
    if knob == "power" and check:
        assert machine.limit() == float(limits[0])
    return process


def test_the_command_is_killed(machine):
    process = start_waiting(machine, "400", "300")
    os.kill(pid_of(machine, b"wait.py"), signal.SIGKILL)
    wait_until(lambda: machine.limit() == 700)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGKILL
    assert machine.records() == []


def test_the_tool_is_killed(machine):
    process = start_waiting(machine, "400", "300")
    process.kill()
    wait_until(lambda: machine.limit() == 700 and not machine.records())
    os.kill(pid_of(machine, b"wait.py"), signal.SIGKILL)
    process.communicate(timeout=60)


@pytest.mark.parametrize("knob, lock", [("sm-clock", "clock"), ("memory-clock", "memory-clock")])
def test_the_tool_is_killed_and_a_clock_is_unlocked(machine, knob, lock):
    limits = {"sm-clock": ("1980", "990"), "memory-clock": ("2619", "1309")}[knob]
    process = start_waiting(machine, *limits, knob=knob)
    state = machine.folder / "state"
    assert state.read_text().endswith(f" 0 {lock} {limits[0]}\n")
    process.kill()
    wait_until(lambda: state.read_text().endswith(f" 0 {lock} unlocked\n") and not machine.records())
    os.kill(pid_of(machine, b"wait.py"), signal.SIGKILL)
    process.communicate(timeout=60)


def test_the_guard_is_killed(machine):
    process = start_waiting(machine, "400", "300")
    os.kill(pid_of(machine, b"guard-settings"), signal.SIGKILL)
    wait_until(lambda: machine.limit() == 700 and not machine.records())
    os.kill(pid_of(machine, b"wait.py"), signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert "guard" in err


def test_all_are_killed_and_the_next_verb_restores(tmp_path):
    machine = Machine(tmp_path, board(), board())
    process = start_waiting(machine, "400", "300")
    # Stopped first, so that none can act on the death of another.
    pids = processes_with(machine.environment)
    for stop in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, stop)
    process.communicate(timeout=60)
    assert (machine.limit(0), machine.limit(1)) == (400, 400)
    assert len(machine.records()) == 2
    wait_until(lambda: not processes_with(machine.environment))
    said = machine("--version").out
    assert said.startswith("jouleprof")
    assert machine.limit() == 400
    doctor = machine("doctor", status=None)
    assert "gpu0: the power limit is 700 W again" in doctor.err
    assert (machine.limit(0), machine.limit(1)) == (700, 700)
    assert machine.records() == []
    assert "nothing to restore" in machine("apply", "--restore").err


def test_an_interrupt_restores(machine):
    process = start_waiting(machine, "400", "300")
    os.kill(pid_of(machine, b"wait.py"), signal.SIGINT)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0
    wait_until(lambda: machine.limit() == 700 and not machine.records())


@pytest.mark.parametrize("file, arguments", [
    ("s.jprof.run", ("sweep", "-o", "s.jprof", "--limits", "400,300", "--", "sleep", "1")),
    ("tmp/*/*.jprof", ("compare", "sleep 1", "sleep 2")),
    ("r.jprof-lock", ("run", "-o", "r.jprof", "--", "sleep", "1")),
])
def test_an_interrupt_before_the_command_leaves_no_files(machine, file, arguments):
    (machine.folder / "tmp").mkdir()
    machine.environment["TMPDIR"] = str(machine.folder / "tmp")
    process = machine.start(*arguments)
    while process.poll() is None and not list(machine.folder.glob(file)):
        pass  # at once: the command begins some ms later
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert not list((machine.folder / "tmp").iterdir())
    assert not {f.name for f in machine.folder.glob("*.jprof*")} - {"s.jprof", "r.jprof"}
    wait_until(lambda: not machine.records())


def test_an_interrupt_while_its_file_is_made_leaves_a_sweep_that_goes_on(machine):
    process = machine.start("sweep", "-o", "s.jprof", "--limits", "400,300", "--", "sleep", "1")
    while process.poll() is None and not (machine.folder / "s.jprof").exists():
        pass
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0
    again = machine("recommend", "s.jprof", status=None)
    assert "this sweep has 0; `jouleprof sweep --resume`" in again.err, again.err
    assert not (machine.folder / "s.jprof-journal").exists()


@pytest.mark.parametrize("first, second", [
    (("--limits", "700,300", "--repeats", "2", "--devices", "0"), ("--dry-run",)),
    (("--limits", "700,300", "--repeats", "2", "--devices", "0"),
     ("--limits", "700,300", "--devices", "1", "--force")),
    (("--observe",), ("--observe", "--force")),
])
def test_a_second_sweep_of_one_file_leaves_the_first_alone(tmp_path, first, second):
    machine = Machine(tmp_path, board(), board())
    process = machine.start("sweep", *first, "--", "sh", "-c", "touch begun; sleep 1")
    wait_until((tmp_path / "begun").exists)
    refused = machine("sweep", *second, "--", "sleep", "0.1", status=None)
    assert refused.returncode != 0
    assert "another jouleprof is writing" in refused.err
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert machine("report", "sweep.jprof", "--run", "1").out
    assert sorted(f.name for f in tmp_path.glob("sweep*")) == ["sweep.jprof"]


def test_another_program_that_sets_the_limit_wins(machine):
    (machine.folder / "work.py").write_text(
        "import time; open('state', 'a').write(f'{time.time_ns()} 0 555\\n')")
    process = machine.sweep("--limits", "700,300", status=6)
    assert "during two runs in a row" in process.err
    assert "neither what a sweep found (700 W) nor what it set" in process.err
    assert machine.limit() == 555
