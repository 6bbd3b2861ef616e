"""jouleprof bench, with a function as the workload, on a simulated GPU of known power."""

import csv
import json
import os
import pathlib
import subprocess
import sys

import pytest

from conftest import CONSTANT

TOOL = os.environ.get("JOULEPROF_TOOL", "")
WATTS = CONSTANT["idle_watts"]
QUICK = ("--min-time", "1s", "--max-warm-up", "1s", "--idle", "1s", "--seed", "7")

pytestmark = pytest.mark.skipif(not os.path.exists(TOOL), reason="JOULEPROF_TOOL is not built")


def environment():
    """With the workloads of this folder on Python's path."""
    found = dict(os.environ)
    found["PYTHONPATH"] = os.pathsep.join(
        [str(pathlib.Path(__file__).parent), *filter(None, [found.get("PYTHONPATH")])])
    return found


def bench_running():
    return subprocess.Popen(
        [TOOL, "bench", "bench_workloads:short", "--device", "cuda:0", *QUICK, "--python", sys.executable],
        env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def bench(*arguments, status=0):
    done = subprocess.run([TOOL, "bench", *arguments, "--python", sys.executable], env=environment(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == status, f"{done.returncode}\n{done.stdout}{done.stderr}"
    return done


def row(case, unit, phase=None):
    (found,) = [r for r in case["energy"]["per"] if (r["unit"], r["phase"]) == (unit, phase)]
    return found


def test_joules_of_an_iteration_are_power_times_the_window_over_iterations(machine):
    machine.gpus(CONSTANT)
    path = machine.folder / "kept.jprof"
    done = bench("bench_workloads:short", "--device", "cuda:0", "--batch", "2,5", *QUICK, "--json",
                 "-o", str(path), "--html", str(machine.folder / "bench.html"))
    result = json.loads(done.stdout)
    page = (machine.folder / "bench.html").read_text()
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    shown = ("workload", "mode", "batch", "energy_device", "latency", "energy_reason")
    assert len(data["bench"]["cases"]) == len(result["cases"])
    for case, whole in zip(data["bench"]["cases"], result["cases"]):
        assert case == {**{key: whole[key] for key in shown}, "energy": {"per": whole["energy"]["per"]}}
    assert all(len(case["latency"]["distribution_seconds"]) > 1 for case in data["bench"]["cases"])
    assert "SIMULATED" in page.split('id="data"')[0]
    assert result["schema"] == "jouleprof.bench/1"
    assert [case["batch"] for case in result["cases"]] == [2, 5]
    for case in result["cases"]:
        profile = case["energy"]["profile"]
        seconds, iterations = profile["duration_seconds"], case["iterations"]
        assert seconds >= 1 and iterations >= 1
        each = row(case, "iteration")
        assert each["device"]["provenance"] == "simulated"
        assert each["device"]["energy_joules"] == pytest.approx(WATTS * seconds / iterations, rel=1e-3)
        # The blocks are within the window, and each iteration sleeps.
        latency = case["latency"]
        assert 1e-3 * case["batch"] * iterations <= latency["mean_seconds"] * iterations <= seconds
        assert latency["p50_seconds"] >= 1e-3 * case["batch"]
        assert latency["p50_seconds"] <= latency["p90_seconds"] <= latency["p99_seconds"]
        sample = row(case, "sample")
        assert sample["count"] == case["batch"] * iterations
        assert sample["device"]["energy_joules"] * case["batch"] == pytest.approx(
            each["device"]["energy_joules"], rel=1e-6)
        # All of this GPU's power is there at rest, so that nothing is left for the work.
        assert each["rest"]["energy_joules"] == pytest.approx(each["device"]["energy_joules"], rel=0.01)
        parts = [each[name]["energy_joules"] for name in ("rest", "held", "active")]
        assert sum(parts) == pytest.approx(each["device"]["energy_joules"], abs=1e-8)
        assert case["macs"] is None and "nothing to count" in case["macs_reason"]
    # The recording is kept, with its windows.
    report = json.loads(subprocess.run([TOOL, "report", str(path), "--json"], check=True,
                                       stdout=subprocess.PIPE).stdout)
    names = {window["name"] for window in report["windows"]}
    assert {case["window"] for case in result["cases"]} <= names


def test_text_and_csv_have_the_same_case(machine):
    machine.gpus(CONSTANT, CONSTANT)
    arguments = ("bench_workloads:short", "--device", "cuda:0", *QUICK)
    text = bench(*arguments)
    assert "SIMULATED" in text.stdout and "bench_workloads:short, eager, batch 1" in text.stdout
    assert "talk of the workload" in text.stderr and "talk of the workload" not in text.stdout
    assert "gpu0" in text.stdout and "gpu1" not in text.stdout  # gpu1 does not do the work
    rows = list(csv.DictReader(bench(*arguments, "--csv").stdout.splitlines()))
    assert [r["unit"] for r in rows] == ["iteration", "sample"]
    for r in rows:
        assert None not in r and None not in r.values()  # as many fields as columns
        # The window contains the blocks, and little else.
        assert WATTS * 0.99 <= float(r["energy_joules"]) / float(r["mean_seconds"]) <= WATTS * 2
        assert float(r["mean_watts"]) == pytest.approx(WATTS, rel=1e-3)
        assert r["macs"] == "" and r["provenance"] == "simulated"


def test_monitor_shows_the_power_while_bench_runs(machine):
    machine.gpus(CONSTANT)
    rows = []
    with bench_running() as done:
        while done.poll() is None and not rows:
            text = subprocess.run([TOOL, "monitor", "--format", "dmon", "-s", "p", "-c", "1", "-d", "100ms"],
                                  check=True, stdout=subprocess.PIPE, text=True).stdout
            rows += [line.split() for line in text.splitlines() if not line.startswith("#")]
    assert done.returncode == 0
    assert [row[:2] for row in rows] == [["0", str(WATTS)]]


def test_without_a_gpu_the_processor_is_the_device(machine):
    case = json.loads(bench("bench_workloads:short", *QUICK, "--json").stdout)["cases"][0]
    assert case["device"] == "cpu"
    each = row(case, "iteration")
    assert each["held"] is None
    if each["device"] is not None:  # where this machine's processor has an estimate at all
        assert each["device"]["provenance"] in ("measured", "estimated")


@pytest.mark.parametrize("arguments, words", [
    (["deit-x"], "is no workload; give one of bert-b"),
    ([":step"], "is no workload; give one of bert-b"),
    (["bench_workloads", "--device", "cuda:0"], "is no workload; give one of bert-b"),  # and not a word of CUDA
    (["bench_workloads:coroutine"], "an iteration returns a coroutine, which has not done its work yet"),
    (["bench_workloads:generator"], "an iteration returns a generator, which has not done its work yet"),
    (["no_such_module:make"], "there is no module 'no_such_module'"),
    (["bench_workloads:absent"], "has no function 'absent'"),
    (["bench_workloads:no_callable"], "returned int"),
    (["bench_workloads:short", "--mode", "compile"], "is a function"),
    ([], "give one workload"),
    (["deit-b", "--target-rel", "no"], "such as 1%"),
    (["deit-b", "--min-time", "0s"], "give a time above 0"),
    (["deit-b", "--mode", "fly"], "--mode"),
])
def test_what_cannot_be_measured_says_why(machine, arguments, words):
    assert words in bench(*arguments, "--idle", "0s", "--seed", "7", status=2).stderr


def test_a_gpu_that_is_not_there_is_refused(machine):
    machine.gpus(CONSTANT)
    done = bench("bench_workloads:short", "--device", "cuda:3", "--idle", "0s", "--seed", "7", status=2)
    assert "there is no cuda:3: GPUs 0 to 0 are visible" in done.stderr


def test_the_energy_of_others_is_not_that_of_a_gpu_without_a_sensor(machine, monkeypatch):
    machine.gpus(CONSTANT)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    case = json.loads(bench("bench_workloads:short", "--device", "cuda:0", *QUICK, "--json").stdout)["cases"][0]
    each = row(case, "iteration")
    assert case["energy_device"] is None and each["device"] is None and each["total"] is None


def test_a_missing_pytorch_is_named_and_not_its_devices(machine):
    (machine.folder / "torch.py").write_text("raise ImportError('none here')\n")
    done = subprocess.run([TOOL, "bench", "deit-b", "--device", "cuda:0", "--idle", "0s", "--python", sys.executable],
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(
                              [str(machine.folder), *filter(None, [os.environ.get("PYTHONPATH")])])},
                          stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 2 and "PyTorch is missing; install it with" in done.stderr, done.stderr
    assert "finds no CUDA" not in done.stderr


def test_a_workload_that_fails_ends_with_its_status(machine):
    done = bench("bench_workloads:failing", "--batch", "2", "--idle", "0s", status=1)
    assert "broken on purpose" in done.stderr and "without a result" in done.stderr
    assert done.stdout == ""


def test_cases_before_a_failure_are_kept(machine):
    done = bench("bench_workloads:failing", "--batch", "1,2", *QUICK, "--json", status=1)
    assert "broken on purpose" in done.stderr
    assert [case["batch"] for case in json.loads(done.stdout)["cases"]] == [1]
