"""A script under `jouleprof run`: one sampler, one recording."""

import csv
import json
import os
import resource
import subprocess
import sys

import pytest

import jouleprof

from conftest import CONSTANT

SCRIPT = """
import time, jouleprof
monitor = jouleprof.Monitor()
for _ in range(3):
    with monitor.window("step") as w:
        time.sleep(0.2)
m = w.energy["gpu0"]
print(monitor.source, m.provenance, m.joules / w.time)
own = jouleprof.Monitor("gpu0", own_sampler=True)
print(own.source)
"""


@pytest.mark.skipif(not os.path.exists(os.environ.get("JOULEPROF_TOOL", "")),
                    reason="JOULEPROF_TOOL is not built")
def test_windows_land_in_the_recording(machine):
    machine.gpus(CONSTANT)
    tool = os.environ["JOULEPROF_TOOL"]
    path = str(machine.folder / "run.jprof")
    done = subprocess.run(
        [tool, "run", "--idle", "0s", "--shortest", "50ms", "-o", path, "--",
         sys.executable, "-c", SCRIPT],
        check=False, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    source, provenance, watts, own = done.stdout.split()
    assert (source, provenance, own) == ("run", "simulated", "own")
    assert float(watts) == pytest.approx(250, rel=0.05)
    report = json.loads(subprocess.run(
        [tool, "report", path, "--json"], check=True, stdout=subprocess.PIPE).stdout)
    (steps,) = [w for w in report["windows"] if w["name"] == "step"]
    assert steps["count"] == 3
    rows = exported(tool, path)
    assert len(rows) == 3
    second, third = (row["begin_seconds"] for row in rows[1:])
    assert exported(tool, path, "--from", second + "s") == rows[1:]
    assert exported(tool, path, "--from", second + "s", "--to", third + "s") == rows[1:2]


FORKS = """
import os, jouleprof

def sockets():
    found = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")]
    return sum(name.startswith("socket:") for name in found)

before = sockets()
monitor = jouleprof.Monitor("gpu0")
opened = sockets() - before
reading, writing = os.pipe()
if os.fork() == 0:
    count = sockets() - before
    own = jouleprof.Monitor("gpu0")
    monitor.close()
    with own.window("child") as w:
        pass
    os.write(writing, f"{count} {sockets() - before} {w.energy['gpu0'].provenance}".encode())
    os._exit(0)
os.wait()
with monitor.window("parent") as w:
    pass
print(opened, os.read(reading, 99).decode(), w.energy["gpu0"].provenance)
"""


def test_a_forked_child_has_no_connection_of_its_parent(machine):
    machine.gpus(CONSTANT)
    tool = os.environ["JOULEPROF_TOOL"]
    out = subprocess.run([tool, "run", "-q", "--idle", "0s", "-o", str(machine.folder / "run.jprof"), "--", sys.executable,
                          "-c", FORKS], check=True, timeout=120, stdout=subprocess.PIPE, text=True).stdout.split()
    opened, in_child, own = map(int, out[:3])
    assert opened == own > 0 and in_child == 0
    assert out[3:] == ["simulated"] * 2


MANY = """
import collections, os, resource, sys, time, jouleprof
read, write = os.pipe()
children = []
for _ in range(40):
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        monitor = jouleprof.Monitor()
        first = monitor.snapshot().domains[0].power is not None
        with monitor.window("step"):
            time.sleep(0.2)
        os.write(write, f"{monitor.source}-{first} ".encode())
        time.sleep(3)
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
os.close(write)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], *sorted(set(os.read(read, 65536).decode().split())))
"""


def test_more_programs_than_the_tool_was_given_files_for(machine):
    """The tool raises its own limit, and the command has the one that the tool was given."""
    machine.gpus(CONSTANT)
    tool = os.environ["JOULEPROF_TOOL"]
    path = str(machine.folder / "many.jprof")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    done = subprocess.run(
        [tool, "run", "--idle", "0s", "-o", path, "--", sys.executable, "-c", MANY], check=False, timeout=120,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard)))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["100", "run-True"]
    assert len(exported(tool, path)) == 40


