"""packaging/slurm: a prolog or epilog that fails drains the node, so that these end with 0 whatever happens."""

import fcntl
import json
import os
import resource
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import SOURCE, TOOL, domain
from test_kernels import PROGRAM, UUID, activity
from test_serve import wait_for

SCRIPTS = SOURCE / "packaging" / "slurm"


class Node:
    def __init__(self, folder):
        self.jobs = folder / "jobs"
        self.log = folder / "log"
        self.bin = folder / "bin"
        self.bin.mkdir()
        # Only what the scripts name, so that a test can take one away.
        for name in ("sh", "mkdir", "flock", "grep", "chmod", "mv", "rm", "tr", "timeout", "echo", "setsid"):
            (self.bin / name).symlink_to(shutil.which(name))
        os.mkfifo(self.log)  # no limit of a file's size applies to it
        self.read_end = os.open(self.log, os.O_RDWR | os.O_NONBLOCK)
        (self.bin / "logger").write_text(f'#!/bin/sh\necho "$*" >>"{self.log}"\n')
        (self.bin / "logger").chmod(0o755)

    def run(self, script, job="7", gpus="0,1", **options):
        environment = {"PATH": str(self.bin), "JOULEPROF_JOB_MAPPING_DIR": str(self.jobs), "SLURM_JOB_ID": job}
        if gpus is not None:
            environment["SLURM_JOB_GPUS"] = gpus
        done = subprocess.run(["/bin/sh", SCRIPTS / f"{script}.sh"], env=environment, cwd=options.pop("cwd", "/"),
                              capture_output=True, text=True, timeout=30, check=False, **options)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")

    def mapping(self):
        if not self.jobs.exists():
            return {}
        return {path.name: path.read_text().split() for path in self.jobs.iterdir() if path.name[0] != "."}

    def logged(self):
        try:
            return os.read(self.read_end, 1 << 16).decode()
        except BlockingIOError:
            return ""


@pytest.fixture
def node(tmp_path):
    made = Node(tmp_path)
    yield made
    os.close(made.read_end)


def without_space():
    """Each write to a file fails, as on a full disk."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))


def test_a_job_is_written_and_removed(node):
    node.run("prolog")
    node.run("prolog", job="8", gpus="1,GPU-0a-1b")
    node.run("prolog", job="8", gpus="1")  # again
    assert node.mapping() == {"0": ["7"], "1": ["7", "8"], "GPU-0a-1b": ["8"]}
    node.run("epilog")
    assert node.mapping() == {"1": ["8"], "GPU-0a-1b": ["8"]}
    node.run("epilog", job="8")
    assert node.mapping() == {} and node.logged() == ""
    node.run("epilog", job="8")
    node.run("prolog", job="9", gpus=None)
    assert node.mapping() == {}


@pytest.mark.parametrize("script", ["prolog", "epilog"])
def test_no_folder_can_be_used(node, script):
    node.jobs.write_text("a file")
    node.run(script)
    assert script == "epilog" or "job 7 has no mapping" in node.logged()


@pytest.mark.parametrize("script", ["prolog", "epilog"])
def test_a_program_is_missing(node, script):
    node.run("prolog")
    for name in ("flock", "timeout", "logger"):
        (node.bin / name).unlink()
        node.run(script, job="8")
        if name == "flock":
            assert "there is no flock" in node.logged()
    assert node.mapping() == {"0": ["7"], "1": ["7"]}


def test_a_full_disk(node):
    node.run("prolog", gpus="0")
    node.run("prolog", job="8", gpus="0,1")
    node.run("prolog", job="9", gpus="2", preexec_fn=without_space)
    assert "job 9 has no mapping" in node.logged()
    assert node.mapping() == {"0": ["7", "8"], "1": ["8"]}
    # No label rather than that of a job that has ended.
    node.run("epilog", job="8", preexec_fn=without_space)
    assert "it was removed with all of its jobs" in node.logged()
    assert node.mapping() == {}


@pytest.mark.parametrize("script", ["prolog", "epilog"])
def test_a_lock_that_is_never_given_back(node, script):
    node.run("prolog")
    with open(node.jobs / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        node.run(script, job="7", gpus="2")
        assert "has the lock" in node.logged()
        assert node.mapping() == {"0": ["7"], "1": ["7"]}
    # The label of a job that has ended goes once the lock is given back.
    if script == "epilog":
        wait_for("its removal", lambda: node.mapping() == {})


@pytest.mark.parametrize("gpus", ["../../etc/passwd", "/etc/passwd", "*", "a b;touch x", "$(touch x)", "-rf", "0\n../x"])
def test_what_is_no_gpu_stays_in_the_folder(node, gpus, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").touch()
    node.run("prolog", gpus=f"{gpus},3", cwd=elsewhere)
    assert [path.name for path in elsewhere.iterdir()] == ["file"]
    assert not (tmp_path / "x").exists()
    assert node.mapping()["3"] == ["7"]
    assert set(node.mapping()) <= {"0", "3", "a", "x", "-rf"}
    node.run("epilog")
    assert node.mapping() == {}


def test_a_job_that_is_no_number(node):
    node.run("prolog", job="7\n8", gpus="0")
    assert "no number" in node.logged() and node.mapping() == {}
    node.run("prolog", job="-e", gpus="0")
    assert node.mapping() == {}
    node.run("epilog", job="-e")


# As slurmstepd starts a task: the prolog's exports are set, then the process becomes the command.
STEPD = """
import glob, os, subprocess, sys, time
script, *command = sys.argv[1:]
os.environ["SLURM_TASK_PID"] = str(os.getpid())
said = subprocess.run([script], stdout=subprocess.PIPE, text=True, timeout=20)
assert said.returncode == 0
for line in said.stdout.splitlines():
    name, _, value = line.removeprefix("export ").partition("=")
    assert line.startswith("export ")
    os.environ[name] = value
