"""One recording for Python. The command-line tool computes all figures."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
from typing import Any

from .. import _text
from .._arguments import whole
from .._energy import Domain, Energy, Power
from .._errors import InvalidArgument, NotFound, Unavailable, Unsupported, existing_file
from .._tool import part_options, run_tool
from . import flat, schemas
from .curves import Curve, read_curves
from .reports import count_of_parts
from .tables import Tables, check

_SQLITE = b"SQLite format 3\0"
_BY = {"kernels": "kernel", "layers": "layer", "ranges": "range", "phases": "phase"}
_EXPORTS = {"windows": "windows", "samples": "csv", "gauges": "gauges"}


def open_recording(path: str | os.PathLike[str], *, run: int | None = None) -> Recording:
    """A recording, or run `run` of a sweep or a merged file. The file is not changed."""
    opened = open_unread(path, run)
    if _is_other_file(opened.path):
        raise Unsupported(f"{opened.path} is not a jouleprof recording; logs of other tools are read by jouleprof import")
    return opened


def _is_other_file(path):
    """By its first bytes. What else may be wrong with it, the tool says at the first figure."""
    if not os.path.isfile(path):
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(_SQLITE)) not in (b"", _SQLITE)
    except OSError:
        return False


def open_unread(path: str | os.PathLike[str], run: int | None = None) -> Recording:
    """The same without a look into the file, of many of which some may be damaged."""
    if run is not None:
        run = whole(run, "run is the number of a run, from 1 on", 1)
    return Recording(existing_file(path), run)


class Recording(Tables):
    """Tables, and the figures of one domain.

    `runs`, `domains`, `processes`, `shares`, `windows`, `window_names`, `kernels`, `layers`, `ranges`, `phases`, `samples`, `gauges`,
    `ledger`:
    pandas data frames, whose columns end in their unit; arrow(), polars() and rows() give the same without pandas.
    Times given to the methods are seconds since the command began.
    `parts`: the recordings that a merged file holds. It has the tables of all of them, and no figures of a domain.
    """

    def __init__(self, path: str | os.PathLike[str], run: int | None = None) -> None:
        self.path = os.fspath(path)
        self._run = [] if run is None else ["--run", str(run)]
        self._known: dict[Any, Any] = {}
        self.parts: list[Recording] = [] if run is not None else [Recording(path, n + 1) for n in range(count_of_parts(path))]

    def _rows(self, table):
        if table in _EXPORTS:
            rows = _of_csv(self._tool("export", "--format", _EXPORTS[table]))
            return [{**row, "name": row["name"] or "", **_process_of(row["labels"])} for row in rows] if table == "windows" else rows
        if table in _BY:
            return flat.activity(self._json("--by", _BY[table]))
        rows = getattr(flat, table)(self.report())
        if table == "runs":
            rows[0]["path"] = self.path
        return rows

    def _parts(self, table):
        if self.parts:
            return [found for part in self.parts for found in part._parts(table)]
        report = self.report()
        return [(schemas.identity(report), report, self._rows_if_traced(table))]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """A list of dictionaries. Absent figures are None."""
        if not self.parts:
            check(table)
            return self._rows(table)
        rows = super().rows(table)
        if not rows and table in _BY:
            self.parts[0].rows(table)  # raises the reason, where no part has a trace
        return rows

    def _rows_if_traced(self, table):
        """Of several recordings, only some may have kernels."""
        try:
            return self._rows(table)
        except Unavailable:
            if table in _BY:
                return []
            raise

    def report(self, start: float | None = None, end: float | None = None) -> dict[str, Any]:
        """The object of `jouleprof report --json` (docs/json.md), of the whole run or of a part; of a merged file the
        object of its job."""
        return self._json(*part_options(start, end))

    @property
    def warnings(self) -> list[str]:
        """What the reader of the figures should know, such as windows that were open when their process ended."""
        return [text for recording in self.parts or [self] for text in recording.report()["warnings"]]

    def total(self, name: str = "total", start: float | None = None, end: float | None = None) -> Energy:
        """The energy of a domain ("gpu0", "dram package-0"), the sum over whole devices ("total"), or what of it is the
        command's ("command")."""
        return _energy(name, self._figure(name, start, end)[0])

    def average(self, name: str = "total", start: float | None = None, end: float | None = None) -> Power:
        """The mean power of a domain, or of all whole devices."""
        figure, seconds = self._figure(name, start, end)
        return Power.mean_of(_energy(name, figure), seconds)

    def max(self, name: str, start: float | None = None, end: float | None = None) -> Power:
        """The largest power of a domain; `over_seconds`: the sensor's averaging window."""
        figure, _ = self._figure(name, start, end)
        watts = figure.get("peak_watts")
        if watts is None:
            return Power(name, None, None, None, "unavailable", None, (
                "only a single domain has a largest power" if name in ("total", "command") else
                figure.get("reason") or ("no power reading" if figure["energy_joules"] is None else
                                         "power samples are missing in this time")))
        return Power(name, watts, None, None, figure["provenance"], figure["peak_window_seconds"])

    def curve(self, name: str, start: float | None = None, end: float | None = None) -> Curve:
        """The power of a domain over time: `seconds`, `watts` and the 95 % interval `low`, `high`."""
        self._check_single()
        if "curves" not in self._known:
            self._known["curves"] = {curve.name: curve for curve in read_curves(self.path, *self._run)}
        curves = self._known["curves"]
        if name not in curves:
            raise NotFound(f"{self.path} has no curve of '{name}'; it has: {', '.join(curves)}")
        part = curves[name].part(start, end)
        if not part.seconds:
            self.report(start, end)  # raises the reason, unless the part is just shorter than the curve's steps
            raise Unavailable(f"{self.path}: no point of the curve of '{name}' lies in this part; choose a longer one")
        return part

    def _figure(self, name, start, end):
        """(object of the report, seconds that it covers)."""
        self._check_single()
        found = self.report(start, end)
        if name == "total":
            return _total(found), found["duration_seconds"]
        if name == "command":
            figure = found["command_energy"] or {"energy_joules": None, "reason": found["command_energy_reason"]}
            return figure, found["duration_seconds"]
        domains = {flat.label(d): d for d in found["domains"]}
        if name not in domains:
            raise NotFound(f"{self.path} has no domain '{name}'; it has: {', '.join(domains)}")
        return domains[name], found["duration_seconds"]

    def _check_single(self):
        if self.parts:
            raise InvalidArgument(f"{self.path} holds {len(self.parts)} recordings: use one of `parts`, or the tables")

    def _json(self, *options):
        if options not in self._known:
            self._known[options] = json.loads(self._tool("report", "--json", *options))
        return self._known[options]

    def _tool(self, verb, *options):
        return run_tool(verb, self.path, *self._run, *options)

    def __repr__(self):
        return f"<jouleprof.Recording {self.path}>"


