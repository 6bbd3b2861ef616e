"""`jouleprof.report("train.jprof")`: the command's report, in a terminal and in a notebook."""

from __future__ import annotations

import contextlib
import html
import json
import os
import sqlite3
from typing import Any, Literal, get_args

from .. import _text
from .._arguments import whole
from .._errors import InvalidArgument, existing_file, named
from .._files import read_only_uri
from .._tool import part_options, run_tool
from . import flat

_By = Literal["kernel", "layer", "range", "phase", "window"]
_MERGED = 0x4A504D47  # SQLite's application_id of a merged file


def report(path: str | os.PathLike[str], by: _By | None = None, *, top: int = 20, start: float | None = None,
           end: float | None = None) -> Report:
    """What `jouleprof report` prints: of the whole run, or by "kernel", "layer", "range", "phase" or "window".

    print() shows text; a notebook shows the page of `report --html`, or a table. start, end: seconds since
    the command began."""
    if by is not None and by not in get_args(_By):
        raise InvalidArgument(f"by is one of: {', '.join(get_args(_By))}")
    top = whole(top, "top is a number of rows above 0", 1)
    path = existing_file(path)
    if by is not None and (count := count_of_parts(path)):
        raise InvalidArgument(f"{path} holds {count} recordings, and by='{by}' is of one: use one of "
                              "jouleprof.open(...).parts, or its tables")
    kind = Report if by is None else WindowReport if by == "window" else ActivityReport
    return kind(path, part_options(start, end), by, top)


def count_of_parts(path: str | os.PathLike[str]) -> int:
    """How many recordings a merged file (src/recording/merge/FORMAT.md) holds; 0: it is none."""
    try:
        with contextlib.closing(sqlite3.connect(read_only_uri(path), uri=True)) as db:
            if db.execute("PRAGMA application_id").fetchone()[0] != _MERGED:
                return 0
            return db.execute("SELECT count(*) FROM part").fetchone()[0]
    except sqlite3.Error:
        return 0  # the tool says what is wrong


class Report:
    """The report of a recording. `json`: all figures (docs/json.md)."""

    def __init__(self, path: str | os.PathLike[str], options: list[str], by: _By | None = None,
                 top: int = 20) -> None:
        self.path: str = os.fspath(path)
        self._options = options
        self._by = by
        self._top = top

    @property
    def json(self) -> Any:
        """All figures, as `jouleprof report --json` has them."""
        return json.loads(self._tool("report", "--json"))

    def save_html(self, output: str | os.PathLike[str]) -> None:
        """Writes the page for a browser."""
        self._tool("report", "--html", named(output), "--force")

    def save_figure(self, output: str | os.PathLike[str]) -> None:
        """Writes headline, balance and power over time as one figure: an SVG, or where the name ends in .png a PNG."""
        output = named(output)
        ending = os.path.splitext(output)[1].lower()
        if ending not in ("", ".svg", ".png"):
            raise InvalidArgument(f"a figure is an SVG or a PNG: {output} ends in neither .svg nor .png")
        self._tool("report", "--png" if ending == ".png" else "--svg", output, "--force")

    def __str__(self):
        return self._tool("report")

    def _repr_html_(self):
        page = html.escape(self._tool("report", "--html", "-"), quote=True)
        return (f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="width: 100%; height: 640px; border: 0" '
                f'title="{html.escape(self.path, quote=True)}"></iframe>')

    def __repr__(self):
        return f"<jouleprof.{type(self).__name__} of {self.path}>"

    def _tool(self, verb, *options):
        return run_tool(verb, self.path, *self._options, *options)


class ActivityReport(Report):
    """Kernels, layers, ranges or phases."""

    @property
    def json(self):
        return json.loads(self._tool("report", "--by", self._by, "--json"))

    def __str__(self):
        return self._tool("report", "--by", self._by, "--top", str(self._top))

    def _repr_html_(self):
        return "".join(_text.html_table(self._caption(device), self._rows(device)) for device in self.json["devices"])

    def _caption(self, device):
        return f"{device['device']}, {_text.word(device['provenance'])}: active energy, above rest and held"

    def _rows(self, device):
        """The largest first; a tree's rows below their parents."""
        rows = device["rows"][:self._top]
        depths = _depths(device["rows"])
        return [(self._by, "energy", "95 %", "power", "time", "launches", "", ""),
                *(self._row(row, depths[row["number"]]) for row in rows)]

    @staticmethod
    def _row(row, depth):
        name = "\u00a0" * 2 * depth + row["name"]  # no-break spaces: a notebook keeps them
        time = _text.seconds(row["busy_seconds"])
        if row["energy_joules"] is None or not row["resolvable"]:
            bound = "" if row["interval_joules"] is None else f"at most {_text.joules(row['interval_joules'][1])}"
            return (name, "not resolvable", bound, "-", time, str(row["launches"]), row["detail"] or "",
                    row["reason"] or "")
        joules = row["energy_joules"]
        watts = "-" if row["mean_watts"] is None else f"{_text.number(row['mean_watts'])} W"
        return (name, _text.joules(joules), _text.bounds(joules, *row["interval_joules"]), watts, time,
                str(row["launches"]), row["detail"] or "", _mark(row["provenance"]))


class WindowReport(Report):
    """Windows, one row for each name and domain."""

    @property
    def json(self):
        return super().json["windows"]

    def __str__(self):
        return _text.table(self._rows())

    def _repr_html_(self):
        return _text.html_table(self.path, self._rows())

    def _rows(self):
        rows = [("window", "count", "time", "device", "energy", "95 %", "mean", "median", "", "")]
        for window in self.json[:self._top]:
            for energy in window["energy"]:
                rows.append(_window_row(window, energy))
        return rows


def _window_row(window, energy):
    joules, interval = energy["energy_joules"], energy["interval_joules"]
    quartiles = energy["quartiles_joules"]
    median = "" if quartiles is None else _text.joules(quartiles[1])
    return (window["name"], str(window["count"]), _text.seconds(window["total_seconds"]), flat.label(energy),
            _text.joules(joules), "-" if interval is None else _text.bounds(joules, *interval),
            _text.joules(energy["mean_joules"]), median, _mark(energy["provenance"] or "imported"),
            energy["reason"] or "")


def _mark(provenance):
    return "" if provenance == "measured" else _text.word(provenance)


def _depths(rows):
    depths = {}
    for row in rows:  # each parent is before its children
        depths[row["number"]] = depths.get(row["parent"], -1) + 1
    return depths
