"""run --kernels and report --by, on a simulated GPU and a program that writes a spool.

The spool has the program's kernels exactly while the simulated GPU draws more power, so the energy of
each is known.
"""

import csv
import io
import json
import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import time

import pytest
from conftest import TOOL, Tool

# Next to the tool in the build tree.
PROGRAM = pathlib.Path(
    os.environ.get("JOULEPROF_TRACED_PROGRAM")
    or pathlib.Path(TOOL).resolve().parents[2] / "recording" / "spool" / "jouleprof_traced_program")
UUID = "GPU-12345678-1234-1234-1234-123456789abc"
IDLE = 100.0
# Name, watts above idle, period, duty and phase in seconds. They never run at once.
KERNELS = [("gemm", 300.0, 1.3, 0.31, 0.0), ("softmax", 120.0, 1.3, 0.23, 0.65)]
SECONDS = 20


# Of the board after the simulation's begin, in which the tool starts and sees it idle; the longer ones
# are for a machine that stood still in the first.
IDLE_SECONDS = (8, 16, 40)


def scenario(idle_seconds=3):
    parts = [{"shape": "constant", "watts": IDLE}]
    for _, watts, period, duty, phase in KERNELS:
        parts.append({"shape": "square", "low_watts": 0, "high_watts": watts,
                      "period_seconds": period, "duty_ratio": duty, "phase_seconds": phase,
                      "phase_from": "wall_clock", "from_seconds": idle_seconds,
                      "to_seconds": idle_seconds + SECONDS})
    # As where a process holds a context, the clocks stay up between two bursts.
    return {"devices": [{"generation": "hopper", "idle_watts": IDLE, "uuid": UUID, "power": parts,
                         "clocks": {"sm_idle_mhz": 1980}}]}


def command(*options, seconds=SECONDS):
    squares = [f"{name}:{period}:{duty}:{phase}" for name, _, period, duty, phase in KERNELS]
    return [str(PROGRAM), UUID, str(seconds), *options, *squares]


@pytest.fixture
def library(gpu):
    """A library to inject: the traced program here is not one that loads it."""
    path = gpu.folder / "libjouleprof_inject.so"
    path.write_bytes(b"")
    gpu.environment["JOULEPROF_INJECT_LIBRARY"] = str(path)
    return path


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    for idle_seconds in IDLE_SECONDS:
        tool = Tool(tmp_path_factory.mktemp("traced")).simulate(scenario(idle_seconds))
        library = tool.folder / "libjouleprof_inject.so"
        library.write_bytes(b"")
        tool.environment["JOULEPROF_INJECT_LIBRARY"] = str(library)
        # The board begins to work as the program does; one that comes too late does not begin.
        epoch = time.time()
        tool.environment["JOULEPROF_NVML_EPOCH"] = f"{epoch:.6f}"
        begin = epoch + idle_seconds
        wait = f"import sys, time; early = {begin!r} - time.time(); early > 1 or sys.exit(77); time.sleep(early)"
        tool.run = tool("run", "--kernels", "-o", "x.jprof", "--idle", "1s", "--", "sh", "-c",
                        f"{sys.executable} -c '{wait}' && exec " + " ".join(command()), status=None)
        if tool.run.returncode != 77:
            assert tool.run.returncode == 0, tool.run.err
            return tool
    pytest.fail("the tool took too long to start, three times")


def activity(tool, by, *options, file="x.jprof"):
    devices = json.loads(tool("report", file, "--by", by, "--json", *options).out)["devices"]
    assert len(devices) == 1
    return devices[0]


def micro(joules):
    return round(joules * 1e6)


def test_each_kernel_gets_its_energy(traced):
    device = activity(traced, "kernel")
    launches = {name: int(count) for name, count in map(str.split, traced.run.out.splitlines())}
    rows = {row["name"]: row for row in device["rows"]}
    assert set(rows) == {"gemm", "softmax"}
    for name, watts, _, _, _ in KERNELS:
        row = rows[name]
        assert row["launches"] == launches[name]
        assert row["provenance"] == "simulated"
        assert row["mean_watts"] == pytest.approx(watts, rel=0.1)
        low, high = row["interval_joules"]
        assert low < watts * row["busy_seconds"] < high
        assert row["resolvable"] is True
    assert [row["name"] for row in device["rows"]] == ["gemm", "softmax"]
    assert device["idle_watts"] == pytest.approx(IDLE, rel=0.02)


