"""The columns of the tables of recordings and their types, for Arrow and Parquet."""

import hashlib

from .columns import RECORDS

SCHEMA = "jouleprof.tables/1"


def _of(record, prefix="", without=()):
    """The columns of a kind of record as flat() makes them: an interval becomes two, quartiles three."""
    found = {}
    for name, kind in RECORDS[record].items():
        before, _, unit = f"{prefix}{name}".rpartition("interval_" if kind == "interval" else "quartiles_")
        if name in without:
            continue
        if kind == "interval":
            found.update({f"{before}interval_{end}_{unit}": "float" for end in ("low", "high")})
        elif kind == "quartiles":
            found.update({f"{part}_{unit}": "float" for part in ("quartile_low", "median", "quartile_high")})
        else:
            found[f"{prefix}{name}"] = kind
    return found


def _all(kind, *names):
    return dict.fromkeys(names, kind)


_PLACE = _all("text", "device", "domain")
_TIME = {"time": "time", **_all("float", "time_unix_seconds", "time_seconds"), **_PLACE}
_WINDOW = _of("window_energy", without=("id", "count"))

COLUMNS = {
    "runs": {
        **_all("text", "path", "host", "boot_id", "user", "job", "step", "node_list", "launcher"),
        **_all("integer", "rank", "world_size"), **_all("text", "source", "tool_version", "command", "working_directory"),
        **_all("integer", "pid", "exit_status"), "start_time": "time", **_all("float", "offset_seconds", "duration_seconds"),
        **_all("flag", "complete", "being_written", "simulated"), **_of("command", "command_"),
        "command_energy_reason": "text", **_of("total", "total_"), **_of("overhead", "overhead_")},
    "domains": {"label": "text", "counted": "flag", **_of("domain", without=("id", "parent")),
                **_of("power_level", "rest_power_"), **_of("power_level", "held_power_"), **_of("command", "command_")},
    "processes": _of("process"),
    "shares": {"pid": "integer", "start_seconds": "float", "label": "text", **_of("share", without=("id",))},
    "windows": {"name": "text", **_all("integer", "pid", "thread"),
                **_all("float", "begin_unix_seconds", "begin_seconds", "duration_seconds"),
                **_PLACE, **_all("text", "provenance", "reason", "labels"),
                **_all("float", "energy_joules", "interval_low_joules", "interval_high_joules", "repeatability_joules")},
    "window_names": {**_of("window"), "labels": "text", "with_energy": "integer", **_WINDOW},
    "kernels": {**_PLACE, **_of("activity")},
    "layers": {**_PLACE, **_of("layer")},
    "ranges": {**_PLACE, **_of("activity")},
    "phases": {**_PLACE, **_of("activity")},
    "ledger": {
        **_all("text", "job", "step", "user", "host", "boot_id", "node_list", "launcher"), "world_size": "integer",
        **_all("time", "start_time", "end_time"), "duration_seconds": "float", "exit_status": "integer",
        **_all("flag", "complete", "simulated"), **_all("text", "command", "tool_version", "label"), "counted": "flag",
        **_of("domain", without=("id", "parent", "visible")), **_of("command", "command_")},
    "samples": {**_TIME, "sensor": "text", "power_watts": "float", "provenance": "text"},
    "gauges": {**_TIME, "quantity": "text", "value": "float", "provenance": "text"},
}


def arrow_schema(table, unit="ns"):
    """Of a table with the columns `recording` and those of COLUMNS; the version is in its metadata. `unit`: of times."""
    import pyarrow

    types = {"float": pyarrow.float64(), "integer": pyarrow.int64(), "flag": pyarrow.bool_(),
             "time": pyarrow.timestamp(unit, tz="UTC"), "text": pyarrow.string()}
    fields = [pyarrow.field("recording", pyarrow.string(), nullable=False)]
    fields += [pyarrow.field(column, types[kind]) for column, kind in COLUMNS[table].items()]
    return pyarrow.schema(fields, metadata={"jouleprof.schema": SCHEMA, "jouleprof.table": table})


def identity(report):
    """Of a recording, by what is in it: the same in each copy of the file."""
    parts = [report.get(name) for name in ("boot_id", "host", "pid", "start_time", "rank", "job", "step")]
    parts += [report["command"], report["duration_seconds"], report["source"]]
    if not report.get("host"):  # logs of several machines may begin and end together
        parts += [(domain["uuid"], domain["domain"], domain["device"], domain["energy_joules"], domain["reported_joules"])
                  for domain in report["domains"]]
    number = hashlib.sha256(repr(parts).encode()).hexdigest()[:12]
    begin = (report["start_time"] or "")[:19].replace(":", "").replace("-", "").replace("T", "-")
    return "-".join(part for part in (_plain(report["host"]), begin, number) if part)


def _plain(name):
    return "".join(c if c.isalnum() or c in "._" else "_" for c in name or "")
