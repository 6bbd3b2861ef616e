"""The command runs and its status comes back, whatever the machine refuses the tool."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

import pytest
from conftest import HOPPER_250W, SOURCE, TOOL, domain

JOB = ["sh", "-c", "echo ran > ran; exit 3"]


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    """The library that makes calls fail."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("faults") / "faults.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-Wall", "-Werror", "-o", library,
                    SOURCE / "tests" / "faults" / "fault_library.c", "-ldl", "-lpthread"],
                   check=True)
    return library


def failing(tool, library, text):
    tool.environment["LD_PRELOAD"] = str(library)
    tool.environment["JOULEPROF_FAULTS"] = text
    return tool


def ran(tool):
    found = (tool.folder / "ran").exists()
    (tool.folder / "ran").unlink(missing_ok=True)
    return found


def shell(tool, script, **options):
    """A script in which $TOOL is the tool; returns the process."""
    environment = {**tool.environment, "TOOL": TOOL}
    return subprocess.run(["bash", "-c", script], cwd=tool.folder, env=environment, text=True,
                          capture_output=True, timeout=100, **options)


@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full", "2> >(exec true)",
                                    ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("trap", ["", "trap '' PIPE; "])
def test_a_stderr_that_takes_nothing(gpu, stderr, trap):
    run = '"$TOOL" run --idle 0 {} -- sh -c "echo ran > ran; exit 3" ' + stderr
    assert shell(gpu, trap + run.format("-o x.jprof")).returncode == 3
    assert ran(gpu)
    assert domain(gpu.report("x.jprof"), "gpu")["energy_joules"] is not None
    # A folder that does not exist is refused before the command, one that takes no file is not.
    assert shell(gpu, trap + run.format("-o /nonexistent/x.jprof")).returncode == 125
    assert not ran(gpu)
    assert shell(gpu, trap + run.format("-o /proc/x.jprof")).returncode == 3
    assert ran(gpu)
    assert shell(gpu, f'{trap}"$TOOL" report nothing.jprof {stderr}').returncode == 3
    assert shell(gpu, f'{trap}"$TOOL" frobnicate {stderr}').returncode == 2
    assert shell(gpu, f'{trap}"$TOOL" {stderr}').returncode == 2
    assert shell(gpu, f'{trap}"$TOOL" merge x.jprof -f -o y.jprof {stderr}').returncode == 0


def test_a_terminal_that_hung_up(gpu):
    leader, follower = pty.openpty()
    process = subprocess.Popen([TOOL, "run", "--idle", "0", "-o", "x.jprof", "--", *JOB],
                               cwd=gpu.folder, env={**gpu.environment, "TERM": "xterm"},
                               stdin=subprocess.DEVNULL, stdout=follower, stderr=follower)
    os.close(leader)
    os.close(follower)
    assert process.wait(60) == 3
    assert ran(gpu)


def test_a_background_job_of_a_terminal_that_stops_writers(gpu):
    """stty tostop: a write of the tool would stop the command, too."""
    script = f"""stty tostop; set -m
{TOOL} run --idle 0 -o x.jprof -- sh -c 'sleep 1.5; echo ran > ran; exit 3' & wait $!; echo status $?"""
    pid, leader = pty.fork()
    if pid == 0:
        os.chdir(gpu.folder)
        os.execve("/bin/bash", ["bash", "-c", script], {**gpu.environment, "TERM": "xterm"})
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    out = b""
    with contextlib.suppress(OSError):
        while select.select([leader], [], [], 30)[0] and (more := os.read(leader, 65536)):
            out += more
    os.close(leader)
    os.waitpid(pid, 0)
    assert b"status 3" in out, out
    assert ran(gpu)
    assert b"Nothing was measured" in out
    assert b"\0337" not in out  # no status bar on a terminal that is another job's


@pytest.mark.parametrize("verb", ["--help", "--version", "report --help", "report x.jprof",
                                  "report x.jprof --json", "export x.jprof", "doctor"])
def test_a_full_stdout_is_an_error_with_words(gpu, verb):
    gpu("run", "--idle", "0", "-q", "-o", "x.jprof", "--", "true")
    full = shell(gpu, f'"$TOOL" {verb} > /dev/full')
    assert full.returncode == 7
    assert "cannot write to the standard output: No space left" in full.stderr
    assert shell(gpu, f'"$TOOL" {verb} >&-').returncode == 7


def test_a_closed_stream_is_closed_for_the_command(gpu):
    script = """"$TOOL" run -q --idle 0 --no-record -- sh -c 'test -e /proc/$$/fd/2 && echo open || echo closed' > out {}"""
    for stderr, state in (("2>&-", "closed"), ("", "open")):
        shell(gpu, script.format(stderr))
        assert (gpu.folder / "out").read_text() == state + "\n"


