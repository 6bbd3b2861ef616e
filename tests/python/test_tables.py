"""Tables of recordings as Arrow, polars and Parquet: jouleprof.open, open_all, export --format parquet."""

import csv
import io
import os
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

import jouleprof
from conftest import CONSTANT
from jouleprof._recorded import schemas
from jouleprof._recorded.tables import TABLES

TOOL = os.environ.get("JOULEPROF_TOOL")
pytestmark = pytest.mark.skipif(not TOOL, reason="JOULEPROF_TOOL is not set")
EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
KERNELS = EXAMPLES / "h200-kernels.jprof"
LAYERS = EXAMPLES / "h200-layers.jprof"
DEIT = EXAMPLES / "h200-deit.jprof"

# Columns of rows() that no table for Arrow has: they depend on the recording, or are in another table.
LEFT_OUT = {
    "runs": {"schema", "costs", "wall", "per_unit"},
    "domains": {"held_power", "rest_power"},
    **dict.fromkeys(("samples", "gauges"), {"name", "work_begin_unix_seconds", "work_end_unix_seconds"}),
}


@pytest.fixture(autouse=True)
def tool(monkeypatch):
    monkeypatch.setenv("JOULEPROF_TOOL", TOOL)


@pytest.fixture
def arrow():
    return pytest.importorskip("pyarrow", reason="the Python module pyarrow is missing (pip install pyarrow)")


@pytest.fixture
def files(request, machine):
    """Recordings that together have rows of each table."""
    if not request.getfixturevalue("table").startswith("window"):
        return [KERNELS, LAYERS]
    log = machine.gpus(CONSTANT).folder / "log.jprof"
    with jouleprof.Monitor("gpu0", log=log) as monitor:
        for _ in range(2):
            with monitor.window("a"):
                pass
    return [log]


def merge(output, *inputs):
    subprocess.run([TOOL, "merge", "-q", *inputs, "-o", output], check=True)
    return output


@pytest.mark.parametrize("table", TABLES)
def test_no_column_is_forgotten(table, files):
    """What the tool reports is in the schema, or in LEFT_OUT; what is in the schema, the tool reports."""
    rows = [row for file in files for row in jouleprof.open(file).rows(table)]
    if not rows:
        pytest.skip(f"{KERNELS.name} and {LAYERS.name} have no {table}")
    columns = {name for row in rows for name in row}
    shares = {name for name in columns if name.endswith("_joules") and name != "energy_joules"}
    dynamic = shares if table == "processes" else set()
    missing = columns - set(schemas.COLUMNS[table]) - LEFT_OUT.get(table, set()) - dynamic
    assert not missing, missing
    assert not set(schemas.COLUMNS[table]) - columns


def test_windows_have_their_process_and_thread(arrow, machine):
    log = machine.gpus(CONSTANT).folder / "log.jprof"
    with jouleprof.Monitor("gpu0", log=log) as monitor, monitor.window("a"):
        pass
    row, *_ = jouleprof.open(log).arrow("windows").to_pylist()
    assert (row["pid"], row["thread"]) == (os.getpid(), threading.get_native_id())
    assert f"pid={os.getpid()};" in row["labels"] and row["begin_unix_seconds"] == pytest.approx(time.time(), abs=60)


@pytest.mark.parametrize("table", TABLES)
def test_arrow_has_the_values_of_the_rows(arrow, table, files):
    recording = jouleprof.open(files[0])
    rows, found = recording.rows(table), recording.arrow(table)
    identity = schemas.identity(recording.report())
    assert found.num_rows == len(rows)
    assert found.schema.equals(schemas.arrow_schema(table), check_metadata=True)
    assert found.schema.metadata[b"jouleprof.schema"] == b"jouleprof.tables/1"
    for row, made in zip(rows, found.to_pylist()):
        assert made.pop("recording") == identity
        for name, value in made.items():
            if name not in ("start_time", "time"):
                assert value == row.get(name), name


def test_times_keep_their_nanoseconds(arrow):
    (row,) = jouleprof.open(KERNELS).rows("runs")
    found = jouleprof.open(KERNELS).arrow("runs")["start_time"][0]
    assert found.type == arrow.timestamp("ns", tz="UTC")
    text = row["start_time"]
    assert found.value % 1_000_000_000 == int((text.partition(".")[2].rstrip("Z") + "0" * 9)[:9])
    assert found.as_py().strftime("%Y-%m-%dT%H:%M:%S") == text[:19]


def test_polars(arrow):
    pytest.importorskip("polars", reason="the Python module polars is missing (pip install polars)")
    recording = jouleprof.open(KERNELS)
    energies = [domain["energy_joules"] for domain in recording.rows("domains")]
    assert recording.polars("domains")["energy_joules"].to_list() == energies