# The recorder starts meanwhile, which takes a busy machine as long as the task.
end = time.monotonic() + 3
made = os.environ.get("JOULEPROF_STEP_DIR", "") + "/*." + os.environ["SLURM_PROCID"] + ".jprof"
while not glob.glob(made) and time.monotonic() < end:
    time.sleep(0.01)
os.execvp(command[0], command)
"""


def task(gpu, rank, *command, **variables):
    """The status of a task, after its epilog; what a step leaves behind is killed then."""
    environment = {**gpu.environment, "JOULEPROF_TOOL": str(TOOL), "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "3",
                   "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "SLURM_NTASKS": "2", **variables}
    done = subprocess.Popen([sys.executable, "-c", STEPD, SCRIPTS / "task_prolog.sh", *map(str, command)],
                            env=environment, cwd=gpu.folder, start_new_session=True)
    status = done.wait(timeout=60)
    end = subprocess.run([SCRIPTS / "task_epilog.sh"], env=environment, cwd=gpu.folder, check=True, timeout=30,
                         capture_output=True)
    assert end.stdout == b""
    with pytest.raises(ProcessLookupError):  # the recorder has ended by itself
        os.killpg(done.pid, signal.SIGKILL)
    return status


def test_a_task_is_recorded_without_a_change(gpu):
    gpu.simulate({"devices": [{"generation": "hopper", "uuid": UUID, "idle_watts": 100,
                               "power": {"shape": "constant", "watts": 300}}]})
    library = gpu.folder / "libjouleprof_inject.so"
    library.write_bytes(b"")
    steps = gpu.folder / "steps"
    kernels = [PROGRAM, UUID, "4", "gemm:1.3:0.31:0"]
    assert task(gpu, 0, *kernels, JOULEPROF_STEP_DIR=str(steps), JOULEPROF_STEP_KERNELS="1",
                JOULEPROF_INJECT_LIBRARY=str(library)) == 0
    assert task(gpu, 1, "sh", "-c", "sleep 2; exit 3", JOULEPROF_STEP_DIR=str(steps)) == 3
    found = sorted(path.name for path in steps.iterdir() if path.is_file())
    assert found == ["jouleprof.4711.3.0.jprof", "jouleprof.4711.3.1.jprof"]
    # The tasks followed each other here, so that nothing of them is counted twice.
    for name, least in zip(found, (3, 1)):
        report = gpu.report(steps / name)
        seconds = report["duration_seconds"]
        assert seconds > least and domain(report, "gpu")["energy_joules"] == pytest.approx(300 * seconds, rel=0.05)
    assert "gemm" in {row["name"] for row in activity(gpu, "kernel", file=steps / found[0])["rows"]}
    gpu("merge", *(steps / name for name in found), "-o", "step.jprof")
    ranks = json.loads(gpu("report", "step.jprof", "--by", "rank", "--json").out)["ranks"]
    assert {(row["rank"], row["job"], row["step"]) for row in ranks if row["rank"] is not None} == {
        (0, "4711", "3"), (1, "4711", "3")}


@pytest.mark.parametrize("variables", [
    {}, {"JOULEPROF_STEP_DIR": "/proc/nowhere"}, {"JOULEPROF_STEP_DIR": "steps", "JOULEPROF_TOOL": "/nowhere/tool"},
    {"JOULEPROF_STEP_DIR": "steps", "JOULEPROF_STEP_OPTIONS": "--no-such-option"}])
def test_a_task_runs_also_where_it_cannot_be_recorded(gpu, variables):
    assert task(gpu, 0, "sh", "-c", "exit 5", **variables) == 5
    assert not list(gpu.folder.glob("**/*.jprof"))
