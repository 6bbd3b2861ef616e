"""jouleprof run on a machine that is suspended, or whose wall clock is set, while the command runs."""

import datetime
import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import time

import pytest
from conftest import SIM, Tool, domain
from test_serve import serving, wait_for
from test_serve_accounting import gpu_total, series
from test_serve_windows import post

HERE = pathlib.Path(__file__).resolve().parent

# One board draws 250 W. The other's power encodes the time: 100 W, and 10 W more every second.
WATTS = 250
RAMP = {"shape": "ramp", "from_watts": 100, "to_watts": 600, "duration_seconds": 50}
BOARDS = {"devices": [{"generation": "hopper", "idle_watts": WATTS},
                      {"generation": "hopper", "power": RAMP}]}

# By how many seconds which clock jumps, and the text of its warning.
SUSPENDED = {"CLOCK_SHIM_SLEEP_SECONDS": 60}
FORWARD = {"CLOCK_SHIM_STEP_SECONDS": 3600}
BACK = {"CLOCK_SHIM_STEP_SECONDS": -3600}
BACK_A_LITTLE = {"CLOCK_SHIM_STEP_SECONDS": -0.2}
TOLD = {
    "suspended": (SUSPENDED, "the machine was suspended for 60.0 s: nothing was measured meanwhile"),
    "forward": (FORWARD, "the wall clock was set forward by 3600.0"),
    "back": (BACK, "the wall clock was set back by 3600.0"),
    "back a little": (BACK_A_LITTLE, "the wall clock was set back by 0.2"),
}


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    """The library that makes clocks jump."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("shim") / "clock_shim.so"
    boards = pathlib.Path(SIM).parent / "lib"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", library,
                    HERE / "clock_shim.c", boards / "libnvidia-ml.so.1", f"-Wl,-rpath,{boards}",
                    "-ldl", "-lpthread"], check=True)
    return library


class Run:
    """A run in whose middle the command makes the clocks jump."""

    def __init__(self, folder, shim, jump, warning):
        self.jump = sum(jump.values())
        self.warning = warning
        self.tool = Tool(folder).simulate(BOARDS)
        self.epoch = round(time.time(), 6)
        self.tool.environment |= {
            "LD_PRELOAD": str(shim), "JOULEPROF_NVML_LIBRARY": str(shim),
            "JOULEPROF_NVML_EPOCH": f"{self.epoch:.6f}",
            "CLOCK_SHIM_FILE": str(folder / "jump"), **{k: str(v) for k, v in jump.items()}}
        self.process = self.tool("run", "-o", "x.jprof", "--json", "x.json", "--", "sh", "-c",
                                 "echo before; sleep 2; touch jump; sleep 2; echo after; exit 7",
                                 status=None)
        del self.tool.environment["LD_PRELOAD"]
        self.profile = json.loads((folder / "x.json").read_text())

    def rows(self, query):
        with sqlite3.connect(f"file:{self.tool.folder}/x.jprof?mode=ro", uri=True) as db:
            return db.execute(query).fetchall()


@pytest.fixture(scope="module", params=TOLD)
def run(request, tmp_path_factory, shim):
    return Run(tmp_path_factory.mktemp("run"), shim, *TOLD[request.param])


def test_the_command_completes(run):
    assert run.process.returncode == 7, run.process.err
    assert run.process.out == "before\nafter\n"


def test_the_jump_is_reported(run):
    assert run.warning in " ".join(run.process.err.split())
    assert any(run.warning in text for text in run.profile["warnings"])
    again = run.tool("report", "x.jprof")
    assert run.warning in " ".join(again.out.split())
    assert run.tool.report("x.jprof")["warnings"] == run.profile["warnings"]


def test_the_recording_is_complete(run):
    assert run.rows("PRAGMA integrity_check") == [("ok",)]
    report = run.tool.report("x.jprof")
    assert report["complete"] is True and report["exit_status"] == 7
    assert report["domains"] == run.profile["domains"]


def test_energy_and_idle_are_those_of_the_time_awake(run):
    length = run.profile["duration_seconds"]
    assert 4 < length < 60  # and not a minute or an hour more
    d = domain(run.profile, "gpu", "gpu0")
    assert d["energy_joules"] == pytest.approx(WATTS * length, rel=1e-3)
    low, high = d["interval_joules"]
    assert low < WATTS * length < high
    assert d["rest_joules"] == pytest.approx(WATTS * length, rel=5e-3)
    low, high = d["rest_interval_joules"]
    assert low < WATTS * length < high


def test_energy_of_changing_power(run):
    begin = datetime.datetime.fromisoformat(run.profile["start_time"][:26] + "+00:00").timestamp()
    length = run.profile["duration_seconds"]
    truth = (100 + 10 * (begin - run.epoch + length / 2)) * length
    d = domain(run.profile, "gpu", "gpu1")
    assert d["energy_joules"] == pytest.approx(truth, rel=5e-3)
    low, high = d["interval_joules"]
    assert low < truth < high


def test_samples_are_where_they_were_taken(run):
    taken = run.rows(
        "SELECT at_nanoseconds, power_watts FROM power_reading JOIN sensor ON sensor.id = sensor"
        " JOIN domain ON domain.id = domain"
        " WHERE device = 'gpu1' AND sensor.kind = 'power_ring' AND power_watts > 101")
    off = [at / 1e9 - (watts - 100) / 10 for at, watts in taken]
    assert len(off) > 100
    assert max(off) - min(off) < 0.02


def test_samples_of_unknown_time_are_dropped_and_reported(run):
    missing = [w for w in run.profile["warnings"] if "no power samples" in w]
    unsure = run.rows("SELECT message FROM read_failure WHERE message LIKE '%left out%'")
    if abs(run.jump) > 1:
        assert not missing and not unsure
    else:
        assert missing and unsure


def test_times_of_day_follow_the_clock(run):
    clocks = run.rows("SELECT host_nanoseconds, real_nanoseconds FROM clock_point"
                      " ORDER BY host_nanoseconds")
    ahead = [(real - host) / 1e9 for host, real in clocks]
    assert ahead[-1] - ahead[0] == pytest.approx(run.jump, abs=0.05)
    # The jump lies between two points near to each other.
    apart = [b[0] - a[0] for a, b in zip(clocks, clocks[1:])]
    steps = [abs(b - a) for a, b in zip(ahead, ahead[1:])]
    assert apart[steps.index(max(steps))] < (clocks[-1][0] - clocks[0][0]) / 2
    rows = run.tool("export", "x.jprof", "--format", "csv").out.splitlines()[1:]
    exported = [float(day) - float(since) for day, since, *_ in (r.split(",") for r in rows)]
    assert max(exported) - min(exported) == pytest.approx(abs(run.jump), abs=0.05)


@pytest.mark.parametrize("jump", [FORWARD, SUSPENDED], ids=["forward", "suspended"])
def test_serve_follows_a_clock_that_jumped(tmp_path, shim, jump):
    tool = Tool(tmp_path).simulate(BOARDS | {
        "faults": [{"kind": "gpu_lost", "device": 1, "at_seconds": 0, "for_seconds": 16}]})
    tool.environment |= {"LD_PRELOAD": str(shim), "JOULEPROF_NVML_LIBRARY": str(shim),
                         "CLOCK_SHIM_FILE": str(tmp_path / "jump"), **{k: str(v) for k, v in jump.items()}}
    with serving(tool, "--no-estimates", "--level", "node", tick="1s") as service:
        (tmp_path / "jump").touch()
        begun = post(service.url + "/api/v1/windows/w/begin")[1]["begin"]
        begin = datetime.datetime.fromisoformat(begun[:19] + "+00:00").timestamp()
        assert abs(begin - time.time() - sum(jump.values())) < 30

        # What the board that stayed used while the sensors were opened anew is counted by its own counter.
        wait_for("the other board", lambda: gpu_total(service.samples(), "gpu1") > 0)
        found = service.samples()
        assert series("jouleprof_energy_gaps_total", found, domain="gpu", device="gpu0") == [0]
        assert series("jouleprof_gap_joules_total", found, domain="gpu", device="gpu0")[0] < 250 * 30