def _total(report):
    """With the domains that it lacks as its reason; where it has no figure, with the reason of each."""
    total, domains = report["total"], {d["id"]: d for d in report["domains"]}
    without = [(flat.label(domains[w["id"]]), domains[w["id"]]["reason"] or w["reason"]) for w in total["without"]
               if domains[w["id"]]["energy_joules"] is None]
    if total["energy_joules"] is None:
        return {**total, "reason": "; ".join(f"{label}: {reason}" for label, reason in without)}
    return {**total, "reason": "without " + ", ".join(label for label, _ in without) if without else ""}


def _energy(name, figure):
    domain = None
    if "device" in figure:
        domain = Domain(figure["domain"], figure["device"], figure["name"] or "", figure["uuid"] or "",
                        figure["reason"] or "", None, None)
    energy = Energy.of_json(domain, figure)
    return energy if domain else dataclasses.replace(energy, scope=name)


def _of_csv(text):
    return [_timed({name: _value(name, cell) for name, cell in row.items()}, row.get("time_unix_seconds"))
            for row in csv.DictReader(io.StringIO(text))]


def _process_of(labels):
    """Of a window: {"pid": 1, "thread": 2}, which its labels have; imported ones may not."""
    known = dict(label.partition("=")[::2] for label in (labels or "").split(";"))
    return {name: int(known[name]) if known.get(name, "").isdecimal() else None for name in ("pid", "thread")}


def _timed(row, unix_seconds):
    """With the stamp of a reading as other tables have theirs."""
    if unix_seconds:
        row["time"] = flat.utc_text(flat.nanoseconds_of(*unix_seconds.split(".")))
    return row


def _value(name, cell):
    """Numbers are in the columns that have a unit."""
    if cell == "":
        return None
    return float(cell) if flat.has_unit(name) else _text.of_csv_cell(cell)
