"""`jouleprof ledger`: a row for each job and device, in few Parquet files by month.

FOLDER/ledger/month=2026-11/L0-....parquet has the recordings of one call. 64 files of a level become one of the next,
so that a month of 100,000 recordings has some 150 files and each row is written three times. Writers take turns by a
lock. A month whose files change at once is replaced as a folder: readers never see a row twice or miss one.
"""

import argparse
import contextlib
import ctypes
import fcntl
import hashlib
import os
import shutil
import sys

from .._errors import Error, InvalidArgument, exit_status, unwritten
from . import schemas
from .recording import open_recording
from .tables import arrow_of, needed

FAN = 64  # files of a level that become one
_WORK = ".ledger"  # next to the table: what is being written, and the lock
_ROWS = 131072  # of a row group
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2


def ledger_of(path):
    """The rows of a file as an Arrow table. Recordings of one machine that overlap count once."""
    opened = open_recording(path)
    parts = opened._parts("ledger")
    for _, report, _ in parts:
        if report["being_written"]:
            raise InvalidArgument(f"{path} is still written to; add it when its run has ended")
    rows = [{**row, "recording": name} for name, _, found in parts for row in found]
    return arrow_of("ledger", _counted_once(opened, rows) if len(parts) > 1 else rows)


def _latest(tables):
    """Each recording once, as if the files were added one by one: the last file that has it decides."""
    import pyarrow
    import pyarrow.compute as compute

    seen, out = set(), []
    for table in reversed(tables):
        known = compute.is_in(table["recording"], pyarrow.array(sorted(seen), pyarrow.string()))
        out.append(table.filter(compute.invert(known)))
        seen.update(table["recording"].to_pylist())
    return out


def _device(row):
    return row["boot_id"] or row["host"] or row["recording"], row["label"], row["uuid"]


def _counted_once(opened, rows):
    """Of a merged file: where several recordings have one device at one time, the job's figure."""
    of_device = {}
    for row in rows:
        of_device.setdefault(_device(row), []).append(row)
    overlapping = {key: found for key, found in of_device.items() if _overlap(found)}
    if not overlapping:
        return rows
    figures = {(host["boot_id"] or host["host"], domain["name"], domain["identity"]): (host, domain)
               for host in opened.report()["hosts"] for domain in host["domains"]}
    out = [row for key, found in of_device.items() if key not in overlapping for row in found]
    for (boot, label, uuid), found in overlapping.items():
        if len({(row["job"], row["step"]) for row in found}) > 1:
            raise InvalidArgument(f"{opened.path} has recordings of several jobs that overlap on {found[0]['host']}; "
                                  "add each job's file by itself")
        out.append(_sum_of(found, *figures[boot, label, uuid or label]))
    return out


def _sum_of(found, host, domain):
    first = min(found, key=lambda row: row["start_time"] or "")
    kept = ("job", "step", "user", "node_list", "launcher", "world_size", "host", "boot_id", "tool_version", "label",
            "domain", "device", "name", "uuid", "counted", "start_time", "simulated")
    row = {name: first[name] for name in kept}
    row.update({name: domain[name] for name in ("energy_joules", "repeatability_joules", "provenance", "reason")})
    if domain["interval_joules"] is not None:
        row.update(zip(("interval_low_joules", "interval_high_joules"), domain["interval_joules"]))
    row.update(recording=_digest(sorted(one["recording"] for one in found)), duration_seconds=host["recorded_seconds"],
               end_time=max(one["end_time"] or "" for one in found) or None,
               complete=all(one["complete"] for one in found))
    return row


def _overlap(rows):
    spans = sorted((row["start_time"], row["end_time"]) for row in rows if row["start_time"] and row["end_time"])
    return any(after[0] < before[1] for before, after in zip(spans, spans[1:]))


def _digest(names):
    return hashlib.sha256("\n".join(names).encode()).hexdigest()[:16]


def add(folder, table):
    """Adds the rows of an Arrow table to FOLDER/ledger. Recordings that it has are replaced where they differ.

    Returns how many recordings were new or changed. Errors: InvalidArgument for two recordings of one job that
    overlap on one device."""
    pyarrow = needed("pyarrow", "a ledger")
    import pyarrow.compute as compute

    table = _stored(table)
    months = compute.strftime(table["start_time"], format="%Y-%m")
    added = 0
    with _lock(folder):
        for month in compute.unique(months).to_pylist():
            rows = table.filter(compute.is_null(months) if month is None else compute.equal(months, month))
            added += _Month(folder, month).add(rows, pyarrow, compute)
    return added