def test_a_folder_that_the_command_removes(gpu):
    (gpu.folder / "folder").mkdir()
    result = gpu("run", "--idle", "0", "-o", "folder/x.jprof", "--", "sh", "-c", "sleep 1.5; rm -r folder; exit 5",
                 status=5)
    assert "no recording was kept" in result.err
    assert "what came before is in" not in result.err


def test_the_file_size_limit(gpu):
    limited = shell(gpu, 'ulimit -f 8; "$TOOL" run --idle 0 -o x.jprof -- '
                         'sh -c "sleep 1; echo ran > ran; exit 3"')
    assert limited.returncode == 3, limited.stderr
    assert ran(gpu)
    assert "the recording stopped early" in limited.stderr or "cannot" in limited.stderr
    assert "J" in limited.stderr and "250" in limited.stderr
    assert "ulimit -f" in limited.stderr
    if "what came before is in" in limited.stderr:
        gpu("report", "x.jprof")
    else:
        assert not (gpu.folder / "x.jprof").exists()
    # The command has the signal as it was.
    inherited = shell(gpu, 'ulimit -f 8; "$TOOL" run -q --idle 0 --no-record -- '
                           'sh -c "yes > big"')
    assert inherited.returncode == 128 + signal.SIGXFSZ
    gpu("run", "--idle", "0", "-q", "-f", "-o", "x.jprof", "--", "sleep", "1")
    before = (gpu.folder / "x.csv").write_text("old")
    written = shell(gpu, 'ulimit -f 0; "$TOOL" export x.jprof -f -o x.csv')
    assert written.returncode == 7, (written.stderr, before)
    assert "ulimit -f" in written.stderr
    assert (gpu.folder / "x.csv").read_text() == "old"
    merged = shell(gpu, 'ulimit -f 0; "$TOOL" merge x.jprof -o m.jprof')
    assert merged.returncode == 7, merged.stderr
    assert "ulimit -f" in merged.stderr
    assert not (gpu.folder / "m.jprof").exists()


def test_a_limit_of_descriptors_is_named(gpu):
    limited = shell(gpu, 'ulimit -n 16; "$TOOL" run --idle 0 -o x.jprof -- sh -c "echo ran > ran; exit 3"')
    assert limited.returncode == 3 and ran(gpu)
    assert "Too many open files (raise the limit: ulimit -n)" in limited.stderr


def test_a_cpu_without_proc_has_a_reason(gpu):
    gpu.environment["JOULEPROF_ROOT"] = str(gpu.folder)
    gpu("run", "-q", "--idle", "0", "-o", "x.jprof", "--", "sleep", "1")
    cpu = domain(gpu.report("x.jprof"), "cpu")
    assert cpu["energy_joules"] is None and "/proc/stat" in cpu["reason"]
    assert "without CPU and DRAM" in gpu("report", "x.jprof").out.replace("\n", " ")


@pytest.mark.parametrize("calls", ["write:{}+:ENOSPC", "open:{}+:ENOSPC", "write:{}+:EIO"])
def test_a_disk_that_is_full_from_some_call_on(gpu, faults, calls):
    """The summary is whole, whenever the disk fills up, and what is said to be kept is there."""
    for n in (1, 2, 3, 5, 8, 12, 20, 40):
        failing(gpu, faults, calls.format(n) if "write" in calls else calls.format(10 * n))
        (gpu.folder / "x.jprof").unlink(missing_ok=True)
        process = gpu("run", "--idle", "0", "-o", "x.jprof", "--", *JOB, status=None)
        assert process.returncode == 3, (n, process.err)
        assert ran(gpu)
        del gpu.environment["LD_PRELOAD"]
        if "what came before is in" in process.err:
            gpu("report", "x.jprof")
        if "no recording was kept" in process.err:
            assert not (gpu.folder / "x.jprof").exists()


def test_the_summary_comes_from_memory_where_the_disk_fills_up(gpu, faults):
    failing(gpu, faults, "write:60+:ENOSPC")
    process = gpu("run", "--idle", "0", "-o", "x.jprof", "--json", "/dev/stdout", "--",
                  "sleep", "2.5")
    report = json.loads(process.out)
    found = domain(report, "gpu")
    truth = 250 * report["duration_seconds"]
    low, high = found["interval_joules"]
    assert report["duration_seconds"] > 2.4
    assert low <= truth <= high and high - low < 0.3 * truth


@pytest.mark.parametrize("text", ["pthread_create:1+:EAGAIN", "pthread_create:2+:EAGAIN",
                                  "pthread_create:3+:EAGAIN", "pthread_create:2:EAGAIN",
                                  "fork:1+:EAGAIN", "pipe2:1+:EMFILE", "pipe2:2+:EMFILE",
                                  "socket:1+:EMFILE"])
