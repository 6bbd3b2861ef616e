"""One script on the real ZeusMonitor and on ours."""

import csv
import dataclasses
import errno
import importlib.util
import json
import os
import pathlib
import pickle
import subprocess
import sys
import time
import warnings

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
        # On a busy machine a read comes up to 30 ms late.
        assert joules == pytest.approx(watts * seconds, rel=0.05, abs=0.03 * watts)


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


def test_end_does_not_wait_and_neither_do_figures(monitor, monkeypatch):
    waited = []
    real = jouleprof.Window.wait
    monkeypatch.setattr(jouleprof.Window, "wait", lambda self, timeout=None: waited.append(timeout) or real(self, timeout))
    time.sleep(0.3)
    monitor.begin_window("x", sync_execution=False)
    time.sleep(0.05)
    m = monitor.end_window("x", sync_execution=False)
    truth = 250 * m.time
    assert not m.settled and None not in waited
    early = m.jouleprof["gpu0"]
    assert early.method == "provisional" and early.low <= truth <= early.high
    assert m.total_energy == pytest.approx(truth, rel=0.1)
    m.wait()
    settled = m.jouleprof["gpu0"]
    assert m.settled and settled.provenance == "simulated" and settled.method != "provisional"
    assert settled.error < early.error
    assert m.total_energy == pytest.approx(truth, rel=0.05) == settled.joules
    assert m.soc_energy is None
    assert pickle.loads(pickle.dumps(m)) == m
    assert dataclasses.asdict(m)["gpu_energy"] == m.gpu_energy
    with pytest.raises(AttributeError):
        m.nothing


