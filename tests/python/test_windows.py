"""Windows on simulated GPUs whose true energy is known."""

import asyncio
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings

import pytest

import jouleprof
from conftest import CONSTANT, SQUARE


def holds(energy, true):
    """Whether the truth lies in the 95 % interval, of a figure that says it is simulated."""
    assert energy.provenance == "simulated"
    return energy.low <= true <= energy.high


def test_importing_needs_nothing():
    code = "import jouleprof, sys; assert 'torch' not in sys.modules; print(jouleprof.__version__)"
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("seconds", [0.01, 0.1, 0.5])
def test_constant_power(gpu, seconds):
    with gpu.window("x") as w:
        time.sleep(seconds)
    m = w.energy
    assert m.name == "x" and m.edges == "host"
    assert m.time == w.time >= seconds
    assert m.end - m.begin == round(m.time * 1e9)
    assert holds(m["gpu0"], 250 * m.time)
    assert m["gpu0"].joules == pytest.approx(250 * m.time, rel=0.05)
    assert m["gpu0"].error > m["gpu0"].repeatability > 0
    assert m["gpu0"].sensor and m["gpu0"].method
    assert m.total.provenance == "simulated"
    assert m.gpu_energy == {0: m["gpu0"].joules}
    assert m.total_energy == m["gpu0"].joules
    assert w.gpu_energy == m.gpu_energy and w.total_energy == m.total_energy
    assert w.energy is m


def test_square_power(machine):
    monitor = machine.gpus(SQUARE).monitor("gpu0")
    time.sleep(0.3)
    for seconds in (0.25, 0.8):
        with monitor.window("x") as w:
            time.sleep(seconds)
        m = w.energy
        true = machine.truth(m.begin, m.end)
        assert holds(m["gpu0"], true)
        assert m["gpu0"].joules == pytest.approx(true, rel=0.1)


def test_nested_and_overlapping(gpu):
    with gpu.window("outer") as outer:
        with gpu.window("left") as left:
            time.sleep(0.05)
        gpu.begin_window("early")
        time.sleep(0.05)
        gpu.begin_window("late")
        time.sleep(0.05)
        early = gpu.end_window("early")
        time.sleep(0.05)
        late = gpu.end_window("late")
    parts = [w.energy["gpu0"].microjoules for w in (left, early)]
    assert sum(parts) <= outer.energy["gpu0"].microjoules
    assert early.energy.end > late.energy.begin
    for w in (outer, left, early, late):
        assert holds(w.energy["gpu0"], 250 * w.time)


def test_a_split_window_conserves_energy_exactly(gpu):
    a = gpu.now()
    time.sleep(0.07)
    b = gpu.now()
    time.sleep(0.11)
    c = gpu.now()
    parts = [gpu.between(a, b), gpu.between(b, c)]
    whole = gpu.between(a, c)
    assert sum(p["gpu0"].microjoules for p in parts) == whole["gpu0"].microjoules


def test_a_window_is_asked_for_too_early_or_twice(gpu):
    w = gpu.window("x")
    with pytest.raises(jouleprof.InvalidArgument, match="not begun"):
        w.energy
    with w:
        with pytest.raises(jouleprof.InvalidArgument, match="still open"):
            w.energy
        with pytest.raises(jouleprof.InvalidArgument, match="still open"):
            w.time
    with pytest.raises(jouleprof.InvalidArgument, match="begun before"):
        w.__enter__()
    with pytest.raises(TypeError, match="pickle its"):
        pickle.dumps(w)
    assert pickle.loads(pickle.dumps(w.energy)) == w.energy


def test_an_exception_ends_the_window(gpu):
    with pytest.raises(ZeroDivisionError):
        with gpu.window("x") as w:
            raise ZeroDivisionError
    assert w.time > 0


def test_a_window_ends_once_and_only_after_it_has_begun(gpu):
    w = gpu.window("x").__enter__()
    w.__exit__(None, None, None)
    length = w.time
    w.__exit__(None, None, None)
    assert w.time == length and gpu.total("x").count == 1
    never = gpu.window("never")
    with pytest.raises(jouleprof.InvalidArgument, match="'never' has not begun"):
        never.__exit__(None, None, None)
    with pytest.raises(jouleprof.NotFound):
        gpu.total("never")


