"""Power, temperature and the stack of windows, by the names of Zeus."""

import dataclasses
import importlib
import os
import pickle
import subprocess
import sys
import time
import warnings

import pytest

import jouleprof
from conftest import CONSTANT
from jouleprof.zeus import ZeusMonitor
from jouleprof.zeus.monitor.power import PowerDomain, PowerMonitor
from jouleprof.zeus.monitor.temperature import TemperatureMonitor
from jouleprof.zeus import analyze
from jouleprof.zeus.profiling import ProfilingResult, ZeusProfilingService



@pytest.mark.parametrize("module, names", [
    ("monitor", ["Measurement", "PowerMonitor", "TemperatureMonitor", "ZeusMonitor"]),
    ("monitor.energy", ["Measurement", "MeasurementState", "ZeusMonitor"]),
    ("monitor.power", ["PowerDomain", "PowerMonitor"]),
    ("monitor.temperature", ["TemperatureMonitor"]),
    ("metric", ["EnergyCumulativeCounter", "EnergyHistogram", "PowerGauge"]),
    ("optimizer.power_limit", ["Energy", "GlobalPowerLimitOptimizer", "MaxSlowdownConstraint", "Time", "ZeusCost"]),
])
def test_the_modules_have_the_names_of_zeus(module, names):
    """Each of them is in Zeus, too, as far as it is installed."""
    ours = importlib.import_module(f"jouleprof.zeus.{module}")
    assert all(hasattr(ours, name) for name in names)
    try:
        theirs = importlib.import_module(f"zeus.{module}")
    except ImportError:
        pytest.skip(f"zeus.{module} cannot be imported here")
    assert [name for name in names if not hasattr(theirs, name)] == []


@pytest.fixture
def power(machine):
    monitor = PowerMonitor(gpu_indices=[1], update_period=0.05) if machine.gpus(
        CONSTANT, {**CONSTANT, "idle_watts": 400}) else None
    yield monitor
    monitor.stop()


def test_power_over_time(power):
    begin = time.time()
    time.sleep(1.6)
    end = time.time()
    (timeline,) = power.get_power_timeline(PowerDomain.DEVICE_INSTANT, start_time=begin, end_time=end).values()
    assert len(timeline) > 5 and all(begin <= t <= end for t, _ in timeline)
    assert [watts for _, watts in timeline] == pytest.approx([400] * len(timeline), rel=0.02)
    assert timeline == sorted(timeline)
    everything = power.get_all_power_timelines(gpu_index=1)
    assert set(everything) == {domain.value for domain in power.measurement_domains}
    assert everything["device_average"][1][-1][1] == pytest.approx(400, rel=0.02)
    assert power.get_power() == {1: pytest.approx(400, rel=0.02)}
    assert power.get_power(begin) == {1: pytest.approx(400, rel=0.02)}
    assert power.get_energy(begin, end) == {1: pytest.approx(400 * (end - begin), rel=0.03)}
    with pytest.raises(ValueError, match="GPU 0 is not monitored"):
        power.get_power_timeline("device_instant", gpu_index=0)
    with pytest.raises(ValueError):
        power.get_power_timeline("chassis")


@pytest.mark.parametrize("step", [3600, -3600])
def test_a_wall_clock_that_is_set(power, monkeypatch, step):
    begin, host = time.time(), time.monotonic()
    time.sleep(0.5)
    snapshot, now, now_ns = power._monitor.snapshot, time.time, time.time_ns
    monkeypatch.setattr(power._monitor, "snapshot",
                        lambda: dataclasses.replace(snapshot(), time=now() + step))
    monkeypatch.setattr(time, "time", lambda: now() + step)
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + step * 10**9)
    set_at = time.time()
    time.sleep(0.5)
    end, length = time.time(), time.monotonic() - host
    assert power.get_energy(begin, end) == {1: pytest.approx(400 * length, rel=0.02)}
    assert len(power.get_power_timeline("device_instant", start_time=set_at, end_time=end)[1]) > 2