def test_programs_beyond_the_last_file_are_named(machine):
    machine.gpus(CONSTANT)
    tool = os.environ["JOULEPROF_TOOL"]
    path = str(machine.folder / "few.jprof")
    done = subprocess.run(
        [tool, "run", "--idle", "0s", "-o", path, "--", sys.executable, "-c", MANY.replace("(1024, ", "(60, ")],
        check=False, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60)))
    assert done.returncode == 0, done.stderr
    report = subprocess.run([tool, "report", path], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert "no file descriptors or memory left for further programs" in " ".join(report.split())


LEAVES = """
import multiprocessing, os, signal, sys, time, jouleprof

def child():
    with jouleprof.Monitor().window("child"):
        time.sleep(0.3)

if __name__ == "__main__":
    worker = multiprocessing.get_context("fork").Process(target=child)
    worker.start()
    worker.join()
    monitor = jouleprof.Monitor()
    monitor.begin_window("train")
    for _ in range(3):
        with monitor.window("step"):
            time.sleep(0.05)
    if sys.argv[1] == "_exit":
        os._exit(0)
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))
"""


@pytest.mark.parametrize("end", ["_exit", "SIGTERM", "SIGKILL"])
def test_windows_survive_a_program_that_does_not_end_in_order(machine, end):
    machine.gpus(CONSTANT)
    tool = os.environ["JOULEPROF_TOOL"]
    script = machine.folder / "leaves.py"
    script.write_text(LEAVES)
    path = str(machine.folder / "run.jprof")
    subprocess.run([tool, "run", "--idle", "0s", "-o", path, "--", sys.executable, str(script), end],
                   check=False, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    report = json.loads(subprocess.run(
        [tool, "report", path, "--json"], check=True, stdout=subprocess.PIPE).stdout)
    assert {w["name"]: w["count"] for w in report["windows"]} == {"child": 1, "step": 3}
    named = [text for text in report["warnings"] if "was open when the process ended" in text]
    assert len(named) == 1 and named[0].startswith("window 'train' of process ")
    assert named[0] in jouleprof.open(path).warnings



BRIEF = """
import subprocess, sys, time
time.sleep(2.2)
for _ in range(4):
    subprocess.run([sys.executable, "-c", "import jouleprof; jouleprof.Monitor().begin_window('x')"], check=True)
    time.sleep(0.1)
"""


def test_brief_programs_with_a_monitor_are_in_the_table_of_processes(machine):
    machine.gpus(CONSTANT)
    tool = os.environ["JOULEPROF_TOOL"]
    path = str(machine.folder / "run.jprof")
    subprocess.run([tool, "run", "--idle", "0s", "-o", path, "--", sys.executable, "-c", BRIEF],
                   check=True, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    report = json.loads(subprocess.run(
        [tool, "report", path, "--json"], check=True, stdout=subprocess.PIPE).stdout)
    assert len(report["processes"]) == 5


def exported(tool, path, *part):
    done = subprocess.run([tool, "export", path, "--format", "windows", *part], check=True,
                          stdout=subprocess.PIPE, text=True)
    return [row for row in csv.DictReader(done.stdout.splitlines())
            if row["name"] == "step" and (row["device"], row["domain"]) == ("gpu0", "gpu")]


RANKS = """
import time, jouleprof
monitors = [jouleprof.Monitor(f"gpu{i}") for i in (0, 1)]
windows = [m.begin_window("train") for m in monitors]
time.sleep(1)
for m in monitors: m.end_window("train")
"""


def test_windows_of_monitors_with_other_devices_share_no_figure(machine, tmp_path):
    """Two windows of 1 s, one on a board of 250 W and one on 400 W: 325 J each, 650 J in all."""
    if not os.path.exists(os.environ.get("JOULEPROF_TOOL", "")):
        pytest.skip("JOULEPROF_TOOL is not built")
    machine.gpus(CONSTANT, {**CONSTANT, "idle_watts": 400})
    subprocess.run([os.environ["JOULEPROF_TOOL"], "run", "-q", "--idle", "0s", "-o", tmp_path / "x.jprof", "--",
                    sys.executable, "-c", RANKS], check=True)
    text = subprocess.run([os.environ["JOULEPROF_TOOL"], "report", tmp_path / "x.jprof"], check=True, text=True,
                          capture_output=True).stdout
    row = next(line for line in text.splitlines() if line.startswith("train")).split()
    assert row[1] == "2" and row[3] == "s" and row[5] == "J", text
    assert float(row[4]) == pytest.approx(325 * float(row[2]), rel=0.02), text


EDGES = """
import json, time, jouleprof
monitor = jouleprof.Monitor("gpu0")
found = {}
for i in range(6):
    with monitor.window(f"w{i}") as window:
        time.sleep(0.2 + 0.05 * i)
    found[f"w{i}"] = window.energy["gpu0"].joules
print(json.dumps(found))
"""


def test_a_programs_figures_are_those_of_the_report(machine):
    """Edges lie within steps of power: a figure that was guessed before the sensors reported is 5 to 30 % away."""
    machine.gpus({"generation": "hopper", "idle_watts": 100,
                  "power": {"shape": "square", "low_watts": 100, "high_watts": 600, "period_seconds": 0.31}})
    tool, path = os.environ["JOULEPROF_TOOL"], str(machine.folder / "run.jprof")
    done = subprocess.run([tool, "run", "-q", "--idle", "0s", "--shortest", "50ms", "-o", path, "--",
                           sys.executable, "-c", EDGES], check=True, timeout=120, stdout=subprocess.PIPE, text=True)
    rows = subprocess.run([tool, "export", path, "--format", "windows"], check=True, stdout=subprocess.PIPE,
                          text=True).stdout.splitlines()
    reported = {row["name"]: float(row["energy_joules"]) for row in csv.DictReader(rows)
                if (row["device"], row["domain"]) == ("gpu0", "gpu")}
    assert json.loads(done.stdout) == pytest.approx(reported, rel=0.03)
