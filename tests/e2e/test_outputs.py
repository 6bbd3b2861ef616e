"""Files that commands write: never one of their inputs, and never half of one."""

import json
import os
import pathlib
import shlex
import signal
import subprocess
import threading
import time

import pytest
from conftest import TOOL

TRACE = {"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 0, "dur": 1000,
     "args": {"device": 0, "stream": 7, "correlation": 1}}]}


@pytest.fixture
def recorded(gpu):
    begin = time.time_ns()
    gpu("run", "-o", "x.jprof", "--idle", "0", "-q", "--", "sleep", "1")
    trace = json.loads(json.dumps(TRACE))
    # In the middle of the command, however long a busy machine takes to start the tool and to end it.
    trace["baseTimeNanoseconds"] = (begin + time.time_ns()) // 2
    (gpu.folder / "trace.json").write_text(json.dumps(trace))
    return gpu


def contents(folder):
    return {p.name: p.read_bytes() for p in pathlib.Path(folder).iterdir() if p.is_file()}


@pytest.mark.parametrize("command", [
    "annotate trace.json --power x.jprof -f -o trace.json",
    "annotate trace.json --power x.jprof -f -o x.jprof",
    "annotate trace.json --power x.jprof -f -o ./link.jprof",
    "export x.jprof -f -o x.jprof",
    "export x.jprof --format csv -f -o hard.jprof",
    "report x.jprof --html x.jprof -f",
    "import log.csv -f -o log.csv",
    "import --format csv --samples log.csv -f -o log.csv",
    "merge x.jprof -f -o x.jprof",
    "compare x.jprof x.jprof --format markdown=x.jprof",
    "run --json log.csv --html log.csv -f -- true",
    "run -o new.jprof --json new.jprof -- true",
    "run -f -o log.csv -- cat log.csv",
    "run --json log.csv -- cat log.csv",
    "sweep -f -o log.csv -- cat log.csv",
])
def test_an_input_is_never_the_output(recorded, command):
    folder = recorded.folder
    (folder / "link.jprof").symlink_to("x.jprof")
    os.link(folder / "x.jprof", folder / "hard.jprof")
    (folder / "log.csv").write_text("# gpu pwr\n# Idx W\n0 61\n0 62\n")
    before = contents(folder)
    refused = recorded(*command.split(), status=None)
    assert refused.returncode in (2, 7, 125), refused.err
    assert "jouleprof: " in refused.err
    assert contents(folder) == before


@pytest.mark.parametrize("command", [
    "export x.jprof --from 1h -f -o old",
    "report x.jprof --html old -f --from 1h",
    "import broken.csv -f -o old",
    "annotate broken.json --power x.jprof -f -o old",
    "merge x.jprof broken.csv -f -o old",
    "run -f -o old -- /no/such/program",
    "run -f -o old --devices gpu7 -- true",
    "sweep -f -o old -- /no/such/program",
])
def test_a_failure_leaves_the_old_file(recorded, command):
    folder = recorded.folder
    (folder / "broken.csv").write_text("# gpu pwr\n# Idx W\n0 x\n")
    (folder / "broken.json").write_text('{"traceEvents": [{"ph": "X", "ts": 1 2}]}')
    (folder / "old").write_text("the old file")
    before = contents(folder)
    assert recorded(*command.split(), status=None).returncode != 0
    assert contents(folder) == before


def test_a_replaced_recording_stays_until_the_work_begins(gpu):
    gpu("run", "-o", "x.jprof", "-q", "--idle", "0", "--", "sleep", "0.5")
    old = (gpu.folder / "x.jprof").read_bytes()
    process = gpu.start("run", "-f", "-o", "x.jprof", "--idle", "30s", "--", "touch", "started")
    time.sleep(1)
    process.kill()
    process.communicate()
    assert (gpu.folder / "x.jprof").read_bytes() == old
    assert not (gpu.folder / "started").exists()
    gpu("run", "-f", "-o", "x.jprof", "-q", "--idle", "0", "--", "sleep", "0.6")
    assert gpu.report("x.jprof")["command"] == ["sleep", "0.6"]
    left = {p.name for p in gpu.folder.iterdir()}
    assert not {n for n in left if n.startswith(".jouleprof") or n.endswith(("-wal", "-shm"))}


def test_two_runs_into_one_file_are_refused(gpu):
    first = gpu.start("run", "-o", "x.jprof", "-q", "--idle", "0", "--", "sleep", "30")
    try:
        deadline = time.time() + 30
        while not (gpu.folder / "x.jprof").exists() and time.time() < deadline:
            time.sleep(0.05)
        for verb in (["run", "-f", "-o", "x.jprof", "--", "touch", "second"],
                     ["bench", "deit-b", "-f", "-o", "x.jprof"]):
            refused = gpu(*verb, status=None)
            assert refused.returncode != 0
            assert "another jouleprof is writing it" in refused.err
        assert not (gpu.folder / "second").exists()
    finally:
        first.send_signal(signal.SIGTERM)
        first.communicate()
    assert gpu.report("x.jprof")["command"] == ["sleep", "30"]
    gpu("run", "-f", "-o", "x.jprof", "-q", "--idle", "0", "--", "true")
    assert gpu.report("x.jprof")["command"] == ["true"]


