"""PowerLimitOptimizer in two processes of torch.distributed, each with a simulated GPU of its own."""

import json
import os
import socket
import subprocess
import sys
import time

import pytest

TOOL = os.environ.get("JOULEPROF_TOOL")
pytest.importorskip("torch.distributed")
pytestmark = pytest.mark.skipif(not TOOL, reason="JOULEPROF_TOOL is not set")

LIMIT = {"minimum_watts": 150, "default_watts": 700, "maximum_watts": 700}
BOARDS = [{"generation": "hopper", "idle_watts": 120, "power": {"shape": "constant", "watts": watts},
           "power_limit": LIMIT} for watts in (600, 400)]

RANK = """
import json, os, sys, time
import torch.distributed as dist
import jouleprof
from jouleprof import _power_limit

rank = int(os.environ["RANK"])
dist.init_process_group("gloo")
own = []
over_ranks = _power_limit._over_ranks

def noted(energy, seconds, failure=None):
    own.append((energy, seconds))
    return over_ranks(energy, seconds, "its sensor was lost" if sys.argv[2] == str(rank) else failure)

_power_limit._over_ranks = noted
result = {"rank": rank}
try:
    with jouleprof.PowerLimitOptimizer(
            jouleprof.Monitor(f"gpu{rank}"), "energy", warmup_steps=1, profile_steps=5,
            limits=[700, 400, 200], profile_path=sys.argv[1]) as optimizer:
        for _ in range(25):
            optimizer.on_step_begin()
            time.sleep(0.02 * (1 + rank))  # the second rank is slower
            optimizer.on_step_end()
        result.update(done=optimizer.done, best=optimizer.optimal_power_limit, own=own,
                      measured=[(m.power_limit, m.energy, m.time) for m in optimizer.measurements])
except jouleprof.Error as error:
    result["error"] = f"{type(error).__name__}: {error}"
dist.destroy_process_group()
print(json.dumps(result))
"""


@pytest.fixture
def ranks(machine, monkeypatch, tmp_path):
    monkeypatch.setenv("JOULEPROF_TOOL", TOOL)
    monkeypatch.setenv("JOULEPROF_NVML_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("JOULEPROF_NVML_EPOCH", str(int(time.time()) - 5))
    monkeypatch.setenv("JOULEPROF_CONTROL_FOLDER", str(tmp_path / "control"))

    def run(profile_of=lambda rank: str(tmp_path / "profile.json"), failing=None):
        machine.gpus(*BOARDS)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        processes = [subprocess.Popen(
            [sys.executable, "-c", RANK, profile_of(rank), str(failing)], stdout=subprocess.PIPE, text=True,
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": str(port)}) for rank in range(2)]
        return [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    return run


def test_energies_are_added_and_the_slowest_time_counts(ranks, tmp_path):
    first, second = ranks()
    assert first["done"] and second["done"]
    assert first["measured"] == second["measured"]
    assert [limit for limit, _, _ in first["measured"]] == [700, 400, 200]
    for i, (watts, energy, seconds) in enumerate(first["measured"]):
        (joules_a, seconds_a), (joules_b, seconds_b) = first["own"][i], second["own"][i]
        assert energy == pytest.approx(joules_a + joules_b, rel=1e-12)
        assert seconds == max(seconds_a, seconds_b) >= 5 * 0.04
        # Each at its limit, over its own time.
        assert joules_a / seconds_a == pytest.approx(min(watts, 600), rel=0.1)
        assert joules_b / seconds_b == pytest.approx(min(watts, 400), rel=0.1)
    assert first["best"] == second["best"] == 200
    written = json.loads((tmp_path / "profile.json").read_text())["measurements"]
    assert [[m["power_limit"], m["energy"], m["time"]] for m in written] == first["measured"]
    last = {int(line.split()[1]): float(line.split()[2]) for line in (tmp_path / "state").read_text().splitlines()}
    assert last == {0: 700, 1: 700}  # as found


def test_the_profile_of_the_first_rank_counts(ranks, tmp_path):
    (tmp_path / "known.json").write_text(json.dumps(
        {"measurements": [{"power_limit": 700, "energy": 9, "time": 1}, {"power_limit": 300, "energy": 5, "time": 2}]}))
    first, second = ranks(lambda rank: str(tmp_path / ("known.json" if rank == 0 else "absent.json")))
    assert first["best"] == second["best"] == 300
    assert first["own"] == second["own"] == []
    (tmp_path / "known.json").write_text("{")
    results = ranks(lambda rank: str(tmp_path / ("known.json" if rank == 0 else "absent.json")))
    assert [r["error"].split(":")[0] for r in results] == ["Corrupt", "Corrupt"]


def test_a_rank_without_an_energy_fails_on_all_ranks(ranks):
    results = ranks(failing=1)
    assert [r["error"] for r in results] == ["Unavailable: rank 1: its sensor was lost"] * 2
