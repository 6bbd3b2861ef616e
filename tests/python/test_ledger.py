"""jouleprof ledger: a row for each job and device, each counted once, in few files."""

import datetime
import json
import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys

import pytest

import jouleprof
from jouleprof._recorded import ledger, schemas
from test_fleet import query
from test_tables import KERNELS, TOOL, merge, tool  # pylint: disable=unused-import

arrow = pytest.importorskip("pyarrow", reason="the Python module pyarrow is missing (pip install pyarrow)")
pytestmark = pytest.mark.skipif(not TOOL, reason="JOULEPROF_TOOL is not set")


def job(folder, name, number, shift=0, boot=None):
    """A recording of Slurm's job `number`, that began `shift` seconds later."""
    path = folder / f"{name}.jprof"
    shutil.copy(KERNELS, path)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE identity SET job = ?, step = '0'", (number,))
        db.execute("UPDATE clock_point SET real_nanoseconds = real_nanoseconds + ?", (shift * 10**9,))
        if boot:
            db.execute("UPDATE identity SET boot_id = ?", (boot,))
    db.close()
    return path


def rows_of(folder):
    import pyarrow.dataset

    return pyarrow.dataset.dataset(folder / "ledger", partitioning="hive").to_table().to_pylist()


def files_of(folder):
    return sorted(path.name for path in (folder / "ledger").rglob("*.parquet"))


