"""Sweeps, read through the command-line tool, and what the panels of their figures show."""

import csv
import json
import os
import sqlite3
import tempfile
from dataclasses import dataclass, field
from typing import Dict, List, Optional, Tuple

from .._arguments import number, text as checked_text
from .._errors import Corrupt, InvalidArgument, existing_file
from .._files import read_only_uri
from .._tool import output_of, run_tool

_KNOBS = {"power_limit_watts": ("power limit", "W"), "sm_clock_megahertz": ("SM clock", "MHz"),
          "memory_clock_megahertz": ("memory clock", "MHz")}
_SWEEP_APPLICATION = 0x4A504653
# Columns of gpu-tune's tables, as panels.
_TABLE = {"temperature": ("temperature (\N{DEGREE SIGN}C)", 1), "gpu_utilization": ("utilisation of compute (%)", 1),
          "memory_utilization": ("utilisation of memory (%)", 1), "loss": ("loss", 1)}
# Members of a run, as panels.
_RUN = {"sm_megahertz": ("SM clock (MHz)", 1), "end_celsius": ("temperature at the end (\N{DEGREE SIGN}C)", 1),
        "sm_utilisation_ratio": ("utilisation of compute (%)", 100),
        "memory_utilisation_ratio": ("utilisation of memory (%)", 100), "loss": ("loss", 1)}

Points = List[Tuple[float, float]]  # setting, value


@dataclass
class Panel:
    title: str
    raw: Points  # each measurement
    means: Points  # one of each setting
    bars: Dict[float, Tuple[float, float]] = field(default_factory=dict)  # 95 % intervals, by setting


@dataclass
class SweepData:
    name: str
    knob: str
    knob_unit: str
    unit: str  # of the work
    panels: List[Panel]
    recommended: Optional[float]
    reference: Optional[float]
    unranked: Dict[float, str]
    advice: dict  # as `jouleprof recommend --json` has it
    left_out: List[str]  # runs and rows that are left out, or far from the others

    def panel(self, start):
        return next((p for p in self.panels if p.title.startswith(start)), None)


def own_runs(path):
    """(plan, ranked runs) of a file of `jouleprof sweep`; None for another file."""
    try:
        with sqlite3.connect(read_only_uri(path), uri=True) as database:
            if database.execute("PRAGMA application_id").fetchone()[0] != _SWEEP_APPLICATION:
                return None
            plan = json.loads(database.execute("SELECT plan FROM sweep").fetchone()[0])
            runs = [json.loads(text) for text, in database.execute("SELECT summary FROM run ORDER BY number")]
    except sqlite3.DatabaseError:
        return None
    return plan, [run for run in runs if run["block"] > 0 and not run.get("unranked") and "joules" in run]


def _is_table(path):
    with open(path, "rb") as file:
        return b"max_watt" in file.readline(4096)


def is_sweep(path):
    """Whether `path` is a sweep: of ours, imported, or a table of gpu-tune."""
    path = existing_file(path)
    if own_runs(path) is not None or _is_table(path):
        return True
    return bool(output_of("recommend", path, "--json").stdout)


