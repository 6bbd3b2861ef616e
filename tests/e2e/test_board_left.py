"""A board is never left changed: every fault of a driver, knob and order of deaths, on simulated GPUs.

After each, the setting that was found holds again, or it is named with a status other than 0."""

import json
import os
import signal
import time

import pytest
from test_sweep import Machine, board, pid_of, processes_with, start_waiting, wait_until

FOUND = 650
KNOBS = {"power": ("", ("400", "300")), "sm-clock": ("clock ", ("1980", "990")),
         "memory-clock": ("memory-clock ", ("2619", "1309"))}
# What the driver makes of a value, or what happens to it during the run: by fault, the keys of the
# board and the lines of the state file by knob.
MADE = {"none": {}, "clamped": {"power_limit": {"clamp_watts": 450}, "clocks": {"lock_step_mhz": 100}},
        "rounded": {"power_limit": {"step_watts": 7}, "clocks": {"lock_step_mhz": 7}},
        "refused": {}, "reset": {}, "another's": {}}
DURING = {"refused": dict.fromkeys(KNOBS, "refused"),
          "reset": {"power": "700", "sm-clock": "clock unlocked", "memory-clock": "memory-clock unlocked"},
          "another's": {"power": "555", "sm-clock": "clock 1200", "memory-clock": "memory-clock 1000"}}


def machine_with(folder, fault):
    keys = dict(MADE[fault])
    limits = {"minimum_watts": 150, "default_watts": 700, "maximum_watts": 700}
    machine = Machine(folder, board(**{**keys, "power_limit": {**limits, **keys.get("power_limit", {})}}))
    machine.set_limit(FOUND)
    return machine


def value(machine, knob):
    """What holds now: watts, or the lock of a clock; None: never locked, or unlocked."""
    word = KNOBS[knob][0]
    lines = [line.split(" ", 2)[2] for line in (machine.folder / "state").read_text().splitlines()]
    if knob == "power":
        return float([line for line in lines if line[0].isdigit()][-1])
    locks = [line[len(word):] for line in lines if line.startswith(word)]
    return None if not locks or locks[-1] == "unlocked" else float(locks[-1])


def found(knob):
    return FOUND if knob == "power" else None


def happen(machine, line):
    if line:
        with open(machine.folder / "state", "a") as state:
            state.write(f"{time.time_ns()} 0 {line}\n")


def finish(process):
    _, err = process.communicate(timeout=60)
    return process.returncode, err


def end_of(machine, process, order):
    """Ends the sweep in the middle of a run; its status where it ended itself, and what it said."""
    work = pid_of(machine, b"wait.py")
    guard = pid_of(machine, b"guard-settings")
    if order == "command":
        os.kill(work, signal.SIGTERM)
        return finish(process)
    if order == "guard":
        os.kill(guard, signal.SIGKILL)
        wait_until(lambda: guard not in processes_with(machine.environment))
    elif order == "tool":
        process.kill()
        wait_until(lambda: guard not in processes_with(machine.environment))
    elif order == "guard stopped, tool":
        os.kill(guard, signal.SIGSTOP)
        process.kill()
    elif order == "both":
        for stop in (signal.SIGSTOP, signal.SIGKILL):
            for pid in (process.pid, guard):
                os.kill(pid, stop)
        wait_until(lambda: guard not in processes_with(machine.environment))
    os.kill(work, signal.SIGKILL)
    status, err = finish(process) if order != "guard stopped, tool" else (process.wait(), "")
    return (status if order == "guard" else None), err


