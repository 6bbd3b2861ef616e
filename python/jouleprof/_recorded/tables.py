"""Tables of one recording or of many, as Arrow, pandas and polars, and as Parquet files."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any, Sequence

from .._arguments import path
from .._errors import InvalidArgument, Unavailable
from . import flat, schemas

TABLES = tuple(table for table in schemas.COLUMNS if table != "ledger")  # which has files of its own (ledger.py)


class Tables:
    """What has `_parts(table)`: a list of (identity, report, rows) of recordings."""

    runs: Any
    domains: Any
    processes: Any
    shares: Any
    windows: Any
    window_names: Any
    kernels: Any
    layers: Any
    ranges: Any
    phases: Any
    samples: Any
    gauges: Any
    ledger: Any

    def rows(self, table: str) -> list[dict[str, Any]]:
        """A list of dictionaries, with the `recording` that each is of. Absent figures are None."""
        check(table)
        return [{"recording": name, **row} for name, _, rows in self._parts(table) for row in rows]

    def frame(self, table: str) -> Any:
        """rows() as a pandas data frame, which has the columns of arrow() also where there are no rows."""
        check(table)
        pandas = needed("pandas", "a data frame", "rows()")
        rows, kinds = self.rows(table), schemas.COLUMNS[table]
        found = pandas.DataFrame(rows, columns=list(dict.fromkeys([*(name for row in rows for name in row), *kinds])))
        # A column without any figure is of objects, whose None is no number.
        whole = "float64" if rows else "int64"
        return found.astype({name: "float64" if kind == "float" else whole for name, kind in kinds.items()
                             if kind == "float" or kind == "integer" and found[name].dtype == object})

    def arrow(self, table: str) -> Any:
        """A pyarrow.Table. Its columns and their types do not depend on the recording."""
        check(table)
        pyarrow = needed("pyarrow", "an Arrow table", "rows()")
        return pyarrow.concat_tables([_arrow(table, name, rows) for name, _, rows in self._parts(table)]
                                     or [schemas.arrow_schema(table).empty_table()])

    def polars(self, table: str) -> Any:
        """A polars.DataFrame, with the columns of arrow()."""
        check(table)
        return needed("polars", "a polars data frame", "rows()").from_arrow(self.arrow(table))

    def write_parquet(self, folder: str | os.PathLike[str], tables: Sequence[str] = TABLES) -> int:
        """Writes FOLDER/TABLE/day=DAY/RECORDING.parquet, a file for each recording and table that has rows.

        Writing a recording again replaces its files. Returns the number of files."""
        needed("pyarrow", "a Parquet file")
        folder = path(folder, "folder")
        if not folder or (os.path.exists(folder) and not os.path.isdir(folder)):
            raise InvalidArgument(f"{folder or repr(folder)} is no folder; name another folder, which need not exist")
        for table in tables:
            check(table, TABLES)
        return sum(_write(folder, table, part) for table in tables for part in self._parts(table))

    if not TYPE_CHECKING:  # to a type checker only the tables are attributes

        def __getattr__(self, name):
            if name in schemas.COLUMNS:
                return self.frame(name)
            raise AttributeError(name)

    def __dir__(self):
        return [*super().__dir__(), *schemas.COLUMNS]


def check(table, known=tuple(schemas.COLUMNS)):
    if table not in known:
        raise InvalidArgument(f"no table '{table}'; there are: {', '.join(known)}")


def needed(module, what, instead=None):
    try:
        return importlib.import_module(module)
    except ImportError as error:
        other = f"; {instead} does not" if instead else ""
        raise Unavailable(f"{what} needs {module}: pip install {module}{other}") from error


def arrow_of(table, rows):
    """Of rows that have their `recording`."""
    return _arrow(table, [row["recording"] for row in rows], rows)


def _arrow(table, name, rows):
    """`name`: of the recording, or a list of names."""
    import pyarrow

    schema, kinds = schemas.arrow_schema(table), schemas.COLUMNS[table]
    columns = [pyarrow.array(name if isinstance(name, list) else [name] * len(rows), pyarrow.string())]
    for field in list(schema)[1:]:
        columns.append(pyarrow.array([_value(kinds[field.name], row.get(field.name)) for row in rows], field.type))
    return pyarrow.Table.from_arrays(columns, schema=schema)


def _value(kind, value):
    if value is None:
        return None
    if kind == "integer":
        return int(value)
    if kind == "float":
        return float(value)
    if kind == "time":
        return flat.nanoseconds(value)
    return value


def _write(folder, table, part):
    """The number of files."""
    import pyarrow.parquet

    name, report, rows = part
    if not rows:
        return 0
    day = (report["start_time"] or "")[:10] or "__HIVE_DEFAULT_PARTITION__"  # what engines read as NULL
    # The job is a column: as a part of the path it would be one twice, of another type to most readers.
    place = os.path.join(os.fspath(folder), table, f"day={day}")
    os.makedirs(place, exist_ok=True)
    path = os.path.join(place, f"{name}.parquet")
    # In microseconds: Spark refuses nanoseconds.
    pyarrow.parquet.write_table(_arrow(table, name, rows), f"{path}.part", coerce_timestamps="us",
                                allow_truncated_timestamps=True)
    os.replace(f"{path}.part", path)  # readers see whole files only
    return 1
