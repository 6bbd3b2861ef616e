"""LayerProfiler and KernelProfiler on real models, on this machine's CPU (docs/layers.md). What they
do on a GPU is shown by tests/gpu/profilers.py."""

import json
import os
import pathlib
import subprocess
import sys
import types

import pytest
import jouleprof
from jouleprof import _native
from jouleprof.torch import LayerProfiler, _tracing

CASES = pathlib.Path(__file__).parent / "profiler_cases.py"


def run(case, folder):
    """The object that the case printed, and the finished process."""
    pytest.importorskip("torch", reason="this Python has no PyTorch")
    for name in ("JOULEPROF_INJECT", "JOULEPROF_TOOL"):
        if name not in os.environ:
            pytest.skip(f"{name} is not set")
    done = subprocess.run([sys.executable, str(CASES), case], capture_output=True, text=True,
                          cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done


def test_one_run_is_repeated_until_it_is_measurable(tmp_path):
    found, done = run("plain", tmp_path)
    stats = found["stats"]
    assert stats["runs"] > 1 and stats["runs"] * stats["execution_time_s"] >= 1.5
    assert found["calls"] == {"Sequential": 1, "0": 1, "1": 1, "2": 1}  # of one run
    assert all(energy >= 0 for energy in found["energies"])
    assert found["html"].count("<tr>") == 5
    if isinstance(found["table"], str):
        assert "pip install" in found["table"]
    else:
        assert found["table"]["columns"] == ["calls", "duration_ms_mean", "energy_j_mean", "energy_j_low", "energy_j_high"]
        assert sum(found["table"]["joules"].values()) == pytest.approx(sum(found["energies"]))
    assert "LAYER PROFILING SUMMARY" in done.stdout and done.stderr == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "layer_power_profile.csv", "layer_power_profile_top10_energy.csv", "other_top10_energy.csv"]
    assert "Layer results saved to layer_power_profile.csv\n" in done.stdout
    assert "Top 10 layer energy consumers saved to other_top10_energy.csv\n" in done.stdout


def test_without_a_budget_the_number_of_runs_is_exact(tmp_path):
    found, _ = run("exact", tmp_path)
    assert found["stats"]["runs"] == 7
    file = str(tmp_path / "kept.jprof")  # the command line analyses it in the same way
    for by in ("layer", "phase"):
        command = [os.environ["JOULEPROF_TOOL"], "report", file, "--by", by, "--json"]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert _native.report_activity(file, by)[0] == printed
    assert _native.report_activity(file, "colour") == (4, "by must be kernel, layer, range or phase")


def test_other_processes_of_a_group_do_not_wait(tmp_path):
    found, _ = run("peers", tmp_path)
    assert found["stats"]["runs"] == 2
    assert any("torch.distributed group" in warning for warning in found["warnings"])


def test_rounds_of_re_runs_are_in_no_figure(tmp_path):
    found, done = run("rounds", tmp_path)
    runs = found["stats"]["runs"]
    first, second = found["looks"]
    assert first["0"] == second["0"] == runs
    assert found["calls"]["0"] == 1 and found["same"]
    assert found["asked"][0] == 0.3 and found["asked"][1] == 0.6
    assert done.stderr.startswith("jouleprof: 1 with 5 % of the energy or more not within ±10 %: 0;")
    assert done.stderr.count("\n") == 1


def test_kernels_need_a_gpu(tmp_path):
    pytest.importorskip("torch")
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    assert "LayerProfiler works on CPUs too" in run("no_gpu", tmp_path)[0]


def report(*devices, warnings=()):
    return types.SimpleNamespace(devices=[{"domain": "gpu" if name.startswith("gpu") else "cpu",
                                           "device": name} for name in devices],
                                 warnings=list(warnings))


@pytest.mark.parametrize("is_cuda, index, found, words", [
    (True, None, report("package-0", warnings=["CUPTI is missing"]), "CUPTI is missing"),
    (True, None, report("package-0"), "no kernel was traced"),
    (True, 1, report("gpu0", "package-0"), "no rows of gpu1: the model ran on gpu0"),
    (True, 0, report("gpu0", "package-0"), None),
    (False, None, report("package-0"), None),
])
def test_missing_rows_of_a_gpu_have_a_reason(is_cuda, index, found, words):
    model = types.SimpleNamespace(parameters=lambda: [types.SimpleNamespace(is_cuda=is_cuda)])
    profiler = LayerProfiler(model, index, tool="unused")
    chosen = profiler._chosen(found)
    assert [device["device"] for device in chosen] == (
        ["package-0"] if words else [device["device"] for device in found.devices])
    warnings = profiler._missing_gpu(chosen, found)
    assert (words is None) == (warnings == [])
    assert words is None or words in warnings[0]


def test_a_file_that_is_no_recording_is_an_error(tmp_path):
    with pytest.raises(RuntimeError, match="no layers: .*none.jprof"):
        _tracing.Report(tmp_path / "none.jprof", "layer")


@pytest.mark.parametrize("options", [
    {"num_runs": 0}, {"num_runs": "x"}, {"num_runs": 1.5}, {"warmup": -1}, {"warmup": "x"}, {"max_seconds": float("nan")},
    {"max_seconds": "x"}, {"replay": -1}, {"replay": "x"},
])
def test_numbers_of_nonsense(options):
    model = types.SimpleNamespace(parameters=list)
    with pytest.raises(jouleprof.InvalidArgument, match=f"{next(iter(options))} must be . or more, not"):
        LayerProfiler(model, tool="unused").profile(None, **options)
    with pytest.raises(jouleprof.InvalidArgument, match="takes a torch.nn.Module, not 5"):
        LayerProfiler(5, tool="unused")