def test_energy_before_the_monitor_says_why_it_is_missing(power):
    now = time.time()
    energy = power.get_energy(now - 3600, now - 3500)
    assert energy == {}
    with pytest.raises(KeyError, match="GPU 1 has no energy of this window: .+"):
        energy[1]


def test_only_what_is_asked_for_is_kept(machine):
    machine.gpus(CONSTANT)
    monitor = PowerMonitor(max_samples_per_gpu=3, update_period=0.02, power_domains=["device_instant"])
    time.sleep(0.8)
    assert list(monitor.get_all_power_timelines()) == ["device_instant"]
    assert len(monitor.get_power_timeline("device_instant")[0]) == 3
    monitor.stop()
    assert monitor.get_power()[0] == pytest.approx(250, rel=0.02)  # of before


def test_without_a_gpu(machine):
    for kind in (PowerMonitor, TemperatureMonitor, ZeusProfilingService):
        with pytest.raises((ValueError, RuntimeError), match="jouleprof doctor"):
            kind()


def test_temperature(machine):
    machine.gpus(CONSTANT)
    monitor = TemperatureMonitor(update_period=0.05)
    time.sleep(0.5)
    found = monitor.get_temperature()
    assert list(found) == [0] and isinstance(found[0], int) and 0 < found[0] < 120
    assert monitor.get_temperature_timeline()[0][-1][1] == found[0]
    assert monitor.get_temperature(time.time() - 10) is not None
    monitor.stop()