def test_a_gpu_that_fails_while_it_is_waited_for_loses_no_window(gpu, monkeypatch):
    def fail():
        raise RuntimeError("CUDA error")

    monkeypatch.setattr(gpu, "_synchronise", fail)
    with pytest.raises(RuntimeError):
        gpu.begin_window("begun", sync_execution=True)
    gpu.begin_window("begun")  # that one was never open
    with pytest.raises(RuntimeError):
        gpu.end_window("begun", sync_execution=True)
    assert gpu.end_window("begun").time > 0
    monkeypatch.setattr(gpu, "_synchronise", lambda: True)
    with pytest.raises(RuntimeError):
        with gpu.window("left", sync_execution=True) as left:
            left._mode = fail
    assert left.edges == "host" and left.time > 0 and gpu.total("left").count == 1


def test_keys(gpu):
    gpu.begin_window("x")
    with pytest.raises(ValueError, match="'x' is open already"):
        gpu.begin_window("x")
    time.sleep(0.05)
    gpu.begin_window("x", restart=True)
    w = gpu.end_window("x")
    assert w.time < 0.05
    with pytest.raises(ValueError, match="no window 'x'"):
        gpu.end_window("x")
    gpu.begin_window("y", restart=True)
    assert gpu.end_window("y", cancel=True) is None
    with pytest.raises(ValueError):
        gpu.end_window("y")
    with pytest.raises(jouleprof.NotFound):
        gpu.total("y")


def test_each_thread_has_a_stack(gpu):
    gpu.push_window()
    pushed, popped = threading.Event(), threading.Event()

    def work():
        gpu.push_window()
        pushed.set()
        popped.wait()
        gpu.pop_window()

    other = threading.Thread(target=work)
    before = gpu.now()
    other.start()
    pushed.wait()
    mine = gpu.pop_window()
    popped.set()
    other.join()
    assert mine.energy.begin < before
    with pytest.raises(jouleprof.InvalidArgument, match="no window was pushed in this thread"):
        gpu.pop_window()


def test_a_stack_of_windows(gpu):
    gpu.push_window()
    gpu.push_window()
    time.sleep(0.05)
    inner = gpu.pop_window()
    time.sleep(0.05)
    outer = gpu.pop_window()
    assert 0.05 <= inner.time < outer.time
    assert type(outer.energy) is jouleprof.Measurement
    assert float(outer) == pytest.approx(250 * outer.time, rel=0.05)
    assert outer.watts == pytest.approx(250, rel=0.05) and outer["gpu0"].watts == outer.watts
    with pytest.raises(jouleprof.InvalidArgument):
        gpu.pop_window()


def test_an_interval_that_is_not_over_has_no_energy_yet(gpu):
    begin = jouleprof.now()
    with pytest.raises(jouleprof.Timeout, match=r"ends \d+\.\d{3} s in the future"):
        gpu.between(begin, begin + 10**12)
    with pytest.raises(TimeoutError):
        gpu.between(begin, begin + 10**12, timeout=1)
    later = gpu.between(begin, jouleprof.now() + 50_000_000, timeout=30)
    assert later.joules == pytest.approx(250 * later.time, rel=0.1)


def test_tags_are_windows_without_a_gap(gpu):
    with gpu.tagged("load") as tagged:
        time.sleep(0.05)
        tagged.record(tag="train")
        time.sleep(0.1)
    load, train = tagged
    assert (load.name, train.name) == ("load", "train")
    assert train.energy.begin - load.energy.end < 5_000_000
    assert float(train) == pytest.approx(250 * train.time, rel=0.1) and gpu.total("train").count == 1


def test_totals(gpu):
    for _ in range(20):
        with gpu.window("step"):
            time.sleep(0.01)
    total = gpu.total("step")
    assert total.count == total.resolved_count == 20
    assert total.time >= 0.2
    assert holds(total["gpu0"], 250 * total.time)
    assert "20 windows" in str(total) and "20 windows" in repr(total)
    assert pickle.loads(pickle.dumps(total)) == total
    with pytest.raises(jouleprof.NotFound):
        gpu.total("never")


