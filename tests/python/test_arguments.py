"""Wrong arguments are a jouleprof.Error with words; Ctrl-C ends a wait."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import jouleprof
import pytest


@pytest.mark.parametrize("arguments", [
    {"devices": 5}, {"log": 7}, {"shortest_window": "x"}, {"shortest_window": float("nan")},
    {"shortest_window": 0}, {"history": -1}, {"history": float("inf")}, {"history": None},
    {"log": "a\0b.jprof"}, {"gpu_indices": 0}, {"gpu_indices": [2**40]}, {"cuda": "maybe"}, {"cuda": [1]},
])
def test_a_monitor_of_nonsense(arguments):
    with pytest.raises(jouleprof.InvalidArgument):
        jouleprof.Monitor(**arguments)


def test_names_that_differ_behind_a_zero_have_totals_of_their_own():
    with jouleprof.Monitor() as monitor:
        for name in ("a", "a\0b", "a\0b"):
            with monitor.window(name):
                pass
        assert [monitor.total(name).count for name in ("a", "a\0b")] == [1, 2]


def test_calls_of_nonsense():
    with jouleprof.Monitor() as monitor:
        for name in (5, None, b"x", ["x"]):
            with pytest.raises(jouleprof.InvalidArgument, match="text"):
                monitor.window(name)
        with monitor.window("w") as window:
            pass
        for timeout in ("x", -1, float("nan"), [1]):
            with pytest.raises(jouleprof.InvalidArgument, match="timeout"):
                window.wait(timeout)
        with pytest.raises(jouleprof.InvalidArgument):
            monitor.total(5)
        with pytest.raises(jouleprof.InvalidArgument, match="timeout"):
            monitor.total("w", timeout="soon")
        with pytest.raises(jouleprof.InvalidArgument, match="now"):
            monitor.between(0.5, 1.5)


@pytest.mark.parametrize("factors", [
    {"price_per_kwh": -1, "currency": "EUR"}, {"price_per_kwh": "1", "currency": "EUR"},
    {"price_per_kwh": float("nan"), "currency": "EUR"}, {"price_per_kwh": 1, "currency": ""},
    {"price_per_kwh": 1, "currency": 3}, {"grams_co2e_per_kwh": -0.1},
    {"grams_co2e_per_kwh": float("inf")},
])
def test_factors_of_nonsense(factors):
    with pytest.raises(jouleprof.InvalidArgument):
        jouleprof.Factors(source="a bill", **factors)


def test_an_interruption_ends_a_wait():
    program = textwrap.dedent("""
        import jouleprof
        monitor = jouleprof.Monitor()
        begin = monitor.now()
        print("waits", flush=True)
        # An end ten minutes ahead is not reported before.
        monitor.between(begin, begin + 600 * 10**9, timeout=601)
    """)
    # Where this runs in the background of a shell, interruptions are ignored.
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, env=os.environ,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    assert process.stdout.readline() == "waits\n"
    time.sleep(1)
    began = time.time()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in err
    assert time.time() - began < 30