def test_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(jouleprof.Unavailable, match="pip install pyarrow"):
        jouleprof.open(KERNELS).arrow("runs")
    with pytest.raises(jouleprof.Unavailable, match="pip install pyarrow"):
        jouleprof.open(KERNELS).write_parquet("x")


def test_many_recordings_are_one_table(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    shutil.copy(KERNELS, tmp_path / "a" / "b" / "k.jprof")
    shutil.copy(DEIT, tmp_path / "a" / "d.jprof")
    found = jouleprof.open_all(tmp_path / "**" / "*.jprof")
    assert [os.path.basename(r.path) for r in found] == ["k.jprof", "d.jprof"]
    assert len(found) == 2 and isinstance(found[1:], jouleprof.Recordings)
    totals = [row["total_energy_joules"] for row in found.rows("runs")]
    assert totals == [jouleprof.open(path).rows("runs")[0]["total_energy_joules"] for path in (KERNELS, DEIT)]
    assert len(found.rows("domains")) == 8
    names = [schemas.identity(recording.report()) for recording in found]
    for table in ("runs", "domains", "windows"):
        of = [row["recording"] for row in found.rows(table)]
        assert of == [name for name, recording in zip(names, found) for _ in recording.rows(table)]
    with pytest.raises(jouleprof.NotFound, match="no file matches"):
        jouleprof.open_all(str(tmp_path / "*.none"))


def test_a_merged_file_has_the_tables_of_its_parts(tmp_path):
    merged = merge(tmp_path / "job.jprof", KERNELS, DEIT)
    for by in ("kernel", "window"):
        with pytest.raises(jouleprof.InvalidArgument, match="holds 2 recordings"):
            jouleprof.report(merged, by=by)
    job = jouleprof.open(merged)
    assert len(job.parts) == 2
    assert len(job.rows("runs")) == 2 and job.report()["schema"] == "jouleprof.job/2"
    assert sum(row["total_energy_joules"] for row in job.rows("runs")) == pytest.approx(job.report()["energy_joules"])
    # One of them has no kernels.
    kernels = [{name: value for name, value in row.items() if name != "recording"} for row in job.rows("kernels")]
    assert kernels == jouleprof.open(KERNELS).rows("kernels")
    assert job.parts[0].total("gpu0").joules in [jouleprof.open(p).total("gpu0").joules for p in (KERNELS, DEIT)]
    assert len(jouleprof.open_all([merged, KERNELS])) == 3
    with pytest.raises(ValueError, match="holds 2 recordings"):
        job.total("gpu0")
    with pytest.raises(jouleprof.NotFound, match="has no recording 3"):
        jouleprof.open(merged, run=3).rows("runs")


def test_a_merged_file_without_kernels_gives_the_reason(tmp_path):
    with jouleprof.Monitor("cpu", log=tmp_path / "log.jprof"):
        time.sleep(0.2)
    job = jouleprof.open(merge(tmp_path / "job.jprof", DEIT, tmp_path / "log.jprof"))
    for table in ("kernels", "layers"):
        with pytest.raises(jouleprof.Unavailable, match="has no trace"):
            job.frame(table)


def test_a_damaged_file_is_left_out_and_named(tmp_path):
    shutil.copy(KERNELS, tmp_path / "a.jprof")
    (tmp_path / "b.jprof").write_bytes(b"nothing")
    found = jouleprof.open_all(tmp_path / "*.jprof")
    with pytest.warns(UserWarning, match="b.jprof is left out"):
        assert len(found.rows("runs")) == 1
    assert list(found.unreadable) == [str(tmp_path / "b.jprof")] and len(found) == 1


def read_parquet(arrow, folder, table):
    import pyarrow.dataset

    return pyarrow.dataset.dataset(folder / table, partitioning="hive").to_table().to_pylist()


def with_job(path, job):
    with sqlite3.connect(path) as db:
        db.execute("UPDATE identity SET job = ?", (job,))


@pytest.fixture
def parquet(arrow, tmp_path):
    """A folder of two recordings, of the job 4711 and of none."""
    for name in "ab":
        shutil.copy(KERNELS, tmp_path / f"{name}.jprof")
    with_job(tmp_path / "b.jprof", "4711")
    found = jouleprof.open_all(tmp_path / "*.jprof")
    assert found.write_parquet(tmp_path / "out", ["runs", "kernels", "windows"]) == 4  # there are no windows
    return tmp_path


def test_parquet_is_partitioned_by_day(arrow, parquet):
    found = jouleprof.open_all(parquet / "*.jprof")
    (day,) = {row["start_time"][:10] for row in found.rows("runs")}
    files = {str(path.parent.relative_to(parquet / "out")) for path in (parquet / "out").rglob("*.parquet")}
    assert files == {f"{table}/day={day}" for table in ("runs", "kernels")}
    rows = read_parquet(arrow, parquet / "out", "kernels")
    assert len(rows) == 2 * len(jouleprof.open(KERNELS).rows("kernels"))
    runs = {row["recording"]: row for row in read_parquet(arrow, parquet / "out", "runs")}
    assert {runs[row["recording"]]["job"] for row in rows} == {None, "4711"}
    # Again: the same files.
    assert jouleprof.open(parquet / "a.jprof").write_parquet(parquet / "out", ["runs"]) == 1
    assert len(read_parquet(arrow, parquet / "out", "runs")) == 2


def jobs_by_pyarrow(folder):
    import pyarrow.parquet

    return pyarrow.parquet.read_table(folder)["job"].to_pylist()


def jobs_by_pandas(folder):
    return pytest.importorskip("pandas").read_parquet(folder)["job"].astype(object).where(lambda job: job.notna(), None)


def jobs_by_polars(folder):
    return pytest.importorskip("polars").read_parquet(f"{folder}/**/*.parquet")["job"]


def jobs_by_duckdb(folder):
    files = f"'{folder}/**/*.parquet', hive_partitioning = true"
    database = pytest.importorskip("duckdb").connect()
    kinds = dict(database.execute(f"SELECT column_name, column_type FROM (DESCRIBE FROM read_parquet({files}))").fetchall())
    assert kinds["start_time"] == "TIMESTAMP WITH TIME ZONE"
    return [row[0] for row in database.execute(f"SELECT job FROM read_parquet({files})").fetchall()]


@pytest.mark.parametrize("jobs", [jobs_by_pyarrow, jobs_by_pandas, jobs_by_polars, jobs_by_duckdb])
def test_engines_open_runs_as_they_are(parquet, jobs):
    assert sorted(jobs(parquet / "out" / "runs"), key=str) == ["4711", None]


def export(*arguments, **environment):
    return subprocess.run([TOOL, "export", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False, env=os.environ | environment)


def test_export_starts_the_package(arrow, tmp_path):
    done = export(KERNELS, "--format", "parquet", "-o", tmp_path / "out", JOULEPROF_PYTHON=sys.executable)
    assert done.returncode == 0, done.stderr
    assert len(read_parquet(arrow, tmp_path / "out", "kernels")) == len(jouleprof.open(KERNELS).rows("kernels"))
    assert "runs" in os.listdir(tmp_path / "out")


def test_export_says_what_is_missing(tmp_path):
    done = export(KERNELS, "--format", "parquet", "-o", tmp_path / "out", JOULEPROF_PYTHON="/nonexistent/python3")
    assert done.returncode != 0 and "JOULEPROF_PYTHON" in done.stderr
    bare = export(KERNELS, "--format", "parquet", "-o", tmp_path / "out", JOULEPROF_PYTHON=sys.executable,
                  PYTHONPATH="")
    if bare.returncode != 0:
        assert "pip install '.[tables]'" in bare.stderr
    assert "-o FOLDER" in export(KERNELS, "--format", "parquet").stderr
    assert not (tmp_path / "out").exists() or bare.returncode == 0


@pytest.mark.parametrize("status, words", [(2, ("export", "--format", "parquet")), (7, ("ledger",))])
def test_a_file_in_the_place_of_the_folder_is_named(arrow, tmp_path, status, words):
    (tmp_path / "taken").write_text("mine")
    done = subprocess.run([TOOL, words[0], str(KERNELS), *words[1:], "-o", str(tmp_path / "taken"), "--python",
                           sys.executable], stderr=subprocess.PIPE, text=True)
    assert done.returncode == status and "taken" in done.stderr and "another folder" in done.stderr, done.stderr
    assert "Errno" not in done.stderr and (tmp_path / "taken").read_text() == "mine"


def rows_of(kind, path, cell):
    """What a writer of CSV makes of this text."""
    if kind == "zeus log":
        from jouleprof.zeus import _log

        path.write_bytes(_log._line(["begun", cell, 1.5]))
    elif kind == "layers":
        from jouleprof.torch import _tables

        _tables.write(path, ["layer_name", "energy_j"], [[cell, -1.5]])
    elif kind == "executions":
        from jouleprof.torch import _executions

        _executions.save(path, [{name: cell for name in _executions.COLUMNS}])
    else:
        from jouleprof import codecarbon

        codecarbon._write_rows(path, [{"project_name": cell, "duration": -1.5}])
    return list(csv.reader(io.StringIO(path.read_text())))


@pytest.mark.parametrize("cell", ["=1+1", "+cmd", "-x|y", "@SUM(A1)", "\tx"])
@pytest.mark.parametrize("kind", ["zeus log", "layers", "executions", "codecarbon"])
def test_no_cell_of_a_csv_file_is_a_formula(tmp_path, kind, cell):
    last = rows_of(kind, tmp_path / "file.csv", cell)[-1]
    assert "'" + cell in last and cell not in last
    assert all(not each.startswith(("=", "+", "-", "@", "\t")) or float(each) for each in last)
