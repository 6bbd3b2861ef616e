"""merge: recordings of ranks and hosts in one file, and the report of the job."""

import decimal
import json
import os
import sqlite3
import sys

import pytest

WORK = "import time; e = time.process_time() + 0.3\nwhile time.process_time() < e: pass"


def record(tool, name, rank, boot=None):
    tool.environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    tool("run", "-q", "--idle", "0s", "-o", name, "--", sys.executable, "-c", WORK)
    if boot:
        with sqlite3.connect(tool.folder / name) as db:
            db.execute("UPDATE identity SET boot_id = ?", (boot,))
            db.execute("UPDATE run SET host = ?", (boot,))


def joules(value):
    return decimal.Decimal(str(value))


def test_hosts_sum_to_the_microjoule(gpu):
    record(gpu, "a.jprof", 0, "node1")
    record(gpu, "b.jprof", 1, "node2")
    gpu("merge", "b.jprof", "a.jprof", "-o", "job.jprof")
    job = json.loads(gpu("report", "job.jprof", "--json").out, parse_float=decimal.Decimal)
    single = [json.loads(gpu("report", name, "--json").out, parse_float=decimal.Decimal)
              for name in ("a.jprof", "b.jprof")]
    assert [host["host"] for host in job["hosts"]] == ["node1", "node2"]
    for host, own in zip(job["hosts"], single):
        assert host["energy_joules"] == own["total"]["energy_joules"]
    assert job["energy_joules"] == sum(own["total"]["energy_joules"] for own in single)
    assert [rank["rank"] for rank in job["ranks"]] == [0, 1]


def test_recordings_of_one_host_count_once(gpu):
    record(gpu, "a.jprof", 0)
    (gpu.folder / "b.jprof").write_bytes((gpu.folder / "a.jprof").read_bytes())
    with sqlite3.connect(gpu.folder / "b.jprof") as db:
        db.execute("UPDATE identity SET rank = 1")
    gpu("merge", "a.jprof", "b.jprof", "-o", "job.jprof")
    job = json.loads(gpu("report", "job.jprof", "--json").out)
    assert job["energy_joules"] == gpu.report("a.jprof")["total"]["energy_joules"]
    assert len(job["hosts"]) == 1 and len(job["ranks"]) == 2


def test_the_same_recording_twice_is_an_error_that_names_it(gpu):
    record(gpu, "a.jprof", 0)
    os.link(gpu.folder / "a.jprof", gpu.folder / "b.jprof")
    assert "a.jprof" in gpu("merge", "a.jprof", "b.jprof", "-o", "job.jprof", status=2).err
    assert not (gpu.folder / "job.jprof").exists()


def test_report_by_rank_and_host_with_costs(gpu):
    record(gpu, "a.jprof", 3)
    gpu("merge", "a.jprof", "-o", "job.jprof")
    text = gpu("report", "job.jprof", "--by", "rank", "--price", "0.30 EUR/kWh", "--carbon", "230",
               "--pue", "1.2").out
    assert "EUR" in text and "g CO2e" in text
    assert "gpu0" in gpu("report", "job.jprof").out
    costs = json.loads(gpu("report", "a.jprof", "--by", "host", "--json", "--price", "1").out)["costs"]
    assert costs["money"] == pytest.approx(costs["energy_joules"] / 3.6e6, abs=1e-9)


def test_invalid_usage(gpu):
    record(gpu, "a.jprof", 0)
    gpu("merge", "a.jprof", status=2)
    gpu("merge", "missing.jprof", "-o", "job.jprof", status=3)
    gpu("merge", "a.jprof", "-o", "job.jprof")
    gpu("merge", "a.jprof", "-o", "job.jprof", status=2)
    gpu("merge", "a.jprof", "-o", "job.jprof", "-f")
    for refused in (("--by", "kernel"), ("--csv",), ("--from", "1s")):
        assert "of one recording" in gpu("report", "job.jprof", *refused, status=2).err