def test_everything_adds_up_exactly(traced):
    for by in ("kernel", "layer", "phase"):
        d = activity(traced, by)
        parts = sum(micro(d[f"{part}_joules"])
                    for part in ("idle", "kernels", "idle_between_launches", "unattributed"))
        assert parts == micro(d["measured_joules"])
    kernels = activity(traced, "kernel")
    assert sum(micro(r["energy_joules"]) for r in kernels["rows"]) == micro(kernels["kernels_joules"])
    layers = activity(traced, "layer")
    assert sum(micro(r["energy_joules"] or 0) for r in layers["rows"]) == micro(layers["kernels_joules"])
    assert micro(layers["rows"][0]["inclusive_joules"]) == micro(layers["kernels_joules"])


def test_the_summary_shows_kernels_and_the_next_command(traced):
    assert "gemm" in traced.run.err and "softmax" in traced.run.err
    assert traced.run.err.rstrip().endswith("jouleprof report x.jprof --by kernel")
    assert "nothing was traced" not in traced.run.err


def test_no_other_file_is_left_next_to_the_recording(traced):
    assert not list(traced.folder.glob("*.spool*"))


def test_text_and_csv(traced):
    text = traced("report", "x.jprof", "--by", "kernel").out
    assert text.startswith("SIMULATED") and "exactly" in text
    assert text.index("gemm") < text.index("softmax")
    assert "softmax" not in traced("report", "x.jprof", "--by", "kernel", "--top", "1").out
    tree = traced("report", "x.jprof", "--by", "layer").out
    assert re.search(r"^Model .*\n(  .*\n)?  gemm_layer", tree, re.MULTILINE)
    assert "gemm_layer" not in traced("report", "x.jprof", "--by", "layer", "--depth", "1").out
    rows = list(csv.DictReader(io.StringIO(traced("report", "x.jprof", "--by", "kernel", "--csv").out)))
    assert [r["name"] for r in rows] == ["gemm", "softmax"]
    assert float(rows[0]["energy_joules"]) > float(rows[1]["energy_joules"]) > 0


def test_the_counter_is_read_twice_a_second(traced):
    """And more often at the begin, for its phase."""
    rows = list(csv.DictReader(io.StringIO(traced("export", "x.jprof", "--format", "counters").out)))
    assert 1.8 * SECONDS < len(rows) < 6 * SECONDS


@pytest.mark.parametrize("arguments, word", [
    (["--by", "atom"], "kernel"),
    (["--by", "kernel", "--sort", "name"], "energy"),
    (["--sort", "time"], "--by"),
    (["--by", "kernel", "--json", "--csv"], "--csv"),
])
def test_invalid_options(traced, arguments, word):
    assert word in traced("report", "x.jprof", *arguments, status=2).err


def test_a_recording_without_a_trace_is_reported(gpu):
    gpu("run", "-q", "-o", "x.jprof", "--idle", "0s", "--", "true")
    assert "run --kernels" in gpu("report", "x.jprof", "--by", "kernel", status=4).err


def test_without_kernels_the_report_says_why(gpu, library):
    process = gpu("run", "--kernels", "-o", "x.jprof", "--idle", "0s", "--", "true")
    assert "nothing was traced" in process.err
    assert "nothing was traced" in gpu("report", "x.jprof", "--by", "kernel", status=4).err


def test_another_tools_library_is_kept(gpu, library):
    gpu.environment["CUDA_INJECTION64_PATH"] = "/opt/nsight/injection.so"
    process = gpu("run", "--kernels", "--no-record", "--idle", "0s", "--", "sh", "-c",
                  "echo $CUDA_INJECTION64_PATH")
    assert process.out == "/opt/nsight/injection.so\n"
    assert "/opt/nsight/injection.so" in process.err