def test_no_more_threads_processes_or_descriptors(gpu, faults, text):
    failing(gpu, faults, text)
    process = gpu("run", "--idle", "0", "-o", "x.jprof", "--", *JOB, status=None)
    assert process.returncode == 3, process.err
    assert ran(gpu)
    assert "jouleprof: " in process.err or "warning" in process.err.lower()


def test_no_more_memory(gpu, faults):
    for n in (1000, 2000, 3000, 5000, *range(7000, 10000, 150), 12000, 20000):
        failing(gpu, faults, f"malloc:{n}+:ENOMEM")
        process = gpu("run", "--idle", "0", "-q", "-o", "x.jprof", "-f", "--", *JOB, status=None)
        assert process.returncode in (3, 125), (n, process.returncode, process.err)
        assert ran(gpu) or process.returncode == 125 and "jouleprof: " in process.err


def test_a_limit_of_memory(gpu):
    """Where the tool starts at all, the command does."""
    for kilobytes in (60_000, 100_000, 200_000, 400_000):
        limited = shell(gpu, f'ulimit -v {kilobytes}; "$TOOL" run -q --idle 0 -f -o x.jprof -- '
                             'sh -c "echo ran > ran; exit 3"')
        if "error while loading" in limited.stderr or limited.returncode == 127:
            continue
        assert limited.returncode in (3, 125), (kilobytes, limited.stderr)
        assert ran(gpu) or limited.returncode == 125


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetName", "nvmlDeviceGetHandleByIndex_v2"])
def test_a_driver_that_hangs_in_its_first_calls(tool, call):
    tool.simulate({**HOPPER_250W, "faults": [{"kind": "hang", "call": call}]})
    began = time.time()
    process = tool("run", "--idle", "0", "-o", "x.jprof", "--", *JOB, status=3)
    assert time.time() - began < 40  # and not for ever
    assert ran(tool)
    assert "has not answered for 10 s" in process.err
    assert "has not answered for 10 s" in domain(tool.report("x.jprof"), "gpu")["reason"]


