"""PowerLimitOptimizer: on simulated GPUs, whose limits all processes share."""

import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import jouleprof

SIM = os.environ["JOULEPROF_SIM"]
TOOL = os.environ.get("JOULEPROF_TOOL")
pytestmark = pytest.mark.skipif(not TOOL, reason="JOULEPROF_TOOL is not set")

# P_max / speed is least at 190 W: idle + dynamic x speed^3 per speed.
BOARD = {"generation": "hopper", "idle_watts": 120, "power": {"shape": "constant", "watts": 600},
         "power_limit": {"minimum_watts": 150, "default_watts": 700, "maximum_watts": 700}}
MEASURED = [jouleprof.PowerLimitMeasurement(*row) for row in [
    (300, 3000, 10.0), (250, 2600, 10.4), (200, 2400, 12.0), (150, 2500, 16.0)]]


@pytest.fixture
def shared(machine, monkeypatch, tmp_path):
    monkeypatch.setenv("JOULEPROF_TOOL", TOOL)
    monkeypatch.setenv("JOULEPROF_NVML_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("JOULEPROF_NVML_EPOCH", str(int(time.time()) - 5))
    monkeypatch.setenv("JOULEPROF_CONTROL_FOLDER", str(tmp_path / "control"))
    return machine.gpus(BOARD)


def limit(folder):
    """The last limit that any process set; None: never."""
    state = pathlib.Path(folder) / "state"
    lines = state.read_text().splitlines() if state.exists() else []
    return float(lines[-1].split()[-1]) if lines else None


def speed():
    ratio = ctypes.CDLL(SIM).jouleprof_nvml_sim_speed_ratio
    ratio.restype = ctypes.c_double
    return ratio(0)


def train(optimizer, epochs, steps):
    """Returns the limits at which the steps ran."""
    for _ in range(epochs):
        optimizer.on_epoch_begin()
        for _ in range(steps):
            optimizer.on_step_begin()
            time.sleep(0.02 / speed())
            optimizer.on_step_end()
        optimizer.on_epoch_end()


def test_it_profiles_each_limit_and_stays_at_the_best(shared, tmp_path):
    profile = tmp_path / "profile.json"
    monitor = shared.monitor("gpu0")
    with jouleprof.PowerLimitOptimizer(monitor, "energy", warmup_steps=1, profile_steps=10,
                                       limits=[700, 400, 200], profile_path=profile) as optimizer:
        train(optimizer, 1, 40)
        assert optimizer.done
        assert [m.power_limit for m in optimizer.measurements] == [700, 400, 200]
        # Energy of ten steps: P / speed.
        for m in optimizer.measurements:
            watts = min(m.power_limit, 600)
            assert m.energy / m.time == pytest.approx(watts, rel=0.05)
        assert optimizer.optimal_power_limit == 200
        assert limit(tmp_path) == 200
    assert limit(tmp_path) == 700  # as found
    written = json.loads(profile.read_text())["measurements"]
    assert [m["power_limit"] for m in written] == [700, 400, 200]
    assert list(written[0]) == ["power_limit", "energy", "time"]

    # With the profile, nothing is measured again.
    with jouleprof.PowerLimitOptimizer(monitor, "time", profile_path=profile) as optimizer:
        assert optimizer.done
        assert optimizer.optimal_power_limit == 700
        train(optimizer, 1, 2)


def test_an_epoch_that_ends_early_profiles_its_limit_again(shared, tmp_path):
    with jouleprof.PowerLimitOptimizer(shared.monitor("gpu0"), wait_steps=1, warmup_steps=1,
                                       profile_steps=4, limits=[700, 300]) as optimizer:
        train(optimizer, 1, 4)  # one waits, one warms up, two of four are profiled
        assert optimizer.measurements == []
        train(optimizer, 1, 6)
        assert [m.power_limit for m in optimizer.measurements] == [700]
        assert not optimizer.done


def test_the_steps_of_limits(shared):
    with jouleprof.PowerLimitOptimizer(shared.monitor("gpu0"), pl_step=250) as optimizer:
        assert optimizer._pending == [700, 450, 200]
    with pytest.raises(jouleprof.InvalidArgument, match="150 to 700 W"):
        jouleprof.PowerLimitOptimizer(shared.monitor("gpu0"), limits=[100, 300])
    with pytest.raises(jouleprof.InvalidArgument, match="energy, time or cost"):
        jouleprof.PowerLimitOptimizer(shared.monitor("gpu0"), "joy")


@pytest.mark.parametrize("options, expected", [
    ({"pl_step": 0.5}, "pl_step must not be below 1"), ({"pl_step": "x"}, "pl_step is a number"),
    ({"limits": ["a"]}, "a limit is a number of watts"), ({"limits": 300}, "limits is a list"),
    ({"wait_steps": None}, "wait_steps is a number"), ({"profile_steps": 0}, "profile_steps must not be below 1"),
])
def test_options_of_nonsense(shared, options, expected):
    with pytest.raises(jouleprof.InvalidArgument, match=expected):
        jouleprof.PowerLimitOptimizer(shared.monitor("gpu0"), **options)


def test_a_training_that_failed_is_not_in_the_next_ones_limit(shared):
    monitor = shared.monitor("gpu0")
    with jouleprof.PowerLimitOptimizer(monitor, wait_steps=0, warmup_steps=0, profile_steps=2,
                                       limits=[700, 300]) as optimizer:
        optimizer.on_step_begin()
        time.sleep(1)  # an exception
        train(optimizer, 1, 2)
        assert optimizer.measurements[0].time < 0.9
        optimizer.on_step_begin()
        optimizer.close()
        assert optimizer._window is None  # nor open in a recording
        optimizer.on_step_end()


def test_what_gives_up_has_restored_the_limit_and_sets_no_other(shared, tmp_path):
    with jouleprof.Monitor() as monitor:
        optimizer = jouleprof.PowerLimitOptimizer(monitor, warmup_steps=0, profile_steps=2, limits=[300, 200])
        train(optimizer, epochs=1, steps=2)
        assert limit(tmp_path) == 300
        optimizer.give_up()
        train(optimizer, epochs=1, steps=6)
        assert limit(tmp_path) == 700 and optimizer.done


def test_selectors_by_known_answers():
    from jouleprof import zeus

    assert zeus.Energy().select(MEASURED) == 200
    assert zeus.Time().select(MEASURED) == 300
    assert zeus.ZeusCost(0.5).select(MEASURED) == 250
    assert zeus.ZeusCost(0).select(MEASURED) == 300
    assert zeus.MaxSlowdownConstraint(1.2).select(MEASURED) == 200
    # Zeus would take the lowest limit that is fast enough, 150 W, which needs more energy.
    assert zeus.MaxSlowdownConstraint(1.6).select(MEASURED) == 200
    with pytest.raises(jouleprof.InvalidArgument):
        zeus.MaxSlowdownConstraint(0.9)
    for selector in (zeus.MaxSlowdownConstraint, zeus.ZeusCost):
        with pytest.raises(jouleprof.InvalidArgument):
            selector("x")


def test_the_cost_counts_the_limits_of_all_gpus(machine, monkeypatch, tmp_path):
    """Two GPUs with twice the energy of one: the choice is that of one."""
    monkeypatch.setenv("JOULEPROF_TOOL", TOOL)
    monkeypatch.setenv("JOULEPROF_NVML_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("JOULEPROF_CONTROL_FOLDER", str(tmp_path / "control"))
    machine.gpus(BOARD, BOARD)
    rows = [{"power_limit": watts, "energy": 2 * joules, "time": seconds}
            for watts, joules, seconds in ((300, 3000, 10.0), (250, 2600, 10.4), (200, 2400, 11.2))]
    profile = tmp_path / "profile.json"
    profile.write_text(json.dumps({"measurements": rows}))
    with jouleprof.Monitor() as monitor:
        for selector in (None, "cost"):
            with jouleprof.PowerLimitOptimizer(monitor, selector, profile_path=profile) as optimizer:
                # 0.5 x 5200 J + 0.5 x 300 W x 2 x 10.4 s = 5720; at 200 W 5760. With one limit: 4160 and 4080.
                assert optimizer.optimal_power_limit == 250


def test_a_damaged_profile_is_refused(shared, tmp_path):
    bad = tmp_path / "bad.json"
    for text in ("{", "{}", '{"measurements": []}', '{"measurements": [{"energy": 1}]}'):
        bad.write_text(text)
        with pytest.raises(jouleprof.Corrupt):
            jouleprof.PowerLimitOptimizer(shared.monitor("gpu0"), profile_path=bad)
    assert limit(tmp_path) is None


def test_without_permission_it_raises(shared, tmp_path):
    shared.gpus({**BOARD, "power_limit": {"settable": False}})
    with jouleprof.PowerLimitOptimizer(shared.monitor("gpu0"), wait_steps=0) as optimizer:
        with pytest.raises(jouleprof.PermissionDenied, match="Ask the administrator"):
            optimizer.on_step_begin()


SCRIPT = """
import time
from jouleprof.zeus import GlobalPowerLimitOptimizer, MaxSlowdownConstraint, ZeusMonitor

plo = GlobalPowerLimitOptimizer(
    monitor=ZeusMonitor(gpu_indices=[0]), optimum_selector=MaxSlowdownConstraint(factor=1.1),
    wait_steps=1, warmup_steps=1, profile_steps=2, pl_step=250)
plo.on_epoch_begin()
for _ in range(2):
    plo.on_step_begin()
    plo.on_step_end()
print("set", flush=True)
time.sleep(600)
"""


def test_a_script_of_zeus_that_is_killed_leaves_the_limit_as_found(shared, tmp_path):
    with open(tmp_path / "state", "a") as state:
        state.write(f"{time.time_ns()} 0 650\n")
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "set\n"
    assert limit(tmp_path) == 700
    process.send_signal(signal.SIGKILL)
    process.wait()
    end = time.monotonic() + 60
    while limit(tmp_path) != 650:
        assert time.monotonic() < end
        time.sleep(0.01)
