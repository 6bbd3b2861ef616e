"""doctor --calibrate --wall: a board that reads 6 % low and 12 W high, behind a supply with losses."""

import json
import subprocess
import sys
import time

import pytest

BASE_WATTS = 180
SHOWN = (85.0, 640.0)  # low and high, as the board's sensors show it
PERIOD = 16.0  # of steady seconds, those near a step are left out


def true_watts(shown):
    return (shown - 12) / 0.94


def wall_watts(true):
    """Of a supply that loses 30 W and 5 % of what it takes more."""
    return 30 + (BASE_WATTS + true) / 0.95


METER = """
import sys, time
epoch, period, high, low = map(float, sys.argv[1:5])
while True:
    phase = (time.time() - epoch) % period
    watts = high if phase < period / 2 else low
    print(f"{time.time():.3f},{watts:.2f}", flush=True)
    if sys.argv[5] == "once":
        break
    time.sleep(0.25)
"""


def board(tool, meter):
    scenario = {"devices": [{"generation": "hopper", "idle_watts": SHOWN[0], "power": {
        "shape": "square", "low_watts": SHOWN[0], "high_watts": SHOWN[1],
        "period_seconds": PERIOD}}]}
    tool.simulate(scenario)
    epoch = time.time()
    tool.environment["JOULEPROF_NVML_EPOCH"] = f"{epoch:.6f}"
    (tool.folder / "meter.py").write_text(METER)
    walls = [wall_watts(true_watts(w)) if meter == "own" else 400.0 for w in SHOWN]
    arguments = [sys.executable, str(tool.folder / "meter.py"), f"{epoch:.6f}", str(PERIOD),
                 str(walls[1]), str(walls[0])]
    log = tool.folder / "wall.csv"
    log.write_text("time,watts\n")
    return epoch, arguments, log


def running(arguments, log):
    return subprocess.Popen([*arguments, "on"], stdout=log.open("a"))


def test_finds_the_gain_of_a_board_and_uses_it(tool):
    epoch, arguments, log = board(tool, "own")
    meter = running(arguments, log)
    try:
        process = tool("doctor", "--calibrate", "--wall", "wall.csv", "--supply-efficiency",
                       "0.95", "--load", "sleep 42", "--json", status=None)
    finally:
        meter.kill()
        meter.wait()
    assert process.returncode == 0, process.err
    found = json.loads(
        (tool.folder / ".local/state/jouleprof/calibration.json").read_text())["devices"]
    gain = next(iter(found.values()))["gain"]
    assert abs(gain["gain_ratio"] - 1 / 0.94) <= gain["error_ratio"] / 0.94
    assert gain["error_ratio"] <= 0.02
    assert gain["offset_low_watts"] <= -12 / 0.94 <= gain["offset_high_watts"]

    tool("run", "-o", "run.jprof", "--", "sleep", "5")
    report = tool.report("run.jprof")
    gpu = next(d for d in report["domains"] if d["domain"] == "gpu")
    low, high = gpu["interval_joules"]
    # Of what the sensors showed, without the correction.
    shown = gpu["energy_joules"] / gain["gain_ratio"]
    true = (shown - 12 * report["duration_seconds"]) / 0.94
    assert low <= true <= high
    text = tool("doctor").out

    # The offset, which the wall cannot show, is a small part of a high power.
    time.sleep((PERIOD - 0.5 - (time.time() - epoch)) % PERIOD)
    tool("run", "-o", "high.jprof", "--", "sleep", "5")
    report = tool.report("high.jprof")
    gpu = next(d for d in report["domains"] if d["domain"] == "gpu")
    assert gpu["energy_joules"] / report["duration_seconds"] > 0.95 * true_watts(SHOWN[1])
    low, high = gpu["interval_joules"]
    true = (gpu["energy_joules"] / gain["gain_ratio"] - 12 * report["duration_seconds"]) / 0.94
    assert low <= true <= high
    assert (high - low) / (high + low) <= 0.023


def test_refuses_a_meter_that_does_not_follow(tool):
    _, arguments, log = board(tool, "of another machine")
    meter = running(arguments, log)
    try:
        process = tool("doctor", "--calibrate", "--wall", "wall.csv", "--load", "sleep 42",
                       status=6)
    finally:
        meter.kill()
        meter.wait()
    assert "does not follow" in process.err
    assert not (tool.folder / ".local/state/jouleprof/calibration.json").exists()


@pytest.mark.parametrize("arguments", [
    ("--wall", "wall.csv"), ("--calibrate", "--wall", "x", "--supply-efficiency", "1.2"),
    ("--calibrate", "--wall", "x", "--wall-error", "many")])
def test_refuses_wrong_options(gpu, arguments):
    gpu("doctor", *arguments, status=2)