@pytest.mark.parametrize("file", ["sys/class/hwmon/hwmon0/name", "sys/class/powercap/intel-rapl:0/energy_uj"])
def test_a_file_of_a_sensor_that_hangs(gpu, file):
    """The kernel's files hang with the driver behind them. A pipe without a writer hangs, too."""
    root = gpu.folder / "root"
    for name, text in {"sys/class/powercap/intel-rapl:0/name": "package-0\n",
                       "sys/class/powercap/intel-rapl:0/max_energy_range_uj": "1000000000\n",
                       "sys/class/powercap/intel-rapl:0/energy_uj": "1000\n",
                       "sys/class/hwmon/hwmon0/name": "corsairpsu\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / file).unlink()
    os.mkfifo(root / file)
    gpu.environment["JOULEPROF_ROOT"] = str(root)
    assert "jouleprof" in gpu("--version").out  # and all else that reads no sensor
    process = gpu("run", "--idle", "0", "-o", "x.jprof", "--", *JOB, status=3)
    assert ran(gpu)
    assert f"a file in {root / file.split('/intel')[0].split('/hwmon0')[0]} has not answered for 10 s" in process.err
    assert domain(gpu.report("x.jprof"), "gpu")["energy_joules"] > 0


def test_a_driver_that_crashes(tool, tmp_path):
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("needs a C compiler")
    driver = tmp_path / "crash.so"
    source = "#include <stdlib.h>\n__attribute__((constructor)) static void begin(void) { abort(); }\n"
    subprocess.run([compiler, "-shared", "-fPIC", "-x", "c", "-o", driver, "-"], check=True,
                   text=True, input=source)
    tool.environment["JOULEPROF_NVML_LIBRARY"] = str(driver)
    process = tool("run", "--idle", "0", "-o", "x.jprof", "--", *JOB, status=3)
    assert "the command runs without being measured" in process.err
    assert ran(tool)
    assert "internal error" in tool("monitor", "-c", "1", status=1).err


def test_a_crash_while_the_command_runs(gpu):
    process = gpu("run", "--idle", "0", "-o", "x.jprof", "--", "sh", "-c",
                  "sleep 0.3; kill -ABRT $PPID; sleep 0.3; echo ran > ran; exit 3", status=3)
    assert "the command goes on unmeasured" in process.err
    assert ran(gpu)


def test_a_configuration_that_is_no_file(tool):
    settings = tool.folder / ".config" / "jouleprof"
    settings.mkdir(parents=True)
    os.mkfifo(settings / "config")
    process = tool("run", "--idle", "0", "--no-record", "--", *JOB, status=3)
    assert "is a pipe into which nothing is written" in process.err
    assert ran(tool)
    (settings / "config").unlink()
    (settings / "config").mkdir()
    assert "going on without it" in tool("run", "--no-record", "--idle", "0", "--", *JOB,
                                         status=3).err
    tool.environment["JOULEPROF_CONFIG"] = str(tool.folder)
    assert "jouleprof: " in tool("run", "--no-record", "--", *JOB, status=125).err
    del tool.environment["JOULEPROF_CONFIG"]
    piped = shell(tool, 'JOULEPROF_CONFIG=<(echo idle = 0s) "$TOOL" run --no-record -- true')
    assert piped.returncode == 0, piped.stderr


@pytest.fixture
def public_folder():
    """A folder that every user may enter."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        yield folder


def test_a_home_that_may_not_be_entered(gpu, public_folder):
    home = public_folder / "home"
    home.mkdir()
    home.chmod(0)
    work = public_folder / "work"
    work.mkdir()
    work.chmod(0o777)
    script = (f'cd {work}; HOME={home} "$TOOL" run --idle 0 -- sh -c "echo ran > ran; exit 3"')
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("needs setpriv where tests run as root")
        probe = subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "test", "-x", TOOL])
        if probe.returncode != 0:
            pytest.skip("the build folder is not for other users")
        script = f"setpriv --reuid=65534 --clear-groups bash -c '{script}'"
    process = shell(gpu, script)
    home.chmod(0o700)
    assert process.returncode == 3, process.stderr
    assert (work / "ran").exists()
    assert "going on without it" in process.stderr


@pytest.mark.parametrize("option", ["-o", "--json", "--html"])
def test_an_output_in_a_folder_that_is_not_there_is_refused(gpu, option):
    process = gpu("run", "--idle", "0", option, "missing/x", "--", *JOB, status=125)
    assert "missing" in process.err and not ran(gpu)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_ended_before_the_command_began(gpu, how):
    process = gpu.start("run", "-o", "x.jprof", "--idle", "30s", "--", *JOB)
    deadline = time.time() + 30
    while not (gpu.folder / "x.jprof").exists() and time.time() < deadline:
        time.sleep(0.05)
    time.sleep(1.5)
    process.send_signal(how)
    _, err = process.communicate(timeout=60)
    assert not ran(gpu)
    report = gpu("report", "x.jprof", status=4)  # no result, no joules
    assert "not started" in report.err or "before it started the command" in report.err
    assert report.out == ""
    if how == signal.SIGINT:
        assert process.returncode == 130 and "not started" in err and " J" not in err


def test_a_second_interruption_in_the_idle_after_the_work(gpu):
    process = gpu.start("run", "-o", "x.jprof", "--idle", "20s", "--", *JOB, start_new_session=True)
    deadline = time.time() + 60
    while not (gpu.folder / "ran").exists() and time.time() < deadline:
        time.sleep(0.05)
    time.sleep(1)
    for _ in range(3):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "J" in err and "x.jprof" in err
    assert gpu.report("x.jprof")["complete"] is True


def test_monitor_to_a_full_disk(gpu, faults):
    full = shell(gpu, '"$TOOL" monitor -d 100ms -c 3 > /dev/full')
    assert full.returncode == 7
    assert "cannot write to the standard output: No space left" in full.stderr
    failing(gpu, faults, "write:30+:ENOSPC")
    process = gpu("monitor", "-d", "200ms", "-c", "10", "--record", "m.jprof", status=7)
    assert "disk is full" in process.err


# ---- the words of errors

@pytest.mark.parametrize("arguments, words", [
    ("run --pid -3", "above 0"),
    ("monitor -c 0", "'0' is not a number above 0"),
    ("report x.jprof --by kernel --top -3", "below 0"),
    ("report x.jprof --by layer --depth -1", "above 0"),
    ("run -o '' -- true", "value is missing"),
    ("report x.jprof --html ''", "value is missing"),
    ("export ''", "value is missing"),
    ("run --idle 3 -- true", "write it with a unit"),
    ("serve --max-series -1", "0 on"),
])
def test_refusals_are_short_and_clear(tool, arguments, words):
    process = shell(tool, f'"$TOOL" {arguments}')
    assert process.returncode in (2, 125)
    assert words in process.stderr, process.stderr
    assert max(map(len, process.stderr.splitlines())) < 200


def test_no_idle_needs_no_unit(gpu):
    gpu("run", "-q", "--no-record", "--idle", "0", "--", "true")


def test_an_unknown_setting_is_named(tool):
    settings = tool.folder / ".config" / "jouleprof"
    settings.mkdir(parents=True)
    (settings / "config").write_text("idel = 5s\nidle = 0s\nobjective = energy\n")
    process = tool("run", "--no-record", "--", "true")
    assert "'idel'" in process.err and "'objective'" not in process.err
