"""One recorder a host: the processes of a job that each start `jouleprof run` give one recording."""

import decimal
import glob
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from conftest import SOURCE, TOOL
from test_kernels import PROGRAM as TRACED

# Says that it runs, uses CPU time or time, and ends with a status.
PROGRAM = """
import os, pathlib, sys, time
cpu, wall, status = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
pathlib.Path("runs." + next(os.environ[n] for n in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK")
                            if n in os.environ)).touch()
end = time.process_time() + cpu
while time.process_time() < end:
    pass
time.sleep(wall)
sys.exit(status)
"""
LAUNCHER = SOURCE / "tests" / "e2e" / "launch_ranks.py"


def torchrun(rank, world):
    return {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": 29500, "TORCHELASTIC_RUN_ID": "none"}


def slurm(rank, world):
    """What srun sets (https://slurm.schedmd.com/srun.html, output environment variables)."""
    return {"SLURM_JOB_ID": 4711, "SLURM_STEP_ID": 0, "SLURM_PROCID": rank, "SLURM_LOCALID": rank,
            "SLURM_NTASKS": world, "SLURM_NODEID": 0, "SLURM_JOB_NODELIST": "node[1-2]"}


class Job:
    """Starts ranks, each as `jouleprof run`."""

    def __init__(self, tool):
        self.tool = tool
        self.ranks = []

    def start_command(self, variables, command, options=(), idle="0s", output="job.%h.jprof"):
        keep = dict(self.tool.environment)
        self.tool.environment |= {name: str(value) for name, value in variables.items()}
        process = self.tool.start("run", "--idle", idle, "-o", output, *options, "--", *command)
        self.tool.environment.clear()
        self.tool.environment.update(keep)
        self.ranks.append(process)
        return process

    def start(self, variables, cpu=0.0, wall=0.0, status=0, **options):
        return self.start_command(variables, [sys.executable, "-c", PROGRAM, cpu, wall, status], **options)

    def wait(self):
        """The exit statuses."""
        for process in self.ranks:
            process.out, process.err = process.communicate(timeout=120)
        return [process.returncode for process in self.ranks]

    def files(self):
        return sorted(os.path.basename(name) for name in glob.glob(str(self.tool.folder / "job.*.jprof")))

    def file(self):
        """The one recording of the job."""
        (name,) = self.files()
        return name

    def wait_until_running(self, *ranks):
        wait_for(lambda: all((self.tool.folder / f"runs.{rank}").exists() for rank in ranks))

    def recorder(self):
        """The process that holds the job's lock."""
        found = []
        wait_for(lambda: found.extend(p for p in self.ranks if holds_lock(p.pid)) or found)
        return found[0]


def wait_for(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def holds_lock(pid):
    for name in glob.glob(f"/proc/{pid}/fd/*"):
        try:
            if "/jouleprof-job-" in os.readlink(name):
                return True
        except OSError:
            pass
    return False


@pytest.fixture
def job(gpu):
    made = Job(gpu)
    yield made
    for process in made.ranks:
        if process.poll() is None:
            process.kill()
            process.communicate()


def exact(tool, *arguments):
    return json.loads(tool("report", *arguments, "--json").out, parse_float=decimal.Decimal)


def check_one_recording(job, file, ranks):
    """All ranks are in it, and its energy is that of the host once."""
    single = exact(job.tool, file)
    job.tool("merge", file, "-o", "merged.jprof")
    merged = exact(job.tool, "merged.jprof", "--by", "rank")
    assert merged["energy_joules"] == single["total"]["energy_joules"] > 0
    rows = {row["rank"]: row for row in merged["ranks"] if row["rank"] is not None}
    assert sorted(rows) == list(range(ranks))
    (board,) = [d for d in single["domains"] if d["domain"] == "gpu"]
    assert float(board["energy_joules"]) == pytest.approx(250 * float(single["duration_seconds"]), rel=0.02)
    return rows


@pytest.mark.parametrize("variables", [torchrun, slurm])
def test_eight_ranks_are_one_recording(job, variables):
    for rank in range(8):
        job.start(variables(rank, 8), cpu=0.1, wall=1, status=rank + 1)
    assert job.wait() == list(range(1, 9))
    rows = check_one_recording(job, job.file(), 8)
    assert all(row["cpu_seconds"] >= decimal.Decimal("0.09") for row in rows.values())
    assert sum("recorded by process" in process.err for process in job.ranks) == 7


def test_steps_of_a_job_are_recorded_apart(job):
    for step in (0, 1):
        job.start({**slurm(0, 2), "SLURM_STEP_ID": step}, wall=0.5, output=f"step{step}.jprof")
    assert job.wait() == [0, 0]
    for step in (0, 1):
        assert exact(job.tool, f"step{step}.jprof", "--by", "rank")["ranks"][0]["step"] == str(step)


def test_the_recording_lasts_until_the_last_command_has_ended(job):
    job.start(torchrun(0, 2), wall=0.2, status=7)
    recorder = job.recorder()
    job.start(torchrun(1, 2), wall=1.5)
    assert job.wait() == [7, 0]
    assert recorder is job.ranks[0] and "recorded by process" in job.ranks[1].err
    assert exact(job.tool, job.file())["duration_seconds"] >= decimal.Decimal("1.4")


def test_signals_reach_the_command_of_a_member(job):
    job.start(torchrun(0, 2), wall=1)
    job.recorder()
    member = job.start(torchrun(1, 2), wall=60)
    job.wait_until_running(0, 1)
    member.send_signal(signal.SIGTERM)
    assert job.wait() == [0, 128 + signal.SIGTERM]


def test_a_member_that_is_killed_leaves_the_recording_whole(job):
    job.start(torchrun(0, 2), wall=1.5)
    job.recorder()
    member = job.start(torchrun(1, 2), wall=0.7)
    job.wait_until_running(0, 1)
    member.kill()
    assert job.wait() == [0, -signal.SIGKILL]
    check_one_recording(job, job.file(), 2)


def test_another_process_records_when_the_recorder_is_killed(job):
    host = os.uname().nodename
    job.start(torchrun(0, 3), wall=1)
    recorder = job.recorder()
    for rank in (1, 2):
        job.start(torchrun(rank, 3), cpu=0.3, wall=3, status=rank)
    job.wait_until_running(0, 1, 2)
    time.sleep(1.2)  # the recording has a second
    recorder.kill()
    assert job.wait() == [-signal.SIGKILL, 1, 2]
    assert job.files() == [f"job.{host}-2.jprof", f"job.{host}.jprof"]
    rest = exact(job.tool, f"job.{host}-2.jprof", "--by", "rank")
    assert {1, 2} <= {row["rank"] for row in rest["ranks"]}
    assert rest["energy_joules"] > 250  # more than a second
    (warning,) = [w for w in exact(job.tool, f"job.{host}-2.jprof")["warnings"] if "is in neither" in w]
    assert f"job.{host}.jprof" in warning
    job.tool("merge", *job.files(), "-o", "merged.jprof")
    merged = exact(job.tool, "merged.jprof")
    assert any("were not recorded; their energy is missing" in warning for warning in merged["warnings"])
    assert any("was cut off before its end" in warning for warning in merged["warnings"])
    assert merged["energy_joules"] == sum(exact(job.tool, name)["total"]["energy_joules"] for name in job.files())


def test_signals_reach_the_command_of_a_process_that_records_after_another(job):
    job.start(torchrun(0, 2), wall=60)
    recorder = job.recorder()
    member = job.start(torchrun(1, 2), wall=60)
    job.wait_until_running(0, 1)
    recorder.kill()
    wait_for(lambda: holds_lock(member.pid))
    time.sleep(1)
    member.terminate()
    member.communicate(timeout=30)
    assert member.returncode == 128 + signal.SIGTERM


def test_every_status_comes_back_whenever_the_recorder_is_killed(job):
    """At moments from its start to the end of its command."""
    for moment in (0.02, 0.1, 0.3, 0.7):
        started = Job(job.tool)
        job.ranks.append(started.start(torchrun(0, 3), wall=1))
        for rank in (1, 2):
            job.ranks.append(started.start(torchrun(rank, 3), wall=1, status=rank))
        time.sleep(moment)
        recorders = [p for p in started.ranks if holds_lock(p.pid)]
        for process in recorders:
            process.kill()
        statuses = started.wait()
        for rank, (process, status) in enumerate(zip(started.ranks, statuses)):
            assert status == (-signal.SIGKILL if process in recorders else rank), (moment, statuses)
        for name in started.files():
            os.remove(job.tool.folder / name)


def test_another_process_records_when_the_recorder_is_killed_before_the_work(job):
    job.start(torchrun(0, 3), idle="30s")
    recorder = job.recorder()
    for rank in (1, 2):
        job.start(torchrun(rank, 3), cpu=0.2, status=rank)
    time.sleep(0.5)  # they wait for the recorder
    recorder.kill()
    assert job.wait() == [-signal.SIGKILL, 1, 2]
    host = os.uname().nodename
    assert job.files() == [f"job.{host}-2.jprof", f"job.{host}.jprof"]
    rows = {row["rank"]: row for row in exact(job.tool, f"job.{host}-2.jprof", "--by", "rank")["ranks"]}
    assert {1, 2} <= set(rows)
    (warning,) = [w for w in exact(job.tool, f"job.{host}-2.jprof")["warnings"] if "is in neither" in w]
    assert f"job.{host}.jprof" in warning


@pytest.mark.parametrize("variables", [torchrun, slurm])
def test_a_process_that_starts_after_others_have_ended_has_the_next_name(job, variables):
    host = os.uname().nodename
    for rank in range(3):
        job.start(variables(rank, 3), status=rank)
        job.wait()
    assert [rank.returncode for rank in job.ranks] == [0, 1, 2]
    assert job.files() == [f"job.{host}-2.jprof", f"job.{host}-3.jprof", f"job.{host}.jprof"]
    merged = exact(job.tool, *job.files(), "--by", "rank")
    assert [row["rank"] for row in merged["ranks"]] == [0, 1, 2]


def test_another_job_does_not_take_the_next_name(gpu):
    """torchrun's variables are often those of the last job, and its processes are another launcher's."""
    run = ["run", "-q", "--idle", "0s", "-o", "job.x.jprof", "--", sys.executable, "-c", PROGRAM, 0, 1.5, 0]
    assert gpu_run(gpu, sys.executable, LAUNCHER, 2, TOOL, *run).returncode == 0
    again = gpu_run(gpu, sys.executable, LAUNCHER, 2, TOOL, *run)
    assert again.returncode == 125 and "exists" in again.err
    assert Job(gpu).files() == ["job.x.jprof"]


def test_a_job_of_one_process_needs_no_lock(job):
    job.start(torchrun(0, 1), wall=0.5)
    job.wait_until_running(0)
    assert not holds_lock(job.ranks[0].pid)
    assert job.wait() == [0]


def test_a_launcher_starts_the_tool(gpu):
    """As `torchrun --no-python jouleprof run ...`."""
    launched = Job(gpu)
    gpu.environment["PATH"] = os.path.dirname(TOOL) + os.pathsep + gpu.environment["PATH"]
    done = gpu_run(gpu, sys.executable, LAUNCHER, 4, TOOL, "run", "-q", "--idle", "0s", "-o", "job.%h.jprof", "--",
                   sys.executable, "-c", PROGRAM, 0.2, 1, 5)
    assert done.returncode == 5, done.err
    check_one_recording(launched, launched.file(), 4)


def test_the_tool_starts_a_launcher(gpu):
    """As `jouleprof run -- torchrun ...`."""
    gpu("run", "-q", "--idle", "0s", "-o", "job.x.jprof", "--", sys.executable, LAUNCHER, 4, sys.executable, "-c",
        PROGRAM, 0.3, 0.3, 0)
    check_one_recording(Job(gpu), "job.x.jprof", 4)


@pytest.mark.skipif(not shutil.which("mpirun"), reason="mpirun is missing (apt-get install openmpi-bin)")
def test_mpirun(gpu):
    allow = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    done = gpu_run(gpu, "mpirun", *allow, "--oversubscribe", "-n", 4, TOOL, "run", "-q", "--idle", "0s",
                   "-o", "job.%h.jprof", "--", sys.executable, "-c", PROGRAM, 0.2, 1, 0)
    assert done.returncode == 0, done.err
    launched = Job(gpu)
    rows = check_one_recording(launched, launched.file(), 4)
    assert rows[0]["launcher"] == "openmpi"


def gpu_run(tool, *command):
    done = subprocess.Popen([str(word) for word in command], cwd=tool.folder, env=tool.environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    done.out, done.err = done.communicate(timeout=120)
    return done


def test_kernels_of_all_ranks_are_in_the_recording(job):
    library = job.tool.folder / "libjouleprof_inject.so"
    library.write_bytes(b"")  # nothing here loads it
    job.tool.environment["JOULEPROF_INJECT_LIBRARY"] = str(library)
    board = "GPU-12345678-1234-1234-1234-123456789abc"
    job.tool.simulate({"devices": [{"generation": "hopper", "idle_watts": 250, "uuid": board}]})
    for rank in range(2):
        job.start_command(torchrun(rank, 2), [TRACED, board, 3, "gemm:1.3:0.31:0"], options=["--kernels"])
    assert job.wait() == [0, 0]
    check_one_recording(job, job.file(), 2)
    (device,) = json.loads(job.tool("report", job.file(), "--by", "kernel", "--json").out)["devices"]
    assert len(device["processes"]) == 2 and all(p["launches"] > 0 for p in device["processes"])


def test_a_member_with_other_options_prints_a_warning(job):
    job.start(torchrun(0, 2), wall=1)
    job.recorder()
    member = job.start(torchrun(1, 2), options=["--layers"])
    assert job.wait() == [0, 0]
    assert "give all processes the same options" in member.err


def test_what_is_not_resolved_is_charged_as_an_upper_bound(tool):
    tool("run", "-q", "--idle", "0s", "-o", "rests.jprof", "--", "sleep", "0.2")
    lines = tool("report", "rests.jprof", "--by", "job").out.splitlines()
    assert "at most" in lines[0]
    row = next(i for i, line in enumerate(lines) if line.startswith("job ") and "charged" in line) + 1
    assert lines[row].endswith("at most " + lines[0].split("at most ")[1].split(" (")[0])


def test_names_of_recordings(gpu):
    host = os.uname().nodename
    gpu.environment |= {name: str(value) for name, value in slurm(3, 1).items()}
    gpu("run", "-q", "--idle", "0s", "-o", "%h.%j.%r.%%.jprof", "--", "true")
    assert (gpu.folder / f"{host}.4711.3.%.jprof").exists()
    with sqlite3.connect(gpu.folder / f"{host}.4711.3.%.jprof") as db:
        assert db.execute("SELECT job, step, rank FROM identity").fetchone() == ("4711", "0", 3)
    assert "%x" in gpu("run", "-o", "%x.jprof", "--", "true", status=125).err
    gpu.environment.pop("SLURM_JOB_ID")
    assert "SLURM_JOB_ID is not set" in gpu("run", "-o", "%j.jprof", "--", "true", status=125).err
