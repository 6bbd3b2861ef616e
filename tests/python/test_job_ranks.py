"""Monitor.sum_over_ranks and `jouleprof merge` agree on the energy of a window of all ranks."""

import json
import os
import pickle
import socket
import sqlite3
import subprocess
import sys
import time

import pytest

from conftest import CONSTANT

TOOL = os.environ.get("JOULEPROF_TOOL")
pytestmark = pytest.mark.skipif(not TOOL, reason="JOULEPROF_TOOL is not set")

# Both ranks measure the same second.
RANK = """
import pickle, sys, time, jouleprof
monitor = jouleprof.Monitor("gpu0")
time.sleep(max(0, float(sys.argv[1]) - time.time()))
with monitor.window("epoch") as window:
    time.sleep(1)
with open(sys.argv[2], "wb") as file:
    pickle.dump(window.energy, file)
"""


def start(folder, rank, begin, recording, world=2):
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "node", "MASTER_PORT": 1}
    return subprocess.Popen(
        [TOOL, "run", "-q", "--idle", "0s", "-o", recording, "--", sys.executable, "-c", RANK, repr(begin),
         folder / f"rank{rank}"],
        cwd=folder, env=os.environ | {name: str(value) for name, value in variables.items()})


def measured(folder):
    return [pickle.loads((folder / f"rank{rank}").read_bytes()) for rank in range(2)]


def merged_window(folder, *recordings):
    subprocess.run([TOOL, "merge", "-q", *recordings, "-o", "job.jprof"], cwd=folder, check=True)
    done = subprocess.run([TOOL, "report", "job.jprof", "--by", "job", "--json"], cwd=folder, check=True,
                          stdout=subprocess.PIPE)
    (window,) = json.loads(done.stdout)["windows"]
    return window


def test_ranks_of_one_host(machine):
    from jouleprof._live.ranks import combined

    folder = machine.gpus(CONSTANT).folder
    begin = time.time() + 2
    for rank in [start(folder, rank, begin, "host.jprof") for rank in range(2)]:
        assert rank.wait(timeout=60) == 0
    window = merged_window(folder, "host.jprof")
    total = combined([(socket.gethostname(), m) for m in measured(folder)]).total
    assert window["count"] == 2 and window["rank_joules"]["of"] == 2
    # The board counts once in both; the ranks' edges differ by some milliseconds.
    assert total.joules == pytest.approx(250, rel=0.05)
    assert window["energy_joules"] == pytest.approx(total.joules, rel=0.05)


def test_ranks_of_two_hosts(machine):
    from jouleprof._live.ranks import combined

    folder = machine.gpus(CONSTANT).folder
    for rank in range(2):
        assert start(folder, rank, time.time() + 0.5, f"host{rank}.jprof", world=1).wait(timeout=60) == 0
        with sqlite3.connect(folder / f"host{rank}.jprof") as db:
            db.execute("UPDATE identity SET boot_id = ?, rank = ?", (f"boot{rank}", rank))
            db.execute("UPDATE process_rank SET rank = ?", (rank,))
    window = merged_window(folder, "host0.jprof", "host1.jprof")
    total = combined([(f"host{rank}", m) for rank, m in enumerate(measured(folder))]).total
    assert total.joules == pytest.approx(500, rel=0.05)
    assert window["energy_joules"] == pytest.approx(total.joules, rel=0.005)