@pytest.mark.parametrize("order", ["command", "guard", "tool", "both", "guard stopped, tool"])
@pytest.mark.parametrize("knob", KNOBS)
@pytest.mark.parametrize("fault", MADE)
def test_found_again_or_named(tmp_path, fault, knob, order):
    machine = machine_with(tmp_path, fault)
    process = start_waiting(machine, *KNOBS[knob][1], knob=knob, check=False)
    assert value(machine, knob) != found(knob)
    guards = [pid for pid, words in processes_with(machine.environment).items() if b"guard-settings" in words]
    happen(machine, DURING.get(fault, {}).get(knob))
    status, said = end_of(machine, process, order)
    settled = machine("apply", "--restore", status=None)
    named = "gpu0" in settled.err and settled.returncode != 0
    named = named or (status not in (None, 0) and "gpu0" in said)
    assert value(machine, knob) == found(knob) or named, (value(machine, knob), status, said, settled.err)
    for pid in guards:
        if pid in processes_with(machine.environment):
            os.kill(pid, signal.SIGKILL)
    if fault in ("none", "clamped"):
        assert value(machine, knob) == found(knob)
        assert machine.records() == []
    if fault == "refused":  # and is restored as soon as the driver does it
        happen(machine, "accepted")
        machine("apply", "--restore", status=None)
        assert value(machine, knob) == found(knob)


@pytest.mark.parametrize("fault", ["clamped", "rounded"])
def test_what_a_driver_makes_of_a_limit_is_restored_after_sweep_and_apply(tmp_path, fault):
    machine = machine_with(tmp_path, fault)
    low = 644  # of 7
    machine.set_limit(FOUND if fault == "clamped" else low)
    found_watts = machine.limit()
    process = machine.sweep("--limits", "500,300", "--repeats", "2", "--min-repeats", "2",
                            status=4 if fault == "clamped" else None)
    assert "the settings were restored" in process.err
    assert machine.limit() == found_watts
    applied = machine("apply", "--power", "300", "--", "cat", "state")
    made = {"clamped": 450, "rounded": 294}[fault]
    assert float(applied.out.split()[-1]) == made
    assert f"the driver made {made} W of the 300 W requested" in applied.err
    assert machine.limit() == found_watts
    assert machine.records() == []


def test_apply_names_what_it_cannot_restore(tmp_path):
    machine = machine_with(tmp_path, "none")
    change = "open('state', 'a').write(f'{time.time_ns()} 0 555\\n')"
    process = machine("apply", "--power", "300", "--", "python3", "-c",
                      f"import time; {change}", status=10)
    assert "gpu0: the power limit is neither what a sweep found (650 W) nor what it set" in process.err
    assert machine.limit() == 555


def test_a_sweep_that_leaves_a_board_says_so_with_its_status(tmp_path):
    machine = machine_with(tmp_path, "rounded")  # 650 W is no multiple of 7
    process = machine.sweep("--limits", "500,300", "--repeats", "2", "--min-repeats", "2", status=6)
    assert "gpu0: the driver accepted a power limit of 650 W and reports 644 W" in process.err
    assert "were restored" not in process.err
    assert len(machine.records()) == 1
    assert "gpu0" in machine("apply", "--restore", status=10).err


def test_restore_does_not_claim_that_nothing_is_left_while_a_sweep_runs(tmp_path):
    machine = machine_with(tmp_path, "none")
    process = start_waiting(machine, "400", "300")
    running = machine("apply", "--restore", status=10)
    assert "gpu0" in running.err and "has not ended" in running.err
    assert machine.limit() == 400
    assert "gpu0" not in machine("doctor", status=None).err.replace("gpu0  ", "")
    os.kill(pid_of(machine, b"wait.py"), signal.SIGTERM)
    finish(process)
    assert machine.limit() == FOUND
    assert "nothing to restore" in machine("apply", "--restore").err


def test_a_power_cycle_ends_a_setting(tmp_path):
    machine = machine_with(tmp_path, "clamped")
    process = start_waiting(machine, "400", "300", check=False)
    end_of(machine, process, "both")
    record = machine.records()[0]
    record.write_text(json.dumps({**json.loads(record.read_text()), "boot_id": "another"}))
    machine.set_limit(700)  # as the driver starts
    assert "ended with the restart of the machine" in machine("apply", "--restore").err
    assert machine.records() == []