def run_ledger(*arguments, status=0):
    done = subprocess.run([TOOL, "ledger", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False, env=os.environ | {"JOULEPROF_PYTHON": sys.executable})
    assert done.returncode == status, done.stderr
    return done.stderr


def test_a_row_for_each_job_and_device(tmp_path):
    path = job(tmp_path, "a", "4711")
    assert "1 recordings are new or changed" in run_ledger(path, "-o", tmp_path)
    rows = rows_of(tmp_path)
    recording = jouleprof.open(path)
    report = recording.report()
    assert {row["label"]: row["energy_joules"] for row in rows} == {
        domain["label"]: domain["energy_joules"] for domain in recording.rows("domains")}
    (run,) = recording.rows("runs")
    for row in rows:
        assert row["job"] == "4711" and row["user"] == run["user"] and row["host"] == run["host"]
        assert row["start_time"].isoformat()[:19] == run["start_time"][:19] and row["start_time"].tzinfo
        seconds = (row["end_time"] - row["start_time"]).total_seconds()
        assert seconds == pytest.approx(row["duration_seconds"], abs=1e-5)
        assert row["month"] == run["start_time"][:7]
    assert sum(row["energy_joules"] for row in rows if row["counted"]) == pytest.approx(report["total"]["energy_joules"])
    charged = sum(row["command_energy_joules"] or 0 for row in rows if row["counted"])
    assert charged == pytest.approx(report["command_energy"]["energy_joules"])


def test_adding_again_changes_nothing(tmp_path):
    path = job(tmp_path, "a", "1")
    run_ledger(path, "-o", tmp_path)
    first, names = rows_of(tmp_path), files_of(tmp_path)
    copy = tmp_path / "elsewhere.jprof"
    shutil.copy(path, copy)
    assert "0 recordings are new or changed" in run_ledger(copy, "-o", tmp_path)
    assert rows_of(tmp_path) == first and files_of(tmp_path) == names
    run_ledger("--compact", "-o", tmp_path)
    assert "0 recordings are new or changed" in run_ledger(path, "-o", tmp_path)
    assert rows_of(tmp_path) == first


def test_copies_in_one_call_count_once(tmp_path):
    one, other = job(tmp_path, "a", "1"), job(tmp_path, "b", "2", shift=3600)
    copy = tmp_path / "copy.jprof"
    shutil.copy(one, copy)
    said = run_ledger(one, copy, merge(tmp_path / "both.jprof", one, other), other, "-o", tmp_path)
    assert "2 recordings are new or changed" in said
    run_ledger(one, "-o", tmp_path / "alone")
    run_ledger(other, "-o", tmp_path / "alone")
    assert sorted(map(str, rows_of(tmp_path))) == sorted(map(str, rows_of(tmp_path / "alone")))


def test_what_cannot_be_read_is_named_and_the_others_are_added(tmp_path):
    (tmp_path / "bad.jprof").write_bytes(b"nothing")
    said = run_ledger(tmp_path / "bad.jprof", job(tmp_path, "a", "1"), "-o", tmp_path / "out", status=5)
    assert "bad.jprof is left out" in said and rows_of(tmp_path / "out")
    run_ledger("-o", tmp_path / "out", status=2)


def test_recordings_of_one_job_that_overlap_are_not_counted_twice(tmp_path):
    one, other = job(tmp_path, "a", "7"), job(tmp_path, "b", "7", shift=1)
    said = run_ledger(one, other, "-o", tmp_path / "twice", status=2)
    assert "would count twice; merge them" in said and not files_of(tmp_path / "twice")
    run_ledger(one, "-o", tmp_path / "later")
    assert "would count twice" in run_ledger(other, "-o", tmp_path / "later", status=2)
    merged = merge(tmp_path / "job.jprof", one, other)
    run_ledger(merged, "-o", tmp_path / "once")
    (host,) = jouleprof.open(merged).report()["hosts"]
    rows = rows_of(tmp_path / "once")
    assert {row["label"]: row["energy_joules"] for row in rows} == {
        domain["name"]: domain["energy_joules"] for domain in host["domains"]}
    assert len(rows) == len(host["domains"])
    assert {row["label"]: [row["interval_low_joules"], row["interval_high_joules"]] for row in rows} == {
        domain["name"]: domain["interval_joules"] or [None, None] for domain in host["domains"]}


def test_a_job_of_a_sensor_that_reads_high_has_both_bounds(tmp_path):
    """Of a K40m the lower bound is 7.2 % below, and the upper one 1.7 % above."""
    paths = []
    for name, first in (("a", 10), ("b", 30)):
        log = tmp_path / f"{name}.csv"
        log.write_text("timestamp, index, power.draw [W]\n" + "".join(
            f"2026/11/01 10:{i // 60:02}:{i % 60:02}.000, 0, 200.00 W\n" for i in range(first, first + 50)))
        paths.append(tmp_path / f"{name}.jprof")
        subprocess.run([TOOL, "import", log, "--device-name", "Tesla K40m", "-o", paths[-1]], check=True,
                       capture_output=True)
        with sqlite3.connect(paths[-1]) as db:
            db.execute("UPDATE run SET host = 'node'")
        db.close()
    run_ledger(merge(tmp_path / "job.jprof", *paths), "-o", tmp_path / "out")
    (row,) = rows_of(tmp_path / "out")
    assert row["interval_low_joules"] == pytest.approx(row["energy_joules"] * (1 - 0.072268), rel=1e-4)
    assert row["interval_high_joules"] == pytest.approx(row["energy_joules"] * (1 + 0.017269), rel=1e-4)


def test_logs_of_several_machines_that_begin_and_end_together_are_kept_apart(tmp_path):
    paths = [tmp_path / f"{watts}.jprof" for watts in (200, 300)]
    for path in paths:
        log = path.with_suffix(".csv")
        log.write_text("timestamp, index, power.draw [W]\n" + "".join(
            f"2026/11/01 10:00:{i:02}.000, 0, {path.stem}.00 W\n" for i in range(51)))
        subprocess.run([TOOL, "import", log, "-o", path], check=True, capture_output=True)
    merged = merge(tmp_path / "job.jprof", *paths)
    hosts = jouleprof.open(merged).report()["hosts"]
    assert [(host["host"], host["energy_joules"]) for host in hosts] == [("200.jprof", 10000), ("300.jprof", 15000)]
    run_ledger(merged, "-o", tmp_path / "out")
    assert sorted(row["energy_joules"] for row in rows_of(tmp_path / "out")) == [10000, 15000]
    assert len(set(jouleprof.open(merged).arrow("runs")["recording"].to_pylist())) == 2
    compared = subprocess.run([TOOL, "compare", *paths, "--json"], check=True, capture_output=True, text=True).stdout
    assert json.loads(compared)["energy"]["change_ratio"] == pytest.approx(0.5)


def test_jobs_that_share_a_device_have_a_row_each(tmp_path):
    run_ledger(job(tmp_path, "a", "7"), job(tmp_path, "b", "8", shift=1), "-o", tmp_path)
    assert {row["job"] for row in rows_of(tmp_path)} == {"7", "8"}


def synthetic(numbers, energy=1.0):
    """Two devices of each of many recordings, one an hour."""
    begin = datetime.datetime(2026, 11, 1, tzinfo=datetime.timezone.utc)
    rows = [{"recording": f"r{n}", "job": str(n), "label": f"gpu{d}", "host": "node", "boot_id": "boot", "domain": "gpu",
             "energy_joules": energy, "start_time": f"{begin + datetime.timedelta(hours=n % 700):%Y-%m-%dT%H:%M:%SZ}"}
            for n in numbers for d in (0, 1)]
    from jouleprof._recorded.tables import arrow_of

    return arrow_of("ledger", rows)


def test_files_stay_few(tmp_path):
    for n in range(200):
        assert ledger.add(tmp_path, synthetic([n])) == 1
    names = files_of(tmp_path)
    assert len(names) == 3 + 200 - 3 * 64 and sum(name.startswith("L1-") for name in names) == 3
    assert len(rows_of(tmp_path)) == 400
    ledger.add(tmp_path, synthetic(range(200, 6000)))
    assert len(files_of(tmp_path)) < 64
    assert {row["recording"] for row in rows_of(tmp_path)} == {f"r{n}" for n in range(6000)}
    assert len(rows_of(tmp_path)) == 12000
    ledger.compact(tmp_path)
    assert len(files_of(tmp_path)) == 1 and len(rows_of(tmp_path)) == 12000


def test_a_changed_recording_takes_the_place_of_the_old_one(tmp_path):
    ledger.add(tmp_path, synthetic(range(100)))
    assert ledger.add(tmp_path, synthetic(range(50, 60), energy=2.0)) == 10
    rows = rows_of(tmp_path)
    assert len(rows) == 200
    assert sum(row["energy_joules"] for row in rows) == 180 * 1.0 + 20 * 2.0


def add_some(folder, first):
    for n in range(first, first + 15):
        ledger.add(folder, synthetic([n]))


def test_writers_take_turns_and_readers_see_whole_months(tmp_path):
    ledger.add(tmp_path, synthetic([0]))
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=add_some, args=(tmp_path, 1 + 15 * k)) for k in range(3)]
    for writer in writers:
        writer.start()
    most = 2
    while any(writer.is_alive() for writer in writers):
        try:
            rows = rows_of(tmp_path)
        except FileNotFoundError:  # a file of before, that a reader had listed
            continue
        assert len(rows) == 2 * len({row["recording"] for row in rows}) >= most
        most = len(rows)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert len(rows_of(tmp_path)) == 2 * 46


