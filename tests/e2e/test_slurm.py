"""srun on two nodes of a Slurm that runs here: packages slurm-wlm, as root."""

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time

import pytest

from conftest import TOOL
from test_job import PROGRAM, Job, check_one_recording, exact, wait_for

DAEMONS = ("slurmctld", "slurmd", "srun")
MISSING = [name for name in DAEMONS if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin")]
pytestmark = [
    pytest.mark.skipif(bool(MISSING), reason=f"Slurm is missing (apt-get install slurm-wlm): {', '.join(MISSING)}"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the daemons of Slurm need root"),
]

# Two nodes of one machine, without authentication.
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
SlurmctldPort={ports[0]}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=8 RealMemory=500
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=8 RealMemory=500
PartitionName=all Nodes=n1,n2 Default=YES State=UP
"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.fixture
def srun(gpu):
    """Runs a command with srun's options; returns the finished process."""
    folder = gpu.folder / "slurm"
    for name in ("state", "spool.n1", "spool.n2"):
        (folder / name).mkdir(parents=True)
    configuration = folder / "slurm.conf"
    configuration.write_text(CONFIGURATION.format(folder=folder, host=os.uname().nodename.split(".")[0],
                                                  ports=free_ports(3)))
    environment = {**gpu.environment, "SLURM_CONF": str(configuration), "PATH": os.environ["PATH"] + ":/usr/sbin"}
    daemons = [subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
               for command in (["slurmctld", "-D"], ["slurmd", "-D", "-N", "n1"], ["slurmd", "-D", "-N", "n2"])]

    def run(*arguments):
        done = subprocess.run(["srun", *map(str, arguments)], cwd=gpu.folder, env=environment, text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        return done

    def idle_nodes():
        found = subprocess.run(["sinfo", "-h", "-t", "idle", "-o", "%D"], env=environment, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        time.sleep(0.2)
        return found.stdout.strip() == "2"

    try:
        wait_for(idle_nodes)
        yield run
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            daemon.wait(timeout=30)


def test_tasks_of_all_nodes_of_a_machine_are_one_recording(gpu, srun):
    done = srun("-N2", "--ntasks-per-node", 4, TOOL, "run", "-q", "--idle", "0s", "-o", "job.%h.%j.jprof", "--",
                sys.executable, "-c", PROGRAM, 0.2, 1, 0)
    assert done.returncode == 0, done.stderr
    job = Job(gpu)
    rows = check_one_recording(job, job.file(), 8)
    assert {(row["job"], row["step"], row["launcher"]) for row in rows.values()} == {("1", "0", "slurm")}
    assert job.file().endswith(".1.jprof")
    with sqlite3.connect(gpu.folder / job.file()) as db:
        assert db.execute("SELECT node_list FROM identity").fetchone() == ("n[1-2]",)
    assert exact(gpu, job.file())["node_list"] == "n[1-2]"


def test_the_status_of_a_task_is_that_of_its_command(gpu, srun):
    program = "import os, sys; sys.exit(3 if os.environ['SLURM_PROCID'] == '1' else 0)"
    done = srun("-N1", "-n2", TOOL, "run", "-q", "--idle", "0s", "-o", "job.%h.jprof", "--", sys.executable, "-c",
                program)
    assert done.returncode == 3, done.stderr
    # A task that starts after the other has ended has a file of its own.
    assert all(exact(gpu, name)["complete"] for name in Job(gpu).files())