def test_streams_and_devices_are_written_to_as_they_are(recorded):
    text = recorded("export", "x.jprof", "--format", "csv").out
    assert text
    assert recorded("export", "x.jprof", "--format", "csv", "-o", "/dev/stdout").out == text
    recorded("export", "x.jprof", "--format", "csv", "-o", "/dev/null")
    recorded("export", "x.jprof", "--format", "csv", "-f", "-o", "/dev/null")
    assert pathlib.Path("/dev/null").is_char_device()
    os.mkfifo(recorded.folder / "pipe")
    read = []
    reader = threading.Thread(
        target=lambda: read.append((recorded.folder / "pipe").read_text()), daemon=True)
    reader.start()
    recorded("export", "x.jprof", "--format", "csv", "-o", "pipe")
    reader.join(10)
    assert read == [text]
    assert (recorded.folder / "pipe").is_fifo()
    with open(recorded.folder / "appended", "w+") as out:
        out.write("before\n")
        out.flush()
        subprocess.run([TOOL, "export", "x.jprof", "--format", "csv", "-o", "/dev/stdout"],
                       cwd=recorded.folder, env=recorded.environment, stdout=out, check=True)
        out.seek(0)
        assert out.read() == "before\n" + text


@pytest.mark.parametrize("command", [
    ("export", "--format", "chrome", "x.jprof"), ("report", "x.jprof", "--json"), ("monitor", "--delay", "10ms"),
    ("run", "--json", "-", "--", "sleep", "0.2")])
def test_a_reader_that_has_enough_is_no_error(recorded, command):
    process = recorded.start(*command)
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(60) == 0, err
    assert "cannot write" not in err


def test_a_link_stays_and_permissions_too(recorded):
    folder = recorded.folder
    (folder / "real").write_text("old")
    (folder / "real").chmod(0o640)
    (folder / "link").symlink_to("real")
    recorded("export", "x.jprof", "--format", "csv", "-f", "-o", "link")
    assert (folder / "link").is_symlink()
    assert (folder / "real").stat().st_mode & 0o777 == 0o640
    assert (folder / "real").read_text() != "old"
    assert "exists; choose another name" in recorded(
        "export", "x.jprof", "--format", "csv", "-o", "link", status=7).err
    assert "it is a folder" in recorded("export", "x.jprof", "-f", "-o", ".", status=7).err


@pytest.mark.parametrize("text, where", [
    ('[{"ph": "X", "ts": 12abc}]', "not JSON"),
    ('[{"ph": "X"} {"ph": "X"}]', "comma"),
    ('[{"ph": "X"},]', "no value"),
    ('[, {"ph": "X"}]', "comma"),
    ('{"a": 1 "traceEvents": []}', "comma"),
    ('{"traceEvents": [{"ph": "X", "args": {"a" 1}}]}', "not JSON"),
    ('{"traceEvents": []} {"more": 1}', "follows its end"),
])
def test_broken_json_is_refused(recorded, text, where):
    (recorded.folder / "broken.json").write_text(text)
    refused = recorded("annotate", "broken.json", "--power", "x.jprof", "-o", "out.json", status=4)
    assert where in refused.err
    assert not (recorded.folder / "out.json").exists()


@pytest.mark.parametrize("name", [b"caf\xe9 \xff", b"a\x01\x1fb", b"\xed\xa0\x80"])
def test_names_that_no_json_reader_takes_are_mended(recorded, name):
    folder = recorded.folder
    odd = (folder / "trace.json").read_bytes().replace(b'"gemm"', b'"' + name + b'"')
    (folder / "odd.json").write_bytes(odd)
    notes = recorded("annotate", "odd.json", "--power", "x.jprof", "-o", "out.json").err
    assert "no UTF-8, which become U+FFFD" in notes
    json.loads((folder / "out.json").read_text(encoding="utf-8"))


def test_messages_are_of_one_line_and_can_be_typed(tool):
    (tool.folder / "s.csv").write_text("t_s,power_w\n" + "".join(f"{i},100\n" for i in range(9)))
    said = tool("import", "--format", "csv", "--samples", "s.csv", "--device-name", "GPU\x1b[2J\u202e\nx",
                "-o", "two words.jprof").err
    assert "traits" in said and "\x1b" not in said and "\u202e" not in said
    assert all(line.startswith("jouleprof: ") for line in said.splitlines())
    next_command = said.rsplit("next: jouleprof ", 1)[1]
    assert "GPU" in tool(*shlex.split(next_command)).out


def test_byte_order_marks(recorded):
    folder = recorded.folder
    bom = b"\xef\xbb\xbf"
    (folder / "bom.json").write_bytes(bom + (folder / "trace.json").read_bytes())
    recorded("annotate", "bom.json", "--power", "x.jprof", "-o", "out.json")
    events = json.loads((folder / "out.json").read_text())["traceEvents"]
    assert any(e["name"] == "gemm" for e in events)
    (folder / "log").write_bytes(bom + b"# gpu pwr\n# Idx W\n0 61\n0 62\n")
    recorded("import", "log", "-o", "log.jprof")


@pytest.mark.parametrize("cut", ["# gpu", "# gpu   pw", "# Idx", "# Idx ", "#", "gpu"])
def test_a_log_that_is_cut_in_a_repeated_header(tool, cut):
    log = "# gpu   pwr gtemp\n# Idx     W     C\n" + 5 * "    0    61    40\n"
    (tool.folder / "log").write_text(log + "# gpu   pwr gtemp\n" + cut if "Idx" in cut else log + cut)
    tool("import", "log", "-o", "x.jprof")
    (tool.folder / "whole").write_text(log)
    tool("import", "whole", "-o", "y.jprof")
    assert tool.report("x.jprof")["domains"] == tool.report("y.jprof")["domains"]