def compact(folder):
    """Makes one file of each month. Returns the number of months."""
    with _lock(folder):
        names = sorted(os.listdir(os.path.join(folder, "ledger")))
        for name in names:
            _Month(folder, name.partition("=")[2]).compact()
    return len(names)


@contextlib.contextmanager
def _lock(folder):
    work = os.path.join(folder, _WORK)
    os.makedirs(work, exist_ok=True)
    os.makedirs(os.path.join(folder, "ledger"), exist_ok=True)
    with open(os.path.join(work, "lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in os.listdir(work):  # of a writer that was killed
            if name != "lock":
                shutil.rmtree(os.path.join(work, name), ignore_errors=True)
        yield


class _Month:
    """The files of a month. The lock is held."""

    def __init__(self, folder, month):
        name = f"month={month or '__HIVE_DEFAULT_PARTITION__'}"  # what engines read as NULL
        self._place = os.path.join(folder, "ledger", name)
        self._fresh = os.path.join(folder, _WORK, name)
        self._files = sorted(os.listdir(self._place)) if os.path.isdir(self._place) else []

    def add(self, rows, pyarrow, compute):
        names = set(rows["recording"].to_pylist())
        kept, removed = {}, []
        for file in self._files:
            known = names & set(self._known(file, "recording", pyarrow.array(sorted(names))))
            if not known:
                continue
            table = self._read(file)
            wanted = pyarrow.array(sorted(known))
            before = table.filter(compute.is_in(table["recording"], wanted))
            same = {name for name in known if _of(before, name).equals(_of(rows, name))}
            names -= same
            if known - same:
                rest = table.filter(compute.invert(compute.is_in(table["recording"], pyarrow.array(sorted(known - same)))))
                removed.append(file)
                if rest.num_rows:
                    kept[file.split("-")[0] + f"-{_digest(sorted(set(rest['recording'].to_pylist())))}.parquet"] = rest
        if not names:
            return 0
        rows = rows.filter(compute.is_in(rows["recording"], pyarrow.array(sorted(names))))
        self._check_overlap(rows, pyarrow, compute)
        level = 0
        while len(names) >= FAN ** (level + 1):
            level += 1
        kept[f"L{level}-{_digest(sorted(names))}.parquet"] = rows
        merged = self._full_levels([file for file in self._files if file not in removed], kept)
        self._replace(removed + merged, kept)
        return len(names)

    def compact(self):
        if len(self._files) < 2:
            return
        table = needed("pyarrow", "a ledger").concat_tables(self._read(file) for file in self._files)
        level = max(int(file[1:].partition("-")[0]) for file in self._files)
        self._replace(self._files, {f"L{level}-{_digest(self._files)}.parquet": table})

    def _full_levels(self, files, written):
        """Joins levels with FAN files into `written`. Returns the files whose rows are in there now."""
        gone = []
        level = 0
        while True:
            prefix = f"L{level}-"
            old = [file for file in files if file.startswith(prefix)]
            new = [name for name in written if name.startswith(prefix)]
            if len(old) + len(new) >= FAN:
                tables = [self._read(file) for file in old] + [written.pop(name) for name in new]
                written[f"L{level + 1}-{_digest(sorted(old + new))}.parquet"] = needed("pyarrow", "a ledger").concat_tables(tables)
                gone += old
            elif not any(int(name[1:].partition("-")[0]) > level for name in [*files, *written]):
                return gone
            level += 1

    def _check_overlap(self, rows, pyarrow, compute):
        """One job's recordings of one device that overlap would count twice."""
        same = ["job", "step", "boot_id", "host", "label", "uuid"]
        columns = ["recording", *same, "start_time", "end_time"]
        jobs = compute.unique(rows["job"].drop_null())
        if not len(jobs):
            return
        tables = [rows.select(columns)]
        tables += [self._read(file, columns) for file in self._files if self._known(file, "job", jobs)]
        table = pyarrow.concat_tables(tables)
        table = table.filter(compute.is_in(table["job"], jobs)).sort_by([(name, "ascending") for name in [*same, "start_time"]])
        one, other = table.slice(0, table.num_rows - 1), table.slice(1)  # where any overlap, neighbours do
        twice = compute.less(other["start_time"], one["end_time"])
        for name in same:
            twice = compute.and_(twice, compute.equal(one[name].fill_null(""), other[name].fill_null("")))
        twice = compute.and_(twice, compute.not_equal(one["recording"], other["recording"])).fill_null(False)
        for before, after in zip(one.filter(twice).slice(0, 1).to_pylist(), other.filter(twice).slice(0, 1).to_pylist()):
            raise InvalidArgument(
                f"{before['recording']} and {after['recording']} are of job {before['job']} and have {before['label']} at the "
                "same time: its energy would count twice; merge them (jouleprof merge) and add the merged file")

    def _replace(self, removed, written):
        removed = [file for file in removed if file not in written]
        os.makedirs(self._fresh)
        for name, table in written.items():
            _write(os.path.join(self._fresh, name), table)
        if not removed and os.path.isdir(self._place):
            for name in written:  # a new file: a reader sees all of it or none
                os.replace(os.path.join(self._fresh, name), os.path.join(self._place, name))
            os.rmdir(self._fresh)
            return
        for file in self._files:
            if file not in removed and file not in written:
                _link(os.path.join(self._place, file), os.path.join(self._fresh, file))
        if os.path.isdir(self._place):
            _exchange(self._fresh, self._place)
            shutil.rmtree(self._fresh, ignore_errors=True)
        else:
            os.rename(self._fresh, self._place)

    def _known(self, file, column, values):
        """Those of `values` that a column has."""
        import pyarrow.compute as compute

        found = compute.unique(self._read(file, [column])[column])
        return found.filter(compute.is_in(found, values)).to_pylist()

    def _read(self, file, columns=None):
        import pyarrow.parquet

        return pyarrow.parquet.ParquetFile(os.path.join(self._place, file)).read(columns)


def _of(table, recording):
    import pyarrow.compute as compute

    found = table.filter(compute.equal(table["recording"], recording)).sort_by([("label", "ascending"), ("domain", "ascending")])
    return found.combine_chunks()


def _stored(table):
    """With times in microseconds: Spark refuses nanoseconds."""
    return table.cast(schemas.arrow_schema("ledger", "us"), safe=False)


def _write(path, table):
    import pyarrow.parquet

    ordered = table.sort_by([("start_time", "ascending"), ("recording", "ascending"), ("label", "ascending")])
    pyarrow.parquet.write_table(ordered, path, compression="zstd", row_group_size=_ROWS)


def _link(source, target):
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copyfile(source, target)


def _exchange(one, other):
    """Swaps two folders at once where the system can; else a reader may find the month absent for a moment."""
    libc = ctypes.CDLL(None, use_errno=True)
    paths = os.fsencode(one), os.fsencode(other)
    if hasattr(libc, "renameat2") and libc.renameat2(-100, paths[0], -100, paths[1], _EXCHANGE) == 0:
        return
    os.rename(other, one + ".before")
    os.rename(one, other)
    shutil.rmtree(one + ".before", ignore_errors=True)


def main(arguments):
    parser = argparse.ArgumentParser(prog="jouleprof ledger")
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER")
    parser.add_argument("--compact", action="store_true")
    chosen = parser.parse_args(arguments)
    failed = 0
    try:
        pyarrow = needed("pyarrow", "a ledger")
        tables = []
        for path in chosen.files:
            try:
                tables.append(ledger_of(path))
            except Error as error:  # the others are added
                print(f"jouleprof: {path} is left out: {error}", file=sys.stderr)
                failed = failed or exit_status(error)
        if tables:
            count = add(chosen.output, pyarrow.concat_tables(_latest(tables)))
            print(f"ledger     {count} recordings are new or changed, of {len(tables)} files, in {chosen.output}/ledger",
                  file=sys.stderr)
        if chosen.compact:
            compact(chosen.output)
    except (Error, OSError) as error:
        print(f"jouleprof: {unwritten(error)}", file=sys.stderr)
        return exit_status(error)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
