"""The queries of docs/fleet.md, over a thousand recordings."""

import collections
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sys

import pytest

import jouleprof
from conftest import CONSTANT
from test_tables import KERNELS, TOOL

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "fleet.md"
RECORDINGS = 1000
EVERY = 50  # one of so many has kernels
USERS = ("ada", "grace", "hedy")
HOSTS = ("node1", "node2", "node3", "node4")
DAY = 86400 * 10**9  # nanoseconds
TABLES = ("runs", "domains", "kernels")
pytestmark = pytest.mark.skipif(not TOOL, reason="JOULEPROF_TOOL is not set")


def place(base, traced, folder, number):
    """A recording of a fleet: a copy by another user, on another host and day."""
    path = folder / f"{number}.jprof"
    shutil.copy(traced if number % EVERY == 0 else base, path)
    with sqlite3.connect(path) as db:
        if number % EVERY:
            db.execute("UPDATE identity SET user = ?", (USERS[number % 3],))
        db.execute("UPDATE run SET host = ?", (HOSTS[number % 4],))
        db.execute("UPDATE identity SET job = ?", (str(number // 10),))
        db.execute("UPDATE clock_point SET real_nanoseconds = real_nanoseconds + ?", (number % 120 * DAY,))
    db.close()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """(folder with Parquet files, rows of each table)"""
    pytest.importorskip("pyarrow", reason="the Python module pyarrow is missing (pip install pyarrow)")
    folder = tmp_path_factory.mktemp("fleet")
    with pytest.MonkeyPatch.context() as patch:
        from conftest import Machine

        patch.setenv("JOULEPROF_TOOL", TOOL)
        Machine(folder, patch).gpus(CONSTANT)
        base = folder / "base"
        subprocess.run([TOOL, "run", "-q", "-o", base, "--", sys.executable, "-c", "pass"], check=True)
        for number in range(RECORDINGS):
            place(base, KERNELS, folder, number)
        found = jouleprof.open_all(folder / "*.jprof")
        assert found.write_parquet(folder / "energy", TABLES) == 2 * RECORDINGS + RECORDINGS // EVERY
        return folder, {table: found.arrow(table).to_pylist() for table in TABLES}


def query(folder, heading, monkeypatch):
    """The rows of the page's query below a line that begins so."""
    duckdb = pytest.importorskip("duckdb", reason="the Python module duckdb is missing (pip install duckdb)")
    text = PAGE.read_text(encoding="utf-8").partition(heading)[2]
    monkeypatch.chdir(folder)
    return duckdb.connect().execute(re.search(r"```sql\n(.*?)```", text, re.S)[1]).fetchall()


def summed(rows, key, value):
    sums = collections.defaultdict(float)
    for row in rows:
        if row[value] is not None:
            sums[key(row)] += row[value]
    return sums


def test_times_are_of_a_unit_that_spark_reads(fleet):
    import pyarrow.parquet

    folder, _ = fleet
    file = next((folder / "energy" / "runs").rglob("*.parquet"))
    assert str(pyarrow.parquet.ParquetFile(file).schema_arrow.field("start_time").type) == "timestamp[us, tz=UTC]"


def test_energy_by_user_and_month(fleet, monkeypatch):
    folder, tables = fleet
    rows = query(folder, "Energy by user and month", monkeypatch)
    expected = summed(tables["runs"], lambda row: (row["user"], row["start_time"].strftime("%Y-%m")), "total_energy_joules")
    assert {(user, month): joules for user, month, _, joules in rows} == pytest.approx(expected)
    assert sum(runs for _, _, runs, _ in rows) == RECORDINGS
    assert {user for user, *_ in rows} == {*USERS, None} and len(rows) >= 4 * 4


def test_energy_by_user_and_month_in_spark(fleet, monkeypatch):
    pytest.importorskip("pyspark", reason="the Python module pyspark is missing (pip install pyspark; it needs Java)")
    if not shutil.which("java"):
        pytest.skip("Spark needs Java")
    folder, tables = fleet
    monkeypatch.chdir(folder)
    snippet = re.search(r"```python\n([^`]*from pyspark.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[1]
    names = {}
    exec(snippet, names)  # pylint: disable=exec-used
    found = {(row.user, row.month): row.joules for row in names["rows"].collect()}
    kernels = names["spark"].sql("SELECT sum(energy_joules) AS joules FROM kernels").collect()[0].joules
    first = names["spark"].sql("SELECT min(start_time) AS first FROM runs").collect()[0].first
    names["spark"].stop()
    assert found == pytest.approx(summed(tables["runs"], lambda row: (row["user"], row["start_time"].strftime("%Y-%m")),
                                         "total_energy_joules"))
    assert kernels == pytest.approx(sum(row["energy_joules"] or 0 for row in tables["kernels"])) and first


def test_the_most_expensive_kernels(fleet, monkeypatch):
    folder, tables = fleet
    rows = query(folder, "The ten most expensive kernels", monkeypatch)
    expected = summed(tables["kernels"], lambda row: row["name"], "energy_joules")
    assert len(rows) == 10
    assert [joules for *_, joules in rows] == pytest.approx(sorted(expected.values(), reverse=True)[:10])
    assert all(joules == pytest.approx(expected[name]) for name, _, _, joules in rows)


def test_shares_of_held_and_rest(fleet, monkeypatch):
    folder, tables = fleet
    rows = query(folder, "How much of the GPUs' energy", monkeypatch)
    hosts = {row["recording"]: row["host"] for row in tables["runs"]}
    gpus = [row for row in tables["domains"] if row["domain"] == "gpu" and row["held_joules"] is not None]
    assert gpus
    whole, held, rest = (summed(gpus, lambda row: hosts[row["recording"]], f"{what}_joules")
                         for what in ("energy", "held", "rest"))
    assert {host: (h, r) for host, h, r in rows} == {
        host: (pytest.approx(held[host] / whole[host]), pytest.approx(rest[host] / whole[host])) for host in whole}
