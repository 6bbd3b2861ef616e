"""The commands of the README, in the order in which they stand, in one folder."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest
from conftest import SOURCE, TOOL
from test_kernels import PROGRAM, UUID, scenario

# Uses the simulated GPU for some seconds and, when it is traced, writes what ran, as the injected library does.
# torch.profiler's trace is written by it as well: its kernels at the times of this run.
TRAIN = """
import gzip, json, os, subprocess, sys, time
begin = time.time_ns()
if "JOULEPROF_TRACE" in os.environ:
    subprocess.run([{program!r}, {uuid!r}, "4", "gemm:1.3:0.31:0", "softmax:1.3:0.23:0.65"], check=True)
else:
    time.sleep(1)
events = [{{"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 1000.0 * i, "dur": 900.0,
           "args": {{"device": 0, "stream": 7, "correlation": i, "grid": [1, 1, 1], "block": [32, 1, 1]}}}}
          for i in range(500)]
with gzip.open("torch_trace.json.gz" if sys.argv[0] == "train.py" else os.devnull, "wt") as file:
    json.dump({{"schemaVersion": 1, "baseTimeNanoseconds": begin, "displayTimeUnit": "ms", "traceEvents": events}}, file)
"""


def commands():
    """(heading, command) of every block without a language; not what builds and installs."""
    text = (SOURCE / "README.md").read_text(encoding="utf-8")
    found = []
    for block in re.findall(r"^```\n(.*?)^```", text, flags=re.M | re.S):
        for line in block.splitlines():
            if line.startswith("jouleprof "):
                found.append(shlex.split(line, comments=True))
    return found


@pytest.fixture
def folder(tool):
    tool.simulate(scenario())
    binaries = tool.folder / "bin"
    binaries.mkdir()
    (binaries / "jouleprof").symlink_to(pathlib.Path(TOOL).resolve())
    (binaries / "python").symlink_to(sys.executable)
    for name in ("train.py", "infer.py"):
        (tool.folder / name).write_text(TRAIN.format(program=str(PROGRAM), uuid=UUID))
    (tool.folder / "examples").symlink_to(SOURCE / "examples")
    (tool.folder / "libjouleprof_inject.so").write_bytes(b"")  # nothing here loads it
    tool.environment["JOULEPROF_INJECT_LIBRARY"] = str(tool.folder / "libjouleprof_inject.so")
    tool.environment["PATH"] = f"{binaries}{os.pathsep}{os.environ['PATH']}"
    return tool


def test_the_commands_work_in_their_order(folder):
    done = []
    for command in commands():
        ended = subprocess.run(command, cwd=folder.folder, env=folder.environment, text=True, timeout=120,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
        done.append(command[1])
    assert {"doctor", "run", "report", "export", "annotate"} <= set(done)
    # Nothing went to a file of another name than the next command reads.
    assert not list(folder.folder.glob("*-2.jprof"))
    assert (folder.folder / "with_energy.json.gz").exists() and (folder.folder / "layers.html").exists()
