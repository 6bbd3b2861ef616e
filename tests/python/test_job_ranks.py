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

# All ranks measure the same second: from when each one is ready.
RANK = """
import os, pathlib, pickle, sys, time, jouleprof
monitor = jouleprof.Monitor("gpu0")
ready = pathlib.Path(sys.argv[1])
ready.with_suffix("." + os.environ["RANK"]).touch()
while len(list(ready.parent.glob(ready.stem + ".*"))) < int(os.environ["WORLD_SIZE"]):
    time.sleep(0.001)
with monitor.window("epoch") as window:
    time.sleep(1)
with open(sys.argv[2], "wb") as file:
    pickle.dump(window.energy, file)
"""


def start(folder, rank, recording, world=2):
    ready = folder / f"ready-{recording}"
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "MASTER_ADDR": "node", "MASTER_PORT": 1}
    return subprocess.Popen(
        [TOOL, "run", "-q", "--idle", "0s", "-o", recording, "--", sys.executable, "-c", RANK, ready,
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
    for rank in [start(folder, rank, "host.jprof") for rank in range(2)]:
        assert rank.wait(timeout=60) == 0
    window = merged_window(folder, "host.jprof")
    total = combined([(socket.gethostname(), m) for m in measured(folder)]).total
    assert window["count"] == 2 and window["rank_joules"]["of"] == 2
    # The board counts once in both; the ranks' edges differ by some milliseconds.
    longest = max(m.time for m in measured(folder))
    assert longest >= 1 and total.joules == pytest.approx(250 * longest, rel=0.05)
    assert window["energy_joules"] == pytest.approx(total.joules, rel=0.05)


def test_ranks_of_two_hosts(machine):
    from jouleprof._live.ranks import combined

    folder = machine.gpus(CONSTANT).folder
    for rank in range(2):
        assert start(folder, rank, f"host{rank}.jprof", world=1).wait(timeout=60) == 0
        with sqlite3.connect(folder / f"host{rank}.jprof") as db:
            db.execute("UPDATE identity SET boot_id = ?, rank = ?", (f"boot{rank}", rank))
            db.execute("UPDATE process SET rank = ? WHERE rank IS NOT NULL", (rank,))
    window = merged_window(folder, "host0.jprof", "host1.jprof")
    total = combined([(f"host{rank}", m) for rank, m in enumerate(measured(folder))]).total
    assert total.joules == pytest.approx(250 * sum(m.time for m in measured(folder)), rel=0.05)
    assert window["energy_joules"] == pytest.approx(total.joules, rel=0.005)