def test_the_command_finds_the_library_and_the_folder(gpu, library):
    process = gpu("run", "-q", "--kernels", "--trace", "-o", "x.jprof", "--idle", "0s", "--", "sh", "-c",
                  "echo $CUDA_INJECTION64_PATH; echo $JOULEPROF_TRACE_WHAT; stat -c %a $JOULEPROF_TRACE")
    assert process.out.split() == [str(library), "kernels,events", "700"]


def launches_in(recording):
    with sqlite3.connect(f"file:{recording}?mode=ro", uri=True) as db:
        try:
            return db.execute("SELECT coalesce(sum(activities), 0) FROM trace_status").fetchone()[0]
        except sqlite3.OperationalError:  # its tables are still being made
            return 0


def test_records_written_after_the_tool_was_killed_are_read(gpu, library):
    gpu.simulate(scenario())
    process = gpu.start("run", "-q", "--kernels", "-o", "x.jprof", "--idle", "0s", "--", *command(seconds=12))
    recording = gpu.folder / "x.jprof"
    deadline = time.time() + 60
    while not (recording.exists() and launches_in(recording)) and time.time() < deadline:
        time.sleep(0.2)
    time.sleep(4)
    during = gpu.report("x.jprof")  # the tool still runs: it will read the rest
    assert not any("launches" in warning for warning in during["warnings"])
    process.kill()
    out, _ = process.communicate(timeout=60)  # until the program ends, too
    truth = sum(int(count) for _, count in map(str.split, out.splitlines()))
    taken = launches_in(recording)
    assert 0 < taken < truth
    spools = list(gpu.folder.glob("x.jprof.spool/*.spool"))
    assert len(spools) == 1
    for folder in (gpu.folder, gpu.folder / "moved"):
        if folder != gpu.folder:
            folder.mkdir()
            for name in ("x.jprof", "x.jprof-wal", "x.jprof-shm", "x.jprof.spool"):
                if (gpu.folder / name).exists():
                    (gpu.folder / name).rename(folder / name)
        warnings = gpu.report(folder / "x.jprof")["warnings"]
        found = [warning for warning in warnings if "launches" in warning]
        assert len(found) == 1 and str(folder / "x.jprof.spool") in found[0]
        assert f"({truth - taken} launches)" in found[0]
    # Those that the power readings cover are in the table.
    gpu("export", "moved/x.jprof", "--format", "chrome", "-o", "x.json")
    rows = {row["name"]: row for row in activity(gpu, "kernel", file="moved/x.jprof")["rows"]}
    assert set(rows) == {"gemm", "softmax"}
    assert sum(row["launches"] for row in rows.values()) <= truth


def test_the_records_of_a_killed_program_are_kept(gpu, library):
    gpu.simulate(scenario())
    gpu("run", "-q", "--kernels", "-o", "x.jprof", "--idle", "0s", "--", *command("--quit", seconds=2))
    assert not list(gpu.folder.glob("*.spool*"))
    with sqlite3.connect(gpu.folder / "x.jprof") as db:
        assert db.execute("SELECT activities > 0, ended FROM trace_status").fetchall() == [(1, 0)]


def test_a_running_process_is_joined_by_its_folder(gpu):
    folder = gpu.simulate(scenario()).folder / "theirs"
    folder.mkdir()
    program = subprocess.Popen(command(seconds=4), env={**gpu.environment, "JOULEPROF_TRACE": str(folder)},
                               stdout=subprocess.DEVNULL)
    gpu("run", "-q", "--pid", program.pid, "--trace-folder", folder, "-o", "x.jprof")
    assert program.wait() == 0
    assert len(list(folder.iterdir())) == 1
    names = {row["name"] for row in activity(gpu, "kernel")["rows"]}
    assert names == {"gemm", "softmax"}


@pytest.mark.parametrize("arguments, word", [
    (["--kernels", "--pid", "1"], "from its start"),
    (["--trace", "--", "true"], "--kernels"),
    (["--replay=0.01", "--", "true"], "100ms"),
    (["--replay", "--pid", "1"], "from its start"),
    (["--trace-folder", "x", "--", "true"], "--pid"),
    (["--kernels", "--counter-interval", "1ms", "--", "true"], "10ms"),
])
def test_options_that_do_not_fit(gpu, library, arguments, word):
    process = gpu("run", *arguments, status=None)
    assert process.returncode in (2, 125) and word in process.err


