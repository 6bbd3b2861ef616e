"""jouleprof sweep --bench: a benchmark as the work of a sweep, on a simulated GPU."""

import json
import os
import pathlib
import sqlite3
import subprocess
import sys
import time

import pytest

TOOL = os.environ.get("JOULEPROF_TOOL", "")
BOARD = {"generation": "hopper", "idle_watts": 120, "power": {"shape": "constant", "watts": 600},
         "power_limit": {"minimum_watts": 150, "default_watts": 700, "maximum_watts": 700}}

pytestmark = pytest.mark.skipif(not os.path.exists(TOOL), reason="JOULEPROF_TOOL is not built")


@pytest.fixture
def sweep(machine, monkeypatch, tmp_path):
    monkeypatch.setenv("JOULEPROF_NVML_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("JOULEPROF_NVML_EPOCH", str(int(time.time()) - 5))
    monkeypatch.setenv("JOULEPROF_CONTROL_FOLDER", str(tmp_path / "control"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(
        [str(pathlib.Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]))
    machine.gpus(BOARD)

    def run(*arguments, status=0):
        done = subprocess.run([TOOL, "sweep", *arguments, "--python", sys.executable], cwd=tmp_path,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        assert done.returncode == status, f"{done.returncode}\n{done.stdout}{done.stderr}"
        return done
    return run


LIMITED = ("--bench", "bench_workloads:limited", "--device", "cuda:0", "--min-time", "1s", "--max-warm-up", "1s")


def test_iterations_are_the_work_and_loading_is_not(sweep, tmp_path):
    sweep(*LIMITED, "--limits", "700,200", "--repeats", "2", "--min-repeats", "2")
    recommended = json.loads(subprocess.run(
        [TOOL, "recommend", str(tmp_path / "sweep.jprof"), "--json"], check=True, stdout=subprocess.PIPE).stdout)
    fast, slow = recommended["sweeps"][0]["points"]
    # The simulated work is slowed by the cube root of the power above idle. Loading would hide that.
    ratio = (480 / 80) ** (1 / 3)
    # A busy machine slows both, so that only the lower bounds are sharp.
    assert slow["slowdown_ratio"] > 0.6 * (ratio - 1)
    assert 0.018 < fast["seconds"] < 0.1
    for point, watts in ((fast, 600), (slow, 200)):
        assert point["energy_joules"] / point["seconds"] == pytest.approx(watts, rel=0.03)
    database = sqlite3.connect(tmp_path / "sweep.jprof")
    runs = [json.loads(text) for text, in database.execute("SELECT summary FROM run")]
    assert all(run["units"] >= 1 / 0.05 for run in runs)  # iterations
    assert json.loads(database.execute("SELECT plan FROM sweep").fetchone()[0])["bench"] == LIMITED[1]


def test_only_the_gpu_of_the_benchmark_is_set_and_counted(sweep, machine, tmp_path):
    machine.gpus(BOARD, BOARD)
    sweep("--bench", "bench_workloads:unlimited", "--device", "cuda:1", "--min-time", "1s", "--max-warm-up", "1s",
          "--limits", "700,200", "--repeats", "2", "--min-repeats", "2")
    recommended = json.loads(subprocess.run(
        [TOOL, "recommend", str(tmp_path / "sweep.jprof"), "--json"], check=True, stdout=subprocess.PIPE).stdout)
    fast, slow = recommended["sweeps"][0]["points"]
    for point, watts in ((fast, 600), (slow, 200)):
        assert point["mean_watts"] == pytest.approx(watts, rel=0.03)
    assert {line.split()[1] for line in (tmp_path / "state").read_text().splitlines()} == {"1"}
    said = sweep("--bench", "bench_workloads:unlimited", "--device", "cuda:2", "--dry-run", status=2).stderr
    assert "there is no GPU 2 to set: the command would see 2, from 0 on" in said


def test_a_dry_run_runs_the_benchmark_once(sweep, tmp_path):
    done = sweep("--dry-run", *LIMITED)
    assert "nothing: this was a dry run" in done.stdout and "warning" not in done.stdout
    assert not (tmp_path / "sweep.jprof").exists()


def test_a_workload_that_fails_ends_the_sweep(sweep, tmp_path):
    done = sweep("--bench", "bench_workloads:absent", "--limits", "700,200", status=2)
    assert "has no function 'absent'" in done.stderr
    assert (tmp_path / "state").read_text().split()[-1] == "700"


@pytest.mark.parametrize("arguments, words", [
    (["--batch", "4", "--", "true"], "--bench"),
    (["--bench", "deit-b", "--per", "step"], "--per"),
    (["--bench", "deit-b", "--", "true"], "say what to measure"),
    (["--bench", "deit-b", "--min-time", "no"], "no"),
])
def test_options_that_contradict_are_refused(sweep, arguments, words):
    done = subprocess.run([TOOL, "sweep", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and words in done.stderr