def read_sweep(path, unit=None, per=1.0, objective=None, max_slowdown=None):
    """`per`: so many of `unit` are in one measured unit of work."""
    if number(per, "per") <= 0:
        raise InvalidArgument(f"per is a number above 0, not {per!r}")
    if unit is not None:
        checked_text(unit, "unit")
    path = existing_file(path)
    own = own_runs(path)
    left_out: List[str] = []
    with tempfile.TemporaryDirectory() as folder:
        source, table = path, own is None and _is_table(path)
        if table:
            source = os.path.join(folder, "table.jprof")
            run_tool("import", path, "-o", source)
            profile = json.loads(run_tool("report", source, "--json"))
            left_out = [text for text in profile["warnings"] if "left out" in text]
        options = [*(["--objective", objective] if objective else []),
                   *(["--max-slowdown", max_slowdown] if max_slowdown else [])]
        advice = json.loads(run_tool("recommend", source, "--json", *options))
    if len(advice["sweeps"]) != 1:
        raise Corrupt(f"{path} has {len(advice['sweeps'])} sweeps; a figure shows one")
    found = advice["sweeps"][0]
    knob, knob_unit = _KNOBS.get(found["knob"], (found["knob"], ""))
    rows = [(run["setting"], run) for run in own[1]] if own is not None else _table_rows(path) if table else []
    ranked = {point["setting"] for point in found["points"]}
    rows = [row for row in rows if row[0] in ranked]
    samples = [(p["setting"], s["seconds"], s["energy_joules"]) for p in found["points"] for s in p["samples"]]
    if table:  # its import keeps the mean of each setting
        samples = [(x, 1 / float(row["tokens_per_sec"]), float(row["total_power_draw"]) / float(row["tokens_per_sec"]))
                   for x, row in rows]
    named = [*found["left_out_runs"], *({**run, "reason": run["reason"] + "; it counts"} for run in found["outliers"])]
    left_out += [f"{run['name']} at {run['setting']:g} {knob_unit}: {run['reason']}" for run in named]
    panels = _panels_of_work(found, samples, unit or _unit_of(own, table), per)
    panels += _panels_of_state(rows, _TABLE if table else _RUN)
    return SweepData(os.path.basename(path), knob, knob_unit, unit or _unit_of(own, table),
                     [p for p in panels if p.raw], found["recommended"], found["reference"],
                     {u["setting"]: u["reason"] for u in found["unranked"]}, found, left_out)


def _unit_of(own, table):
    if own is None:
        return "token" if table else "unit"
    plan = own[0]
    if plan.get("window"):
        return plan["window"]
    return "iteration" if plan.get("bench") else "unit" if plan.get("throughput") else "run"


def _table_rows(path):
    """(power limit, row) of gpu-tune's samples in which tokens came out."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file, skipinitialspace=True))
    return [(float(row["max_watt"]), row) for row in rows if float(row["tokens_per_sec"] or 0) > 0]


def _panels_of_work(found, samples, unit, per):
    means = [(p["setting"], p["seconds"], p["energy_joules"]) for p in found["points"]]

    def panel(title, value):
        return Panel(title, *([(x, value(seconds / per, joules / per)) for x, seconds, joules in values]
                              for values in (samples, means)))

    energy = panel(f"energy per {unit} (J)", lambda seconds, joules: joules)
    time = panel(f"time per {unit} (s)", lambda seconds, joules: seconds)
    reference = next((p for p in found["points"] if p["setting"] == found["reference"]), None)
    for point in found["points"] if reference else []:
        for drawn, key, figure in ((energy, "saving", "energy_joules"),
                                   (time, "slowdown", "seconds")):
            interval = point[f"{key}_interval_ratio"]
            if interval is None or point is reference:
                continue
            sign = -1 if key == "saving" else 1
            ends = [reference[figure] / per * (1 + sign * v) for v in interval]
            # Blocks weigh the ratio, but not the mean that is drawn: the bar contains both.
            ends.append(point[figure] / per)
            drawn.bars[point["setting"]] = (min(ends), max(ends))
    return [panel(f"throughput ({unit}s/s)", lambda seconds, joules: 1 / seconds), time, energy,
            panel("mean power (W)", lambda seconds, joules: joules / seconds)]


def _panels_of_state(rows, titles):
    panels = []
    for key, (title, scale) in titles.items():
        raw = [(x, scale * float(row[key])) for x, row in rows if row.get(key) not in (None, "")]
        by_setting = {}
        for x, y in raw:
            by_setting.setdefault(x, []).append(y)
        panels.append(Panel(title, raw, [(x, sum(ys) / len(ys)) for x, ys in by_setting.items()]))
    return panels
