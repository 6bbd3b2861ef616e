"""When a program's kernels are re-run at its end, and that its status and output stay (docs/layers.md). A stand-in
takes the place of the library: nothing needs a GPU."""

import pathlib
import subprocess
import sys
import textwrap

import pytest

HOOK = pathlib.Path(__file__).parent.parent.parent / "python" / "hook"

BEFORE = """
    import atexit, importlib.util, sys

    spec = importlib.util.spec_from_file_location("at_exit", {file!r})
    at_exit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(at_exit)

    class Function:
        def __init__(self, name, answer):
            self.name, self.answer = name, answer

        def __call__(self, *given):
            print(self.name, *given, flush=True)
            return self.answer() if callable(self.answer) else self.answer

    class Library:
        jouleprof_replay_begin = Function("begin", 0)
        jouleprof_replay_wait = Function("wait", 1)
        jouleprof_replay_stop = Function("stop", None)
        jouleprof_replay_leave = Function("leave", None)
        jouleprof_trace_problem = Function("problem", None)

    atexit.register(print, "the framework's handler")
    handler = at_exit.AtExit(Library, 0.4)
    handler.register()
"""


def run(program):
    text = textwrap.dedent(BEFORE).format(file=str(HOOK / "jouleprof_at_exit.py")) + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_re_runs_come_after_the_programs_handlers_and_before_the_frameworks():
    status, lines, _ = run("""
        handler.register()  # after the import of another framework
        atexit.register(print, "the program's handler")
    """)
    assert status == 0
    assert lines == ["the program's handler", "begin 0.4 30", "wait 0.1", "leave 0", "the framework's handler"]


@pytest.mark.parametrize("leave, status", [("sys.exit(3)", 3), ("sys.exit()", 0), ("sys.exit('no')", 1),
                                           ("raise SystemExit(4)", 4)])
def test_the_status_stays(leave, status):
    found, lines, _ = run(leave)
    assert found == status
    assert "begin 0.4 30" in lines


def test_the_status_that_a_stuck_process_leaves_with_is_known():
    assert "leave 3" in run("sys.exit(3)")[1]
    assert "leave 1" in run("sys.exit('no')")[1]


def test_there_are_none_after_an_exception():
    status, lines, errors = run("raise ValueError('x')")
    assert status == 1 and "ValueError: x" in errors
    assert not any(line.startswith("begin") for line in lines)
    assert any("ended with an exception" in line for line in lines)


def test_ctrl_c_ends_them_and_nothing_else():
    status, lines, errors = run("""
        waits = []

        def interrupted():
            waits.append(1)
            if len(waits) == 2:
                raise KeyboardInterrupt
            return len(waits) > 2

        Library.jouleprof_replay_wait.answer = interrupted
        sys.exit(5)
    """)
    assert (status, errors) == (5, "")
    assert lines == ["begin 0.4 30", "wait 0.1", "wait 0.1", "stop", "wait 0.1", "leave 5",
                     "the framework's handler"]


def test_a_forked_child_re_runs_nothing():
    status, lines, _ = run("""
        import os

        if os.fork() == 0:
            sys.exit(0)
        os.wait()
    """)
    assert status == 0
    assert sum(line.startswith("begin") for line in lines) == 1


def test_nothing_was_recorded():
    assert run("Library.jouleprof_replay_begin.answer = -1")[1][0] == "begin 0.4 30"
