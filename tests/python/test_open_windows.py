"""Windows that are open when their program ends are named; those that were cancelled are not."""

import os
import signal
import subprocess
import sys
import time

import pytest

import jouleprof
from jouleprof.callbacks._training import Training
from jouleprof.zeus.monitor import ZeusMonitor

from conftest import CONSTANT

TOOL = os.environ.get("JOULEPROF_TOOL")
pytestmark = pytest.mark.skipif(not TOOL, reason="JOULEPROF_TOOL is not set")
KILLED = """
import os, signal, sys, time, jouleprof
monitor = jouleprof.Monitor(log=sys.argv[1])
with monitor.window("train"):
    monitor.begin_window("gone")
    time.sleep(0.1)
    monitor.end_window("gone")
    time.sleep(1.6)
    os.kill(os.getpid(), signal.SIGKILL)
"""


WORKER = """
import os, sys, time, jouleprof
monitor = jouleprof.Monitor()
with monitor.window("done"):
    time.sleep(0.1)
with monitor.window(sys.argv[1]):
    os.write(1, b"open\\n")  # in one go: two programs share the pipe
    time.sleep(60)
"""


def test_a_run_that_is_killed_names_the_open_windows_of_each_program(machine):
    machine.gpus(CONSTANT)
    path = machine.folder / "run.jprof"
    shell = f"{sys.executable} -c '{WORKER}' train & {sys.executable} -c '{WORKER}' evaluate & wait"
    run = subprocess.Popen([TOOL, "run", "-q", "-o", path, "--", "sh", "-c", shell], stdout=subprocess.PIPE,
                           text=True, start_new_session=True)
    try:
        for _ in range(2):
            assert run.stdout.readline() == "open\n"
        time.sleep(3)  # a look, and a commit
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait(timeout=20)
    named = sorted(text for text in jouleprof.open(path).warnings if " open when " in text)
    assert len(named) == 2 and "window 'evaluate' of process" in named[0] and "window 'train' of process" in named[1]
    assert all("the recording was cut off" in text for text in named)


def recorded(machine, use):
    """The warnings of the log that `use(monitor)` makes."""
    machine.gpus(CONSTANT)
    path = machine.folder / "log.jprof"
    monitor = machine.monitor(log=str(path))
    use(monitor)
    monitor.close()
    return [text for text in jouleprof.open(path).warnings if " open when " in text]


def test_a_log_of_a_killed_program_names_the_open_window(machine):
    machine.gpus(CONSTANT)
    path = machine.folder / "log.jprof"
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False, timeout=60)
    named = [text for text in jouleprof.open(path).warnings if " open when " in text]
    assert len(named) == 1 and "window 'train' of process" in named[0]
    assert "the recording was cut off" in named[0]


def test_a_window_that_never_ends_is_named(machine):
    named = recorded(machine, lambda monitor: monitor.begin_window("endless"))
    assert len(named) == 1 and "window 'endless'" in named[0]
    assert "its monitor was closed" in named[0]


def test_windows_that_end_or_are_cancelled_are_not(machine):
    def use(monitor):
        with monitor.window("a"):
            pass
        monitor.begin_window("b")
        monitor.begin_window("b", restart=True)
        monitor.end_window("b")
        monitor.begin_window("c")
        monitor.end_window("c", cancel=True)
        for _ in monitor.steps([1, 2, 3]):
            pass
        for _ in monitor.steps([1, 2, 3]):
            break
        with pytest.raises(ZeroDivisionError):
            for _ in monitor.steps(1 / n for n in (1, 0)):
                pass
        with pytest.raises(ValueError), monitor.window("d"):
            raise ValueError
        monitor.push_window()
        monitor.pop_window()
        time.sleep(0.1)

    assert recorded(machine, use) == []


def test_those_of_a_training_that_failed_are_not(machine):
    def use(monitor):
        training = Training(monitor, None)
        training.begin("train")
        training.begin("epoch")
        training.start()

    assert recorded(machine, use) == []


def test_the_zeus_module_forgets_what_it_cancels(machine):
    machine.gpus(CONSTANT)
    path = machine.folder / "run.jprof"
    script = machine.folder / "zeus.py"
    script.write_text(ZEUS)
    subprocess.run([TOOL, "run", "--idle", "0s", "-o", str(path), "--", sys.executable, str(script)], check=True,
                   timeout=60, stderr=subprocess.PIPE)
    named = [text for text in jouleprof.open(path).warnings if " open when " in text]
    assert len(named) == 1 and "window 'left'" in named[0]


ZEUS = f"""
from {ZeusMonitor.__module__.rsplit(".", 1)[0]} import ZeusMonitor
monitor = ZeusMonitor(approx_instant_energy=False)
monitor.begin_window("again", sync_execution=False)
monitor.begin_window("again", sync_execution=False, restart=True)
monitor.end_window("again", sync_execution=False, cancel=True)
monitor.begin_window("reset", sync_execution=False)
monitor.reset_windows()
monitor.begin_window("left", sync_execution=False)
"""