def test_a_provisional_figure_says_so(monitor, monkeypatch):
    monkeypatch.setattr("jouleprof.zeus._figures._has_warned", False)
    time.sleep(0.3)
    monitor.begin_window("x", sync_execution=False)
    time.sleep(0.05)
    m = monitor.end_window("x", sync_execution=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        text, energy = repr(m), m.gpu_energy
        assert m.total_energy == energy[0]
    assert text.count("(provisional)") >= 1 and str(energy).endswith("(provisional)")
    assert energy == {0: energy[0]}  # as a plain dict
    [warning] = caught
    assert "wait=True" in str(warning.message) and warning.filename == __file__
    m.wait()
    assert "provisional" not in repr(m) and "provisional" not in str(m.gpu_energy)


def test_a_monitor_that_waits_has_final_figures(machine):
    machine.gpus(CONSTANT)
    monitor = ZeusMonitor(gpu_indices=[0], wait=True)
    monitor.begin_window("x", sync_execution=False)
    time.sleep(0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m = monitor.end_window("x", sync_execution=False)
        assert m.settled and "provisional" not in repr(m)
        assert m.total_energy == pytest.approx(250 * m.time, rel=0.05)
    monitor.monitor.close()


def test_reading_the_state_of_an_open_window_never_waits(monitor, monkeypatch):
    asked = []
    real = jouleprof.Monitor.between
    monkeypatch.setattr(jouleprof.Monitor, "between", lambda self, *a, **k: asked.append(k) or real(self, *a, **k))
    time.sleep(0.3)
    monitor.begin_window("x", sync_execution=False)
    state = monitor.measurement_states["x"]
    energy = state.gpu_energy
    assert all(options.get("timeout") == 0 for options in asked) and asked
    truth = 250 * (state.window._host_begin() - state._opened) * 1e-9
    assert energy[0] == pytest.approx(truth, rel=0.3) and str(energy).endswith("(provisional)")
    time.sleep(0.3)
    assert state.gpu_energy[0] == pytest.approx(truth, rel=0.1) and "provisional" not in str(state.gpu_energy)


def test_a_provisional_interval_contains_a_step_of_power(machine):
    """From 100 to 600 W within what the sensors have not reported."""
    from conftest import SQUARE

    square = ZeusMonitor(gpu_indices=[0]) if machine.gpus(SQUARE) else None
    time.sleep(0.5)
    for _ in range(12):
        square.begin_window("x", sync_execution=False)
        time.sleep(0.1)
        m = square.end_window("x", sync_execution=False)
        early = m.jouleprof["gpu0"]
        truth = m.wait().jouleprof
        true = machine.truth(truth.begin, truth.end)
        assert early.low <= true <= early.high, (early, true)
    square.monitor.close()


def test_a_copy_is_settled(monitor):
    monitor.begin_window("x", sync_execution=False)
    m = monitor.end_window("x", sync_execution=False)
    assert pickle.loads(pickle.dumps(m)).gpu_energy == m.jouleprof.gpu_energy
    assert m.settled


def test_estimates_are_no_plain_numbers(monitor):
    monitor.begin_window("x", sync_execution=False)
    m = monitor.end_window("x", sync_execution=False).wait()
    whole = m.jouleprof
    sensors = [e for e in whole.values() if e.domain.kind == "cpu"
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
    m = monitor.end_window("x", sync_execution=None).wait()
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
    assert path.read_text().splitlines()[1].startswith(f"{begun(path)},")  # it is there
    m.wait()
    assert set(m.gpu_energy) == {0} and m.total_energy is None
    assert pickle.loads(pickle.dumps(m)).total_energy is None
    with pytest.raises(KeyError, match="GPU 1 has no energy of this window: .+"):
        m.gpu_energy[1]
    monitor._log.close()
    with open(path, encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["window_name"] == 'a,"b'
    assert float(row["gpu0_energy"]) == m.gpu_energy[0]
    assert row["gpu1_energy"] == ""
    monitor.monitor.close()


def test_a_row_keeps_its_time_when_the_monitor_is_closed_at_once(machine):
    path = machine.gpus(CONSTANT).folder / "log.csv"
    monitor = ZeusMonitor(gpu_indices=[0], cpu_indices=[], log_file=path)
    monitor.begin_window("x", sync_execution=False)
    time.sleep(0.05)
    m = monitor.end_window("x", sync_execution=False)
    monitor.monitor.close()
    assert m.time >= 0.05
    with pytest.raises(jouleprof.Unavailable, match="closed"):
        m.gpu_energy  # noqa: B018
    monitor._log.close()
    with open(path, encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    # A slow machine may know the energy before the monitor is closed.
    assert row["window_name"] == "x" and (not row["gpu0_energy"] or float(row["gpu0_energy"]) > 0)
    assert float(row["elapsed_time"]) == m.time


def test_a_full_disk_ends_no_training_and_later_rows_bring_those_that_are_missing(machine, monkeypatch):
    path = machine.gpus(CONSTANT).folder / "log.csv"
    monitor = ZeusMonitor(gpu_indices=[0], cpu_indices=[], log_file=path)
    write, room = os.pwrite, path.stat().st_size + 5

    def pwrite(file, data, place):
        if data and place >= room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, data[:room - place], place)

    def window(name):
        monitor.begin_window(name, sync_execution=False)
        time.sleep(0.05)
        return monitor.end_window(name, sync_execution=False)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.warns(RuntimeWarning, match="log.csv lacks rows, which could not be written"):
        found = [window("a"), window("b")]
    while monitor._log._open_rows:  # their energies are final
        time.sleep(0.01)
    assert monitor._log._unwritten.count(b"\n") == 2
    room = sys.maxsize
    found.append(window("c"))
    monitor._log.close()
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["window_name"] for row in rows] == ["a", "b", "c"]
    assert [float(row["gpu0_energy"]) for row in rows] == [m.gpu_energy[0] for m in found]
    monitor.monitor.close()


def test_the_record_can_be_made_by_hand():
    m = Measurement(time=1.0, gpu_energy={0: 2.0, 1: 3.0})
    assert (m.total_energy, m.cpu_energy, m.jouleprof) == (5.0, None, None)
    assert m == Measurement(1.0, {0: 2.0, 1: 3.0}, None, None)
    assert isinstance(jouleprof.InvalidArgument("x"), ValueError)


def begun(path):
    return path.read_text().splitlines()[1].split(",")[0]


def test_the_optimizer_of_hugging_face_has_its_name():
    code = """
import sys, types
sys.modules["transformers"] = types.ModuleType("transformers")
sys.modules["transformers"].TrainerCallback = object
from jouleprof.zeus.optimizer.power_limit import HFGlobalPowerLimitOptimizer
import jouleprof.callbacks
assert HFGlobalPowerLimitOptimizer is jouleprof.callbacks.HuggingFacePowerLimitOptimizer
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_state_of_an_open_window(monitor):
    before = time.time()
    monitor.begin_window("x", sync_execution=False)
    state = monitor.measurement_states["x"]
    assert before <= state.time <= time.time()
    time.sleep(0.2)
    monitor.begin_window("y", sync_execution=False)
    later = monitor.measurement_states["y"]
    assert later.gpu_energy[0] - state.gpu_energy[0] == pytest.approx(
        250 * (later.window._host_begin() - state.window._host_begin()) * 1e-9, rel=0.1)
    assert (state.cpu_energy is None) == (monitor.cpu_indices == [])


def test_devices_by_number(monitor):
    assert len(monitor.gpus) == 1 and monitor.gpus.get_name(0)
    time.sleep(0.5)
    assert monitor.gpus.get_instant_power_usage(0) == pytest.approx(250e3, rel=0.05)
    first = monitor.gpus.gpus[0].get_total_energy_consumption()
    time.sleep(0.3)
    assert monitor.gpus.get_total_energy_consumption(0) > first
    with pytest.raises(jouleprof.Unsupported, match="jouleprof sweep"):
        monitor.gpus.gpus[0].set_power_management_limit(1)
    assert list(monitor.cpu_indices) == [cpu.cpu_index for cpu in monitor.cpus.cpus]


ENDS = """
import os, sys, time
from jouleprof.zeus.monitor.energy import ZeusMonitor
monitor = ZeusMonitor(gpu_indices=[0], log_file=sys.argv[1])
monitor.begin_window("x", sync_execution=False)
time.sleep(0.2)
monitor.end_window("x", sync_execution=False)
if sys.argv[2] == "at once":
    os._exit(0)
"""
FORKS = """
import multiprocessing, sys, time
def child():
    from jouleprof.zeus import ZeusMonitor
    monitor = ZeusMonitor(gpu_indices=[0], log_file=sys.argv[1])
    monitor.begin_window("x", sync_execution=False)
    time.sleep(0.2)
    monitor.end_window("x", sync_execution=False)
process = multiprocessing.get_context("fork").Process(target=child)
process.start()
process.join()
"""


@pytest.mark.parametrize("how", ["normally", "at once", "forked"])
def test_a_row_is_there_when_the_program_ends(machine, how):
    """Its energy, too, where the program ends in order."""
    path = machine.gpus(CONSTANT).folder / "log.csv"
    subprocess.run([sys.executable, "-c", FORKS if how == "forked" else ENDS, str(path), how], check=True, timeout=60)
    with open(path, encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    assert row["window_name"] == "x" and float(row["elapsed_time"]) >= 0.2
    if how == "at once":
        assert row["gpu0_energy"] == ""
    else:
        assert float(row["gpu0_energy"]) == pytest.approx(250 * float(row["elapsed_time"]), rel=0.05)


def test_a_forked_child_leaves_the_log_alone(machine):
    path = machine.gpus(CONSTANT).folder / "log.csv"
    monitor = ZeusMonitor(gpu_indices=[0], cpu_indices=[], log_file=path)

    def measure(name):
        monitor.begin_window(name, sync_execution=False)
        monitor.end_window(name, sync_execution=False)

    measure("first")
    child = os.fork()
    if child == 0:
        try:
            time.sleep(0.5)
            measure("child's")
        finally:
            os._exit(0)
    measure("second")
    os.waitpid(child, 0)
    monitor._log.close()
    monitor.monitor.close()
    with open(path, encoding="utf-8") as file:
        assert [row["window_name"] for row in csv.DictReader(file)] == ["first", "second"]


def test_an_estimate_is_no_plain_number_of_a_package(machine):
    """Not while it is provisional, either."""
    machine.gpus(CONSTANT)
    monitor = ZeusMonitor(gpu_indices=[0], cpu_indices=[0])
    monitor.begin_window("x", sync_execution=False)
    time.sleep(0.5)
    m = monitor.end_window("x", sync_execution=False)
    assert not m.settled
    assert set(m.cpu_energy or ()) == set(monitor.cpus.indices) == set(m.wait().cpu_energy or ())
    monitor.monitor.close()


def test_many_rows_are_in_order_and_complete(monitor, tmp_path):
    from jouleprof.zeus._log import Log

    monitor._log = log = Log(tmp_path / "log.csv", [0])
    for i in range(40):
        monitor.begin_window(f"w{i}", sync_execution=False)
        time.sleep(0.01)
        monitor.end_window(f"w{i}", sync_execution=False)
        with log._changed:  # reading is not one step
            rows = (tmp_path / "log.csv").read_text().splitlines()
        assert len(rows) == i + 2 and rows[-1].split(",")[1] == f"w{i}"
    log.close()
    with open(tmp_path / "log.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["window_name"] for row in rows] == [f"w{i}" for i in range(40)]
    assert all(float(row["gpu0_energy"]) > 0 for row in rows)


def test_a_gpu_that_was_lost_a_while_ago_has_no_provisional_energy(machine):
    machine.gpus(CONSTANT, faults={"kind": "gpu_lost", "at_seconds": 0.5})
    monitor = ZeusMonitor(gpu_indices=[0])
    time.sleep(6)
    monitor.begin_window("x", sync_execution=False)
    time.sleep(0.1)
    m = monitor.end_window("x", sync_execution=False)
    assert m.gpu_energy == {} and m.total_energy is None
    monitor.monitor.close()
