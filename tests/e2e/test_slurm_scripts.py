"""packaging/slurm: a prolog or epilog that fails drains the node, so that these end with 0 whatever happens."""

import fcntl
import os
import resource
import shutil
import signal
import subprocess

import pytest
from conftest import SOURCE

SCRIPTS = SOURCE / "packaging" / "slurm"


class Node:
    def __init__(self, folder):
        self.jobs = folder / "jobs"
        self.log = folder / "log"
        self.bin = folder / "bin"
        self.bin.mkdir()
        # Only what the scripts name, so that a test can take one away.
        for name in ("sh", "mkdir", "flock", "grep", "chmod", "mv", "rm", "tr", "timeout", "echo"):
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