def test_the_stack_of_windows_without_pytorch(machine, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    machine.gpus(CONSTANT)
    with pytest.raises(jouleprof.Unavailable, match="sync_execution=False"):
        ZeusProfilingService([0]).push_window()
    service = ZeusProfilingService([0], sync_execution=False)
    began = time.monotonic()
    service.push_window()
    time.sleep(0.2)
    result = service.pop_window()
    assert 0.2 <= result.time <= time.monotonic() - began
    assert result.wait().energy == pytest.approx([250 * result.time], rel=0.05)


def test_the_stack_of_windows(machine, monkeypatch):
    from marks_cases import Host

    torch = Host.torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    machine.gpus(CONSTANT, {**CONSTANT, "idle_watts": 400})
    waited = []
    real = jouleprof.Window.wait
    monkeypatch.setattr(jouleprof.Window, "wait", lambda self, timeout=None: waited.append(timeout) or real(self, timeout))
    service = ZeusProfilingService([0, 1], "zeus_monitor", "", "run")
    service.push_window()
    time.sleep(0.2)
    service.push_window()
    time.sleep(0.2)
    inner = service.pop_window()
    early = inner.jouleprof["gpu0"]
    assert early.low <= 250 * inner.time <= early.high and inner.energy[1] > 0
    assert waited == []
    outer = service.pop_window()
    assert inner.wait().settled and outer.wait().settled
    assert outer.time > inner.time > 0.2
    assert inner.energy == pytest.approx([250 * inner.time, 400 * inner.time], rel=0.05)
    assert outer.energy[0] > inner.energy[0]
    assert pickle.loads(pickle.dumps(inner)).energy == inner.energy
    assert torch.cuda.synchronised == [0, 1] * 4
    with pytest.raises(RuntimeError, match=r"push_window\(\) first"):
        service.pop_window()
    service.monitor.close()


def test_the_profiling_service_logs_power_as_zeus_monitor_does(machine, caplog):
    machine.gpus(CONSTANT, {**CONSTANT, "idle_watts": 400})
    folder = machine.folder / "logs"
    with caplog.at_level("INFO"):
        service = ZeusProfilingService(None, monitor_log_dir=str(folder), monitor_log_prefix="run", sync_execution=False)
        service.push_window()
        time.sleep(1.2)
        result = service.pop_window().wait()
        service._stop_monitors()
    assert sorted(path.name for path in folder.iterdir()) == ["run+gpu0.power.csv", "run+gpu1.power.csv"]
    log = str(folder / "run+gpu1.power.csv")
    assert analyze.avg_power(log) == pytest.approx(400, rel=0.05)
    assert analyze.energy(log) == pytest.approx(400 * result.time, rel=0.35)
    recording = str(folder / "log.jprof")  # in watts, simulated, and of now
    subprocess.run([os.environ["JOULEPROF_TOOL"], "import", log, "-o", recording], check=True, stderr=subprocess.DEVNULL)
    imported = jouleprof.open(recording)
    assert imported.total("gpu0").provenance == "simulated"
    assert imported.average("gpu0").watts == pytest.approx(400, rel=0.05)
    assert "[ZeusProfilingService] [GPU_0,1] Profiling window pushed." in caplog.text
    assert "[ZeusProfilingService] [GPU_1] Zeus monitor stopped." in caplog.text
    service.monitor.close()


def test_a_result_can_be_made():
    made = ProfilingResult(1.5, [2.0, None])
    assert (made.time, made.energy, made.settled) == (1.5, [2.0, None], True)
    assert repr(made) == "ProfilingResult(time=1.5, energy=[2.0, None])" and pickle.loads(pickle.dumps(made)) == made


def test_energy_of_a_log(tmp_path):
    log = tmp_path / "gpu0.power.csv"
    log.write_text("Time,Power\n2022-09-01 10:00:00.000,100\n2022-09-01 10:00:01.000,200\n2022-09-01 10:00:03.000,200\n20")
    assert analyze.energy(str(log)) == pytest.approx(150 + 400)
    assert analyze.energy(str(log), 0.5, 2) == pytest.approx(87.5 + 200)
    assert analyze.energy(str(log), start=-1) == pytest.approx(200)
    assert analyze.avg_power(str(log), 0, 1) == pytest.approx(150)
    with pytest.raises(jouleprof.InvalidArgument, match="covers 3 s"):
        analyze.energy(str(log), 1, 4)
    with pytest.raises(FileNotFoundError):
        analyze.energy(str(tmp_path / "absent.csv"))
    log.write_text("a,b\n1,2\n3,4\n")
    with pytest.raises(jouleprof.Corrupt, match="gpu0.power.csv:2"):
        analyze.energy(str(log))


def test_importing_them_warns_of_nothing(machine):
    done = subprocess.run([sys.executable, "-W", "error", "-c", "import jouleprof.zeus.metric, jouleprof.zeus.profiling"],
                          check=False, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        importlib.reload(importlib.import_module("jouleprof.zeus.monitor.power"))
    assert jouleprof


def test_settings_and_devices_that_are_not_there_are_errors_with_words(machine):
    monitor = ZeusMonitor(gpu_indices=[0]) if machine.gpus(CONSTANT) else None
    for setter in ("set_power_management_limit", "setPowerManagementLimit"):
        with pytest.raises(jouleprof.Unsupported, match=f"{setter} is not in jouleprof.zeus; .*jouleprof apply"):
            getattr(monitor.gpus, setter)(0, 300_000)
    with pytest.raises(LookupError, match=r"9 is not among the measured ones: \[0\]"):
        monitor.gpus.get_name(9)
    monitor.monitor.close()


@pytest.mark.parametrize("options", [{"update_period": -1}, {"update_period": "x"}, {"max_samples_per_gpu": -1}])
def test_a_sampler_of_nonsense(machine, options):
    machine.gpus(CONSTANT)
    with pytest.raises(jouleprof.InvalidArgument, match=next(iter(options))):
        PowerMonitor(gpu_indices=[0], **options)


@pytest.mark.parametrize("power", ["nan", "inf", "-5"])
def test_a_power_that_is_none_is_no_energy(tmp_path, power):
    log = tmp_path / "gpu0.power.csv"
    log.write_text("Time,Power\n2026-11-28 20:00:00.000000,250\n" + f"2026-11-28 20:00:01.000000,{power}\n2026-11-28 20:00:02.000000,250\n")
    with pytest.raises(jouleprof.Corrupt, match="gpu0.power.csv:3"):
        analyze.energy(str(log))
