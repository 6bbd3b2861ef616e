"""When a program's kernels are re-run: at its end, with its status and output as they were, and on request
(docs/layers.md). A stand-in takes the place of the library: nothing needs a GPU."""

import os
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


@pytest.mark.parametrize("stream", ["None", "open(os.devnull, 'w')"])
def test_a_stream_that_is_closed_or_none_is_no_error(stream):
    status, lines, _ = run(f"""
        import os
        sys.stderr = {stream}
        if sys.stderr:
            sys.stderr.close()
    """)
    assert status == 0
    assert "leave 0" in lines


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


def test_on_request_says_what_it_lacks(monkeypatch):
    import jouleprof

    monkeypatch.delenv("CUDA_INJECTION64_PATH", raising=False)
    with pytest.raises(jouleprof.Unavailable, match="run --kernels --replay"):
        jouleprof.replay()
    with pytest.raises(jouleprof.InvalidArgument, match="-1"):
        jouleprof.replay(-1)


def test_on_request_without_a_launch_that_was_recorded():
    """The library is loaded, as by CUDA, and CUDA has not started."""
    program = """
        import ctypes, os
        ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"])
        import jouleprof
        try:
            jouleprof.replay(0.1)
        except jouleprof.Unavailable as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60,
                          env=dict(os.environ, CUDA_INJECTION64_PATH=os.environ["JOULEPROF_INJECT"]))
    assert "no launches were recorded" in done.stdout, done.stderr


@pytest.mark.parametrize("environment, said, status", [
    ({}, "records no launches; start its program with `jouleprof run --kernels --replay", 6),
    ({"JOULEPROF_TRACE": "/nowhere"}, "records no launches", 6),
    ({"JOULEPROF_TRACE": "/nowhere", "JOULEPROF_REPLAY": "0.4"}, "cannot write /nowhere/replay.", 7),
])
def test_the_tool_says_what_a_process_lacks(environment, said, status):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("JOULEPROF_TRACE")}
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={**clean, **environment})
    try:
        done = subprocess.run([os.environ["JOULEPROF_TOOL"], "replay", "--pid", str(child.pid)], capture_output=True,
                              text=True, timeout=60)
    finally:
        child.communicate(b"\n")
    assert said in done.stderr and done.returncode == status, done


def test_the_tool_brings_the_answer(tmp_path):
    """The process answers by a file in place of the request's."""
    program = f"""
        import os, time
        request = {str(tmp_path)!r} + f"/replay.{{os.getpid()}}"
        while not os.path.exists(request):
            time.sleep(0.01)
        with open(request + ".done~", "w") as file:
            file.write("2 kernels were re-run, 99.0 % of the kernels' time\\n")
        os.remove(request)
        os.rename(request + ".done~", request + ".done")
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)],
                             env=dict(os.environ, JOULEPROF_TRACE=str(tmp_path), JOULEPROF_REPLAY="0.4"))
    done = subprocess.run([os.environ["JOULEPROF_TOOL"], "replay", "--pid", str(child.pid)], capture_output=True,
                          text=True, timeout=60)
    assert child.wait(10) == 0
    assert "2 kernels were re-run, 99.0 % of the kernels' time" in done.stderr and done.returncode == 0, done
    assert list(tmp_path.iterdir()) == []
