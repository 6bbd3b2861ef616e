"""Threads, event loops and forks."""

import asyncio
import multiprocessing
import os
import subprocess
import sys
import threading
import time
import warnings

import pytest

import jouleprof
from conftest import CONSTANT


def test_sixteen_threads(gpu):
    def work(number):
        for _ in range(200):
            with gpu.window("shared"):
                with gpu.window(f"thread{number}"):
                    pass
        gpu.begin_window(f"key{number}")
        gpu.end_window(f"key{number}").energy

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gpu.total("shared").count == 3200
    assert all(gpu.total(f"thread{n}").count == 200 for n in range(16))


def test_a_window_may_end_in_another_thread(gpu):
    gpu.begin_window("x")
    ended = []
    thread = threading.Thread(target=lambda: ended.append(gpu.end_window("x")))
    time.sleep(0.05)
    thread.start()
    thread.join()
    assert ended[0].energy.time >= 0.05


def test_waiting_lets_other_threads_run(gpu):
    with gpu.window("x") as w:
        pass
    waiting = threading.Thread(target=lambda: w.energy)
    waiting.start()
    turns = 0
    while waiting.is_alive():
        turns += 1
        time.sleep(0.001)
    assert turns > 5
    assert w.energy["gpu0"].joules is not None


def test_coroutines(gpu):
    turns = []

    @gpu.measure("work")
    async def work(seconds):
        async with gpu.window("inner") as w:
            await asyncio.sleep(seconds)
        return w

    async def count():
        while True:
            turns.append(1)
            await asyncio.sleep(0.001)

    async def main():
        counting = asyncio.ensure_future(count())
        windows = await asyncio.gather(*(work(0.02 * n) for n in range(1, 4)))
        before = len(turns)
        energies = await asyncio.gather(*(w.energy_async() for w in windows))
        assert len(turns) > before  # the loop went on
        counting.cancel()
        return windows, energies

    windows, energies = asyncio.run(main())
    assert [w.energy for w in windows] == energies
    assert [e.time >= 0.02 * n for n, e in enumerate(energies, 1)] == [True] * 3
    assert gpu.total("work").count == gpu.total("inner").count == 3


def test_wait_with_a_timeout(gpu):
    with gpu.window("x") as w:
        time.sleep(0.02)
    assert w.wait(timeout=20)["gpu0"].joules is not None
    assert w.wait() is w.energy


def test_closing_while_another_thread_waits(gpu):
    with gpu.window("x") as w:
        pass
    answers = []

    def wait():
        try:
            answers.append(w.energy)
        except jouleprof.Error as error:
            answers.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    gpu.close()
    thread.join()
    assert len(answers) == 1


def _child(gpu, window, queue):
    answers = []
    for ask in (lambda: window.energy, lambda: gpu.total("parent")):
        try:
            answers.append(ask())
        except jouleprof.Unavailable:
            answers.append("unavailable")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with gpu.window("child"):
            pass
    queue.put((answers, [str(warning.message) for warning in said]))


def test_a_forked_child_measures_nothing_with_its_parents_monitor(gpu):
    with gpu.window("parent") as w:
        pass
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_child, args=(gpu, w, queue))
    child.start()
    answers, said = queue.get(timeout=30)
    assert answers == ["unavailable"] * 2
    assert len(said) == 1 and "make one after the fork" in said[0]
    child.join()
    assert child.exitcode == 0
    assert w.energy["gpu0"].joules is not None  # the parent goes on
    assert gpu.total("parent").count == 1


@pytest.mark.parametrize("method", ["spawn"])
def test_measurements_travel_between_processes(gpu, method):
    with gpu.window("x") as w:
        pass
    with multiprocessing.get_context(method).Pool(1) as pool:
        assert pool.apply(_total, (w.energy,)) == w.energy.total.microjoules


def _total(measurement):
    return measurement.total.microjoules


DAEMON = """
import os, sys, threading, time, jouleprof
logged = sys.argv[2:] or None
monitor = jouleprof.Monitor("gpu0", log=logged and logged[0])
os.closerange(3, 100)
names = [f"{sys.argv[1]}/{i}" for i in range(30)]
files = [open(name, "w") for name in names]
for file in files:
    print(file.name, file=file, flush=True)
with monitor.window("daemon") as window:
    time.sleep(0.3)
assert window["gpu0"].joules is not None
thread = threading.Thread(target=lambda: monitor.window("thread").__enter__().__exit__(None, None, None))
thread.start()
thread.join()
says = lambda: any("this program closed all descriptors" in w for w in monitor.warnings)
for _ in range(200):  # the recording is written once a second
    if not logged or says():
        break
    time.sleep(0.05)
has_said = says()
monitor.close()
for file in files:
    file.close()
    with open(file.name) as again:
        assert again.read() == file.name + "\\n", file.name
assert has_said == bool(logged)
"""


@pytest.mark.parametrize("case", ["own", "log", "run"])
def test_a_program_that_closes_all_descriptors_keeps_its_own_files(machine, case):
    machine.gpus({"generation": "hopper", "idle_watts": 250})
    command = [sys.executable, "-c", DAEMON, str(machine.folder)]
    if case == "log":
        command.append(str(machine.folder / "log.jprof"))
    elif case == "run":
        if not os.path.exists(os.environ.get("JOULEPROF_TOOL", "")):
            pytest.skip("JOULEPROF_TOOL is not built")
        command = [os.environ["JOULEPROF_TOOL"], "run", "--idle", "0s", "-o", str(machine.folder / "x.jprof"), "--", *command]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert ("its later windows are not in this recording" in said) == (case == "run")


def test_threads_that_ask_do_not_abort_a_program_that_ends(machine):
    code = """
import threading, time, jouleprof
monitor = jouleprof.Monitor("gpu0")
def ask(question):
    try:
        while True:
            question()
    except jouleprof.Error:
        pass
with monitor.window("w") as window:
    pass
questions = [monitor.snapshot, lambda: monitor.total("w"), lambda: monitor.between(jouleprof.now() - 10**6, jouleprof.now())]
for question in 2 * questions:
    threading.Thread(target=ask, args=(question,), daemon=True).start()
time.sleep(0.2)
"""
    machine.gpus({"generation": "hopper", "idle_watts": 250})
    for _ in range(6):
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


def test_a_signal_while_the_default_monitor_opens_is_handled(machine):
    """Its handler may use windows, too: no lock waits for the interrupted code."""
    code = """
import signal, time, jouleprof

def handle(number, frame):
    with jouleprof.window("handler"):
        pass

signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.001)
with jouleprof.window("program") as program:
    time.sleep(0.05)
assert program.energy["gpu0"].joules > 0
"""
    machine.gpus(CONSTANT)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_end_of_another_interpreter_ends_no_waits_of_the_main_one(machine):
    code = """
import sys, time, warnings
import jouleprof
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    sys.exit()
if not hasattr(interpreters, "run_string"):
    sys.exit()
warnings.simplefilter("ignore")
other = interpreters.create()
# From 3.12 on the extension refuses to be loaded there.
interpreters.run_string(other, "import sys; sys.path[:0] = %r\\ntry: import jouleprof\\nexcept ImportError: pass" % sys.path)
interpreters.destroy(other)
with jouleprof.window("x") as w:
    time.sleep(0.05)
assert w.energy["gpu0"].joules > 0, w.energy
"""
    machine.gpus(CONSTANT)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
