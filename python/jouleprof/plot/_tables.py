"""The runs of a sweep as a table of gpu-tune: one row for each run, of the whole command or of its windows of a name."""

import csv
import datetime
from typing import Any, Dict, Iterator, List, Optional

from .._errors import NotFound, Unavailable, existing_file
from .._recorded.recording import open_recording
from ._curves import Path
from ._data import own_runs

COLUMNS = ("max_watt", "tokens_per_sec", "total_power_draw", "energy_per_token", "temperature", "gpu_utilization",
           "memory_utilization", "loss", "timestamp")


def save_table(path: Path, output: Path, *, window: Optional[str] = None, per: float = 1.0) -> int:
    """Writes gpu-tune's columns of a file of `jouleprof sweep` to `output`, as training_stats.csv and
    inference_stats.csv have them; returns the number of rows. `window`: of each run its windows of this name, so that
    one sweep of a command that trains and infers gives both tables. `per`: tokens of a run, or of one window.
    `loss` is the last training loss that the run printed. What was not recorded is an empty cell. jouleprof.plot and `jouleprof import` read the table, but
    not that of a simulated GPU, which has a column more that says so."""
    rows = list(_rows(path, window, per))
    if not rows:
        raise Unavailable(f"{path} has no ranked run" + (f" with a window '{window}'" if window else ""))
    with open(output, "w", newline="", encoding="utf-8") as file:
        columns = [*COLUMNS, *(["provenance"] if "provenance" in rows[0] else [])]
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return len(rows)


def _rows(path: Path, window: Optional[str], per: float) -> Iterator[Dict[str, Any]]:
    own = own_runs(existing_file(path))
    if own is None:
        raise NotFound(f"{path} is no file of `jouleprof sweep`")
    plan, runs = own
    if plan["knob"] != "power_limit_watts":
        raise Unavailable(f"{path} is a sweep of another setting than the power limit, and the table has max_watt")
    for run in runs:
        seconds, joules, tokens = run["seconds"], run["joules"], per
        if window:
            found = _of_window(open_recording(path, run=run["number"]).report()["windows"], window)
            if found is None:
                continue
            seconds, joules, count = found
            tokens = per * count
        started = datetime.datetime.fromtimestamp(run["started_unix_ns"] * 1e-9)
        row = {"max_watt": f"{run['setting']:g}", "tokens_per_sec": tokens / seconds,
               "total_power_draw": joules / seconds, "energy_per_token": joules / tokens,
               "timestamp": f"{started:%Y-%m-%d %H:%M:%S}"}
        for column, key, scale in (("temperature", "end_celsius", 1), ("gpu_utilization", "sm_utilisation_ratio", 100),
                                   ("memory_utilization", "memory_utilisation_ratio", 100)):
            if run.get(key) is not None and not window:  # those of a run are not a window's
                row[column] = scale * run[key]
        if run.get("loss") is not None:
            row["loss"] = run["loss"]
        if run.get("simulated"):
            row["provenance"] = "simulated"
        yield row


def _of_window(windows: List[Dict[str, Any]], name: str) -> Any:
    """(seconds, joules of the GPUs, number); None without an energy of each window."""
    for group in windows:
        if group["name"] != name or group["imported"]:
            continue
        gpus = [energy for energy in group["energy"] if energy["domain"] == "gpu"]
        if not gpus or any(e["energy_joules"] is None or e["count"] != group["count"] for e in gpus):
            return None
        return group["total_seconds"], sum(e["energy_joules"] for e in gpus), group["count"]
    return None