def test_a_library_that_is_not_there_is_named(gpu):
    gpu.environment["JOULEPROF_INJECT_LIBRARY"] = "/nowhere/lib.so"
    assert "/nowhere/lib.so" in gpu("run", "--kernels", "--", "true", status=125).err


def test_a_replay_is_in_no_figure(gpu, library):
    whole, replay = 6, 2
    gpu.simulate(scenario())
    process = gpu("run", "--kernels", "-o", "x.jprof", "--idle", "0s", "--",
                  *command("--replay", str(replay), seconds=whole))
    profile = json.loads(gpu("report", "x.jprof", "--json").out)
    assert profile["duration_seconds"] == pytest.approx(whole - replay, abs=0.5)
    assert any("in no figure" in text and "gpu0" in text for text in profile["warnings"])
    device = activity(gpu, "kernel")
    # From its first burst to its last before the replay; when these come is chance.
    assert whole - replay - 1 < device["duration_seconds"] < whole - replay + 0.1
    assert device["replay_seconds"] == pytest.approx(replay, abs=0.01)
    assert device["replay_joules"] > replay * 0.9 * IDLE
    launched = sum(int(line.split()[1]) for line in process.out.splitlines())
    launches = sum(row["launches"] for row in device["rows"])
    assert 0 < launches < 0.9 * launched
    assert "isolated re-runs" in gpu("report", "x.jprof", "--by", "layer").out
    parts = sum(micro(device[f"{part}_joules"]) for part in ("idle", "kernels", "idle_between_launches", "unattributed"))
    assert parts == micro(device["measured_joules"])


@pytest.mark.parametrize("option, seconds", [("--replay", "0.4"), ("--replay=1s", "1"), ("--replay=0.5", "0.5")])
def test_the_command_has_the_options_of_replay(gpu, library, option, seconds):
    process = gpu("run", "-q", "--layers", option, "--no-record", "--idle", "0s", "--", "sh", "-c",
                  "echo $JOULEPROF_REPLAY $JOULEPROF_TRACE_WHAT")
    assert process.out.split() == [seconds, "kernels,layers"]


STORE = ".local/state/jouleprof/kernels.sqlite"


def remembered_in(recording):
    with sqlite3.connect(recording) as db:
        return sorted(name for name, in db.execute("SELECT name FROM remembered_kernel"))


def test_a_later_run_uses_what_one_resolved(traced, gpu, library):
    store = traced.folder / STORE
    memory = json.loads(traced("doctor", "--json").out)["remembered_kernels"]
    assert (memory["kernels"], memory["boards"], memory["reason"]) == (2, 1, None)
    assert memory["bytes"] == store.stat().st_size and memory["first_run_time"]
    assert str(store) in traced("doctor").out
    assert remembered_in(traced.folder / "x.jprof") == []
    assert activity(traced, "kernel")["remembered"] is None

    gpu.simulate(scenario())
    copy = gpu.folder / STORE
    copy.parent.mkdir(parents=True)
    copy.write_bytes(store.read_bytes())
    for name, options in [("with", []), ("without", ["--no-memory"])]:
        gpu.environment["JOULEPROF_NVML_EPOCH"] = f"{time.time() - 2:.6f}"
        before = copy.read_bytes()
        gpu("run", "--kernels", *options, "-o", f"{name}.jprof", "--idle", "1s", "--",
            *command(seconds=4))
        if options:
            assert copy.read_bytes() == before
    assert remembered_in(gpu.folder / "with.jprof") == ["gemm", "softmax"]
    assert remembered_in(gpu.folder / "without.jprof") == []
    assert activity(gpu, "kernel", file="with.jprof")["remembered"]["kernels"] == 2
    assert activity(gpu, "kernel", "--no-memory", file="with.jprof")["remembered"] is None

    assert "removed the remembered kernels" in gpu("doctor", "--forget-kernels").err
    assert not copy.exists()
    copy.write_text("no store at all, but longer than the first bytes of one")
    process = gpu("run", "--kernels", "-o", "damaged.jprof", "--idle", "1s", "--",
                  *command(seconds=2))
    assert "doctor --forget-kernels" in process.err
    assert "no store at all" in copy.read_text()