def test_several_gpus_by_their_number(machine, monkeypatch):
    machine.gpus(*({**CONSTANT, "idle_watts": 100 * (i + 1)} for i in range(4)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    for monitor, watts in ((machine.monitor(gpu_indices=[0]), {0: 400}),
                           (machine.monitor(gpu_indices=[1]), {1: 200}),
                           (machine.monitor("gpu"), {0: 400, 1: 200})):
        assert monitor.gpu_indices == sorted(watts) or set(monitor.gpu_indices) == set(watts)
        with monitor.window("x") as w:
            time.sleep(0.1)
        assert w.gpu_energy == {i: pytest.approx(p * w.time, rel=0.05) for i, p in watts.items()}
        monitor.close()
    with pytest.raises(jouleprof.InvalidArgument, match="shows 2"):
        machine.monitor(gpu_indices=[2])


def test_a_wrong_gpu_leaves_an_existing_log_alone(machine):
    """It was opened, and so emptied, before the devices were looked for; and opened again where
    CUDA counts the boards otherwise."""
    path = machine.folder / "run.jprof"
    with machine.gpus(CONSTANT, CONSTANT).monitor(gpu_indices=[1], log=path) as monitor:
        assert monitor.gpu_indices == [1]
    before = path.read_bytes()
    with pytest.raises(jouleprof.InvalidArgument, match="shows 2"):
        machine.monitor(gpu_indices=[2], log=path, overwrite=True)
    assert path.read_bytes() == before


def test_a_snapshot_is_what_is_known_now(gpu):
    time.sleep(0.6)
    snapshot = gpu.snapshot()
    assert [d.domain for d in snapshot.domains] == gpu.domains
    now = snapshot["gpu0"]
    assert now.provenance == now.energy.provenance == "simulated"
    assert now.power == pytest.approx(250, rel=0.05)
    assert now.energy.joules == pytest.approx(250 * now.energy_seconds, rel=0.05)
    assert now.energy.error > now.energy.repeatability >= 0
    assert 0 <= now.age < 5 and snapshot.elapsed > 0.5
    assert gpu.snapshot()["gpu0"].energy.microjoules >= now.energy.microjoules
    assert snapshot["gpu"] is now  # the only one of its kind
    with pytest.raises(jouleprof.NotFound, match="'gpu7'; there are: gpu0"):
        snapshot["gpu7"]


def test_warnings_need_no_log(machine, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "MIG-1234")
    warnings = machine.gpus(CONSTANT, CONSTANT).monitor().warnings
    assert any("MIG-1234" in w for w in warnings)


def test_a_bare_decorator_runs_the_function(gpu, monkeypatch):
    monkeypatch.setattr(jouleprof._live.default, "_monitor", gpu)

    @jouleprof.measure
    def train(n):
        return 2 * n

    @gpu.measure()
    def evaluate(n):
        return 3 * n

    @gpu.measure
    async def serve():
        return "served"

    @jouleprof.measure("named")
    def other():
        return 1

    assert (train(3), train(4), evaluate(2), other(), asyncio.run(serve())) == (6, 8, 6, 1, "served")
    assert train.__name__ == "train"
    assert [gpu.total(name).count for name in ("train", "evaluate", "named", "serve")] == [2, 1, 1, 1]
    for nonsense in (5, b"x", ["x"]):
        with pytest.raises(jouleprof.InvalidArgument, match="text"):
            jouleprof.measure(nonsense)


def test_methods_of_classes_are_measured_above_and_below_their_decorator(gpu):
    class Model:
        @gpu.measure
        @classmethod
        def of_class(cls):
            return cls

        @gpu.measure("named")
        @staticmethod
        def static(value):
            return value

        @classmethod
        @gpu.measure
        def below(cls):
            return cls

    assert Model.of_class() is Model().of_class() is Model().below() is Model
    assert Model.static(1) == Model().static(1) == 1
    assert gpu.total("of_class").count == gpu.total("named").count == 2 and gpu.total("below").count == 1


def test_names_beyond_the_limit_are_said(gpu):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(10_050):
            with gpu.window(f"step {i}"):
                pass
    [warning] = caught
    assert "10,000 names" in str(warning.message) and warning.filename == __file__
    assert any("10,000 names" in text for text in gpu.warnings)
    assert gpu.total("step 9000").count == 1
    with pytest.raises(jouleprof.NotFound, match="10,000"):
        gpu.total("step 10040")
    with gpu.window("step 9000"):  # one of the first stays what it is
        pass
    assert gpu.total("step 9000").count == 2


def test_a_monitor_per_rank(machine, monkeypatch):
    machine.gpus(CONSTANT, {**CONSTANT, "idle_watts": 300})
    for name in ("LOCAL_RANK", "SLURM_LOCALID", "RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.warns(RuntimeWarning, match="rank 0"):
        alone = machine.monitor("rank")
    assert alone.gpu_indices == [0] and any(d.kind == "cpu" for d in alone.domains)
    alone.close()
    monkeypatch.setenv("RANK", "3")  # a launcher that does not say which GPU is whose
    with pytest.raises(jouleprof.InvalidArgument, match="LOCAL_RANK"):
        machine.monitor("rank")
    monkeypatch.delenv("RANK")
    kinds = []
    for rank in (0, 1):
        monkeypatch.setenv("LOCAL_RANK", str(rank))
        monitor = machine.monitor("rank")
        assert monitor.gpu_indices == [rank]
        kinds.append({d.kind for d in monitor.domains})
        monitor.close()
    assert "cpu" in kinds[0] and "cpu" not in kinds[1]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert machine.monitor("rank").gpu_indices == [0]


def test_a_lost_gpu_is_absent(machine):
    monitor = machine.gpus(CONSTANT, CONSTANT, faults={
        "kind": "gpu_lost", "device": 1, "at_seconds": 1}).monitor("gpu")
    time.sleep(1.5)
    with monitor.window("x") as w:
        time.sleep(0.2)
    m = w.energy
    assert set(m.gpu_energy) == {0}
    assert m.total_energy is None
    assert m["gpu1"].joules is None and m["gpu1"].reason
    assert "gpu1" in m.total.reason


def test_without_gpus(machine):
    monitor = machine.monitor()
    with monitor.window("x") as w:
        time.sleep(0.05)
    m = w.energy
    assert m.gpu_energy == {} and m.total_energy is None
    assert m.cpu_energy is None or m["package-0"].provenance in ("measured", "estimated")


@pytest.mark.parametrize("wrong", [
    {"devices": "gpu77"}, {"gpu_indices": [-1]}, {"devices": "gpu0", "gpu_indices": [0]},
    {"shortest_window": 0}, {"history": -1}, {"cuda": "maybe"},
])
def test_wrong_arguments(machine, wrong):
    machine.gpus(CONSTANT)
    with pytest.raises(jouleprof.InvalidArgument):
        machine.monitor(**wrong)


def test_a_log_file(machine):
    path = machine.folder / "run.jprof"
    with machine.gpus(CONSTANT).monitor("gpu0", log=path) as monitor:
        with monitor.window("x"):
            time.sleep(0.05)
    assert monitor.closed and path.stat().st_size > 0
    with pytest.raises(jouleprof.Error):
        machine.monitor("gpu0", log=path)
    open_monitor = machine.monitor("gpu0", log=path, overwrite=True)
    with pytest.raises(jouleprof.InvalidArgument, match="writing it; .* or its monitor is closed"):
        machine.monitor("gpu0", log=path, overwrite=True)
    open_monitor.close()


def test_a_log_whose_name_is_no_text(machine):
    path = os.fsencode(machine.folder) + b"/caf\xe9.jprof"
    with machine.gpus(CONSTANT).monitor("gpu0", log=path) as monitor:
        with monitor.window("x") as window:
            pass
        joules = window.joules
    (row,) = (w for w in jouleprof.open(path).rows("windows") if w["domain"] == "gpu")
    assert row["energy_joules"] == pytest.approx(joules, rel=0.2)


def test_a_closed_monitor_says_so(gpu):
    with gpu.window("known") as known:
        pass
    known.energy
    with gpu.window("unknown") as unknown:
        pass
    gpu.close()
    gpu.close()
    assert known.energy["gpu0"].joules is not None
    with pytest.raises(jouleprof.Unavailable, match=r"is closed; request energies and totals before close\(\)"):
        unknown.energy
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        for name in ("late", "later"):
            with gpu.window(name):
                pass  # still harmless in a training loop
    (warning,) = heard
    assert "the monitor is closed: window 'late'" in str(warning.message) and warning.filename == __file__
    with pytest.raises(jouleprof.Unavailable, match="closed"):
        gpu.total("late")


def made_before(monitor):
    with monitor.made_before:
        pass


@pytest.mark.parametrize("use", [
    made_before,
    lambda monitor: monitor.window("known").__enter__(),
    lambda monitor: monitor.begin_window("known"),
    lambda monitor: monitor.push_window(),
    lambda monitor: list(monitor.steps([1], "known", None)),
    lambda monitor: monitor.tagged("known").__enter__(),
    lambda monitor: monitor.measure("known")(int)(),
], ids=["made before", "known", "key", "stack", "steps", "tagged", "measure"])
@pytest.mark.parametrize("end", ["close", "fork"])
def test_each_way_to_begin_a_window_that_is_not_measured_warns(gpu, use, end):
    with gpu.window("known"):
        pass
    gpu.made_before = gpu.window("known")

    def begin():
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            use(gpu)
            with gpu.window("known"):
                pass  # which warns no more
        return [(str(warning.message), warning.filename) for warning in heard]

    if end == "close":
        gpu.close()
        heard = begin()
    else:
        receiver, sender = multiprocessing.Pipe(False)
        child = multiprocessing.get_context("fork").Process(target=lambda: sender.send(begin()))
        child.start()
        heard = receiver.recv()
        child.join()
    ((message, filename),) = heard
    assert ("the monitor is closed" if end == "close" else "of a forked process") in message
    assert filename == __file__


def test_a_monitor_is_of_its_process(gpu):
    for value in (gpu, gpu.steps([1]), gpu.tagged("a")):
        with pytest.raises(TypeError, match="make one in each process"):
            pickle.dumps(value)


def test_the_default_monitor(machine):
    machine.gpus(CONSTANT)
    try:
        with jouleprof.window("epoch") as epoch:
            time.sleep(0.05)
        assert epoch.energy["gpu0"].provenance == "simulated"
        assert jouleprof.total("epoch").count == 1

        @jouleprof.measure("f")
        def f():
            return 1

        assert [f() for _ in jouleprof.steps(range(3))] == [1, 1, 1]
        assert jouleprof.total("f").count == jouleprof.total("step").count == 3
    finally:
        jouleprof.monitor().close()


def test_a_script_may_end_with_a_monitor_open(machine):
    machine.gpus(CONSTANT)
    code = "import jouleprof; w = jouleprof.window('x').__enter__(); m = jouleprof.monitor()"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ, check=False,
                          stderr=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")


def test_names_made_up_for_each_window(gpu):
    for i in range(10_000 + 100):
        with gpu.window(f"step {i}") as w:
            pass
    assert w.energy.name == f"step {i}"
    assert gpu.total("step 1").count == 1
    with pytest.raises(jouleprof.NotFound):
        gpu.total(f"step {i}")


def test_a_files_name_that_is_no_text_names_a_window(gpu):
    name = os.fsdecode(b"caf\xe9.txt")
    with gpu.window(name):
        time.sleep(0.05)
    assert gpu.total(name).count == gpu.total("caf\ufffd.txt").count == 1


def test_parts_of_the_package_are_imported_when_they_are_used():
    code = "import jouleprof; jouleprof.codecarbon.EmissionsTracker; jouleprof.callbacks; jouleprof.nothing"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "has no attribute 'nothing'" in done.stderr