def test_what_a_killed_writer_left_is_removed(tmp_path):
    ledger.add(tmp_path, synthetic([0]))
    left = tmp_path / ".ledger" / "month=2026-11"
    left.mkdir()
    (left / "L0-x.parquet").write_bytes(b"half")
    ledger.add(tmp_path, synthetic([1]))
    assert not left.exists() and len(rows_of(tmp_path)) == 4


def test_the_energy_of_users_has_the_bounds_of_what_could_not_be_divided(tmp_path, monkeypatch):
    run_ledger(job(tmp_path, "a", "1"), job(tmp_path, "b", "2", shift=10**5), "-o", tmp_path / "energy")
    counted = [row for row in rows_of(tmp_path / "energy") if row["counted"]]
    ((user, *sums, without),) = query(tmp_path, "## The ledger", monkeypatch)
    columns = ("command_energy_joules", "command_interval_low_joules", "command_interval_high_joules")
    assert user == counted[0]["user"] and without == sum(row[columns[0]] is None for row in counted)
    assert sums == pytest.approx([sum(row[column] or 0 for row in counted) for column in columns])


def test_engines_read_it(tmp_path):
    ledger.add(tmp_path, synthetic(range(10)))
    files = str(tmp_path / "ledger" / "**" / "*.parquet")
    duckdb = pytest.importorskip("duckdb").connect()
    kinds = dict(duckdb.execute(f"SELECT column_name, column_type FROM (DESCRIBE FROM '{files}')").fetchall())
    assert kinds["start_time"] == kinds["end_time"] == "TIMESTAMP WITH TIME ZONE"
    assert duckdb.execute(f"SELECT sum(energy_joules) FROM '{files}'").fetchone() == (20.0,)
    pandas = pytest.importorskip("pandas")
    assert str(pandas.read_parquet(tmp_path / "ledger")["start_time"].dtype) == "datetime64[us, UTC]"
    names = {"recording", *schemas.COLUMNS["ledger"]}
    assert set(pandas.read_parquet(tmp_path / "ledger").columns) == names | {"month"}


def test_engines_read_it_in_polars(tmp_path):
    polars = pytest.importorskip("polars", reason="the Python module polars is missing (pip install polars)")
    ledger.add(tmp_path, synthetic(range(10)))
    assert polars.read_parquet(tmp_path / "ledger" / "**" / "*.parquet")["energy_joules"].sum() == 20
