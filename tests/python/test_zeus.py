"""One script on the real ZeusMonitor and on ours."""

import csv
import dataclasses
import importlib.util
import json
import os
import pathlib
import pickle
import subprocess
import sys
import time

import pytest

import jouleprof
from conftest import CONSTANT, SIM
from jouleprof.zeus import Measurement, ZeusMonitor

SCRIPT = pathlib.Path(__file__).with_name("zeus_script.py")
DEVICES = [CONSTANT, {**CONSTANT, "idle_watts": 400}]


def run(machine, python, module):
    """The script's answer; both kinds of program find the simulated GPUs."""
    library = pathlib.Path(SIM).parent / "lib"
    done = subprocess.run(
        [python, str(SCRIPT), module, str(machine.folder / f"{module}.csv")],
        env={**os.environ, "LD_LIBRARY_PATH": str(library)}, check=False, timeout=120,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout[done.stdout.index('{"seen"'):])


def check_joules(answer, one_watts=400):
    for name, watts in (("inner", 650), ("overlapping", 650), ("outer", 650), ("one", one_watts)):
        seconds, joules, _ = answer["joules"][name]
        assert joules == pytest.approx(watts * seconds, rel=0.05)


@pytest.fixture
def real_python():
    """An interpreter that has Zeus: this one, or JOULEPROF_ZEUS_PYTHON."""
    python = os.environ.get("JOULEPROF_ZEUS_PYTHON")
    if python:
        return python
    if importlib.util.find_spec("zeus") is None:
        pytest.skip("the Python module zeus is missing: pip install zeus, or set "
                    "JOULEPROF_ZEUS_PYTHON to an interpreter that has it")
    return sys.executable


@pytest.mark.parametrize("visible", [None, "1,0"])
def test_the_same_script_on_both(machine, real_python, monkeypatch, visible):
    machine.gpus(*DEVICES)
    if visible:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    ours = run(machine, sys.executable, "jouleprof.zeus")
    theirs = run(machine, real_python, "zeus.monitor")
    assert ours["seen"] == theirs["seen"]
    assert {k: set(v[2]) for k, v in ours["joules"].items()} == {
        k: set(v[2]) for k, v in theirs["joules"].items()}
    check_joules(ours, one_watts=250 if visible else 400)


def test_the_script_alone(machine):
    """What it shall show, where Zeus is not at hand."""
    answer = run(machine.gpus(*DEVICES), sys.executable, "jouleprof.zeus")
    check_joules(answer)
    seen = answer["seen"]
    assert seen["columns"] == [
        "start_time", "window_name", "elapsed_time", "gpu0_energy", "gpu1_energy"]
    assert seen["names"] == ["overlapping", "outer"]
    assert seen["waited"] == [0, 1] * 4
    assert [seen[k] for k in ("begun twice", "ended twice", "never begun", "reset")] == [
        "ValueError"] * 4
    assert (seen["no such gpu"], seen["unknown framework"]) == ("IndexError", "RuntimeError")


@pytest.fixture
def monitor(machine):
    monitor = ZeusMonitor(gpu_indices=[0]) if machine.gpus(CONSTANT) else None
    yield monitor
    monitor.monitor.close()


def test_end_does_not_wait_and_the_figures_come_when_read(monitor):
    monitor.begin_window("x", sync_execution=False)
    time.sleep(0.05)
    m = monitor.end_window("x", sync_execution=False)
    assert "gpu_energy" not in vars(m)
    assert m.total_energy == pytest.approx(250 * m.time, rel=0.05)
    assert m.jouleprof["gpu0"].provenance == "simulated"
    assert m.soc_energy is None
    assert pickle.loads(pickle.dumps(m)) == m
    assert dataclasses.asdict(m)["gpu_energy"] == m.gpu_energy
    with pytest.raises(AttributeError):
        m.nothing


def test_estimates_are_no_plain_numbers(monitor):
    monitor.begin_window("x", sync_execution=False)
    m = monitor.end_window("x", sync_execution=False)
    whole = m.jouleprof
    sensors = [e for e in whole.energies if e.domain.kind == "cpu"
               and e.provenance in ("measured", "simulated")]
    assert (m.cpu_energy is None) == (not sensors)


def test_without_torch(monitor, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    monitor.begin_window("x", sync_execution=False)
    with pytest.raises(RuntimeError, match="PyTorch is missing"):
        monitor.begin_window("x", restart=True)
    with pytest.raises(ValueError):
        monitor.end_window("x")


def test_marks_instead_of_waiting(monitor, monkeypatch):
    from marks_cases import Host

    torch = Host.torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    monitor.begin_window("x", sync_execution=None)
    m = monitor.end_window("x", sync_execution=None)
    assert m.jouleprof.edges == "device" and torch.cuda.synchronised == []


@pytest.mark.parametrize("framework", ["jax", "cupy"])
def test_other_frameworks(machine, monkeypatch, framework):
    import types

    waited = []
    jax = types.ModuleType("jax")
    jax.devices = lambda kind: [f"{kind}0"]
    jax.device_put = lambda value, device: Number(device)
    jax.block_until_ready = waited.extend
    cupy = types.ModuleType("cupy")
    cupy.cuda = types.SimpleNamespace(
        Device=lambda i: types.SimpleNamespace(synchronize=lambda: waited.append(f"gpu{i}")))
    monkeypatch.setitem(sys.modules, framework, {"jax": jax, "cupy": cupy}[framework])
    machine.gpus(CONSTANT)
    monitor = ZeusMonitor(gpu_indices=[0], sync_execution_with=framework)
    monitor.begin_window("x")
    assert waited == (["gpu0", "cpu0"] if framework == "jax" else ["gpu0"])
    monitor.monitor.close()


class Number(str):
    def __add__(self, other):
        return self


def test_the_log_quotes_and_leaves_missing_cells_empty(machine):
    machine.gpus(CONSTANT, CONSTANT,
                 faults={"kind": "gpu_lost", "device": 1, "at_seconds": 0.5})
    path = machine.folder / "new" / "log.csv"
    monitor = ZeusMonitor(cpu_indices=[], log_file=path)
    time.sleep(1)
    monitor.begin_window('a,"b', sync_execution=False)
    time.sleep(0.1)
    m = monitor.end_window('a,"b', sync_execution=False)
    assert set(m.gpu_energy) == {0} and m.total_energy is None
    monitor._log.close()
    with open(path, encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["window_name"] == 'a,"b'
    assert float(row["gpu0_energy"]) == m.gpu_energy[0]
    assert row["gpu1_energy"] == ""
    monitor.monitor.close()


def test_the_record_can_be_made_by_hand():
    m = Measurement(time=1.0, gpu_energy={0: 2.0, 1: 3.0})
    assert (m.total_energy, m.cpu_energy, m.jouleprof) == (5.0, None, None)
    assert m == Measurement(1.0, {0: 2.0, 1: 3.0}, None, None)
    assert isinstance(jouleprof.InvalidArgument("x"), ValueError)
