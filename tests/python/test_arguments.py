"""Wrong arguments are a jouleprof.Error with words; Ctrl-C ends a wait."""

import ctypes
import os
import signal
import subprocess
import sys
import pathlib
import textwrap
import time

import jouleprof
import pytest
from conftest import CONSTANT


@pytest.mark.parametrize("arguments", [
    {"devices": 5}, {"log": 7}, {"shortest_window": "x"}, {"shortest_window": float("nan")},
    {"shortest_window": 0}, {"history": -1}, {"history": float("inf")}, {"history": None},
    {"devices": b"cpu"}, {"devices": "\udce9"}, {"devices": ["\udce9"]}, {"log": "a\0b.jprof"}, {"gpu_indices": 0}, {"gpu_indices": [2**40]}, {"cuda": "maybe"}, {"cuda": [1]},
    {"log": "x.jprof", "overwrite": "no"}, {"own_sampler": "false"}, {"own_sampler": None},
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
        # It would be the latest power, and not that before `end`.
        with pytest.raises(jouleprof.InvalidArgument, match="begin and end"):
            monitor.power(end=monitor.now())
        for call in (monitor.begin_window, monitor.end_window):
            with pytest.raises(jouleprof.InvalidArgument, match="a window's name is a text"):
                call(["x"])
        with pytest.raises(jouleprof.InvalidArgument, match="prefix is a text"):
            jouleprof.metrics(monitor, 3)
        with pytest.raises(jouleprof.InvalidArgument, match="factors is a jouleprof.Factors"):
            window.cost(0.3)
        with pytest.raises(jouleprof.InvalidArgument, match="monitor is a jouleprof.Monitor"):
            jouleprof.PowerLimitOptimizer("gpu0")


def test_numbers_of_numpy_are_numbers(machine):
    """Times that a program kept in an array, and GPUs that it counted with one."""
    numpy = pytest.importorskip("numpy")
    with machine.gpus(CONSTANT).monitor("gpu0") as monitor:
        begin, end = numpy.array([monitor.now() - 2, monitor.now() - 1])
        found = monitor.between(begin, end)
        assert (type(found.begin), found.begin, found.end) == (int, begin, end)
        assert monitor.power(begin, end)["gpu0"].domain == monitor.power(int(begin), int(end))["gpu0"].domain
    with jouleprof.Monitor(gpu_indices=numpy.arange(1)) as monitor:
        assert monitor.gpu_indices == [0]
    path = pathlib.Path(__file__).parents[2] / "examples/h200-deit.jprof"
    assert str(jouleprof.report(path, top=numpy.int64(3)))
    with pytest.raises(jouleprof.InvalidArgument, match="is one recording"):
        jouleprof.open(path, run=numpy.uint8(2)).report()


def test_a_text_is_neither_true_nor_false():
    with jouleprof.Monitor() as monitor:
        monitor.begin_window("w")
        for call in (lambda: monitor.window("v", sync_execution="false"),
                     lambda: monitor.begin_window("w", restart="no"),
                     lambda: monitor.begin_window("w", "false", restart=True),
                     lambda: monitor.end_window("w", sync_execution="false"),
                     lambda: monitor.end_window("w", cancel="no")):
            with pytest.raises(jouleprof.InvalidArgument, match="is True or False, not '"):
                call()
        assert monitor.end_window("w", cancel=0).time > 0  # no call has lost it


def test_a_name_that_is_no_text_for_others_is_written_in_one_way():
    with jouleprof.Monitor() as monitor:
        with monitor.window("\ud800a\0") as window:
            pass
        begin = monitor.now()
        names = {window.name, monitor.between(begin, begin).name, monitor.between(begin, begin, "\ud800a\0").name,
                 monitor.total("\ud800a\0").name}
    assert names == {"", "\ufffda\ufffd"}


def test_files_that_are_none(tmp_path):
    for call in (jouleprof.open, jouleprof.report, jouleprof.open_all, jouleprof.plot.power, jouleprof.plot.sweep):
        with pytest.raises(jouleprof.InvalidArgument, match="is a folder, not a recording"):
            call(tmp_path)
    report = jouleprof.report(pathlib.Path(__file__).parents[2] / "examples/h200-deit.jprof")
    for call in (jouleprof.open, jouleprof.report, jouleprof.plot.power, report.save_html, report.save_figure):
        with pytest.raises(jouleprof.InvalidArgument, match="named by a path, not 3"):
            call(3)
    with pytest.raises(jouleprof.NotFound, match="'' does not exist"):
        jouleprof.open("")
    with pytest.raises(jouleprof.InvalidArgument, match="not 4"):
        jouleprof.open_all(4)
    # It would be an SVG, which the name denies.
    with pytest.raises(jouleprof.InvalidArgument, match="ends in neither .svg nor .png"):
        report.save_figure(tmp_path / "x.pdf")
    report.save_figure(tmp_path / "x.SVG")
    assert [file.name for file in tmp_path.iterdir()] == ["x.SVG"]


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


class CWindow(ctypes.Structure):
    _fields_ = [("begin", ctypes.c_int64), ("end", ctypes.c_int64), ("name", ctypes.c_uint32), ("flags", ctypes.c_uint32)]


@pytest.fixture
def library(machine):
    """The C library that the package has loaded, with a monitor."""
    machine.gpus(CONSTANT)
    with open("/proc/self/maps", encoding="utf-8") as maps:
        path = next(line.split()[-1] for line in maps if "libjouleprof.so" in line or "libjouleprof-" in line)
    library = ctypes.CDLL(path)
    library.jouleprof_monitor_begin.restype = CWindow
    library.jouleprof_now.restype = ctypes.c_int64
    monitor = ctypes.c_void_p()
    assert library.jouleprof_monitor_open(None, ctypes.byref(monitor), None, 0) == 0
    yield library, monitor
    library.jouleprof_monitor_close(monitor)


def count_of(library, monitor, name):
    found, room = (ctypes.c_uint64 * 3)(), ctypes.create_string_buffer(100_000)
    library.jouleprof_monitor_total(monitor, name, ctypes.c_int64(-1), found, room, None, 0)
    return found[0]


def test_what_was_cancelled_or_has_not_begun_is_in_no_total_of_the_c_library(library):
    library, monitor = library
    name = library.jouleprof_monitor_name(monitor, b"x")
    cancelled = library.jouleprof_monitor_begin(monitor, name)
    library.jouleprof_window_cancel(monitor, ctypes.byref(cancelled))
    never = CWindow(name=name)
    for window in (cancelled, never):
        library.jouleprof_window_end(monitor, ctypes.byref(window))
        assert library.jouleprof_window_add(monitor, ctypes.byref(window)) == 6
    assert library.jouleprof_window_add(monitor, ctypes.byref(CWindow(0, library.jouleprof_now(), name))) == 6
    assert count_of(library, monitor, name) == 0
    ended = library.jouleprof_monitor_begin(monitor, name)
    library.jouleprof_window_end(monitor, ctypes.byref(ended))
    library.jouleprof_window_cancel(monitor, ctypes.byref(ended))
    assert ended.end >= ended.begin > 0 and count_of(library, monitor, name) == 1


def test_the_longest_timeout_of_the_c_library_waits(library):
    library, monitor = library
    window = library.jouleprof_monitor_begin(monitor, 0)
    time.sleep(0.05)
    library.jouleprof_window_end(monitor, ctypes.byref(window))
    room = ctypes.create_string_buffer(100_000)
    assert library.jouleprof_window_energy(monitor, ctypes.byref(window), ctypes.c_int64(2**63 - 1), room, None, 0) == 0
    assert b"have not reported" not in room.raw


def test_files_and_curves_of_nonsense(machine):
    path = pathlib.Path(__file__).parents[2] / "examples/h200-deit.jprof"
    for run in ("x", 0, 1.5, True):
        with pytest.raises(jouleprof.InvalidArgument, match="run is the number of a run, from 1 on, not"):
            jouleprof.open(path, run=run)
    with pytest.raises(jouleprof.InvalidArgument, match="plot.curves takes curves.* not '"):
        jouleprof.plot.curves(str(path))
    monitor = machine.gpus(CONSTANT).monitor("gpu0")
    # As a number it would be a file of this process that is open.
    with pytest.raises(jouleprof.InvalidArgument, match="profile_path is a path, not 3"):
        jouleprof.PowerLimitOptimizer(monitor, profile_path=3)
    from jouleprof.zeus.monitor import ZeusMonitor
    from jouleprof.zeus.monitor.carbon import FileCarbonIntensity
    with pytest.raises(jouleprof.InvalidArgument, match="log_file is a path, not 3"):
        ZeusMonitor(gpu_indices=[0], log_file=3)
    with pytest.raises(jouleprof.NotFound, match="nix.csv does not exist"):
        FileCarbonIntensity("nix.csv")


def test_a_folder_for_tables_that_is_none(tmp_path):
    pytest.importorskip("pyarrow")
    recording = jouleprof.open(pathlib.Path(__file__).parents[2] / "examples/h200-deit.jprof")
    (tmp_path / "file").touch()
    for folder in (None, 3, "", tmp_path / "file"):
        with pytest.raises(jouleprof.InvalidArgument):
            recording.write_parquet(folder)


def test_a_server_that_records_nonsense_goes_on(capsys):
    from jouleprof.serving import Recorder

    with Recorder() as recorder:
        for arguments in ({"id": 3}, {"id": "a", "tenant": 3}, {"id": "a", "model": b"x"}):
            with pytest.raises(jouleprof.InvalidArgument, match="of a request is a text, not"):
                recorder.request(**arguments)
        recorder.step(1, 2, [3])
    assert "a step cannot be, and is left out: its shares are none" in capsys.readouterr().err
