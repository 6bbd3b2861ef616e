"""The columns of the tables of recordings and their types, for Arrow and Parquet."""

import hashlib

SCHEMA = "jouleprof.tables/1"

_ENERGY = ("provenance", "energy_joules", "interval_low_joules", "interval_high_joules", "repeatability_joules")
_LEVELS = tuple(f"{level}_{column}" for level in ("rest", "held", "active")
                for column in ("joules", "interval_low_joules", "interval_high_joules"))
_COMMAND = tuple(f"command_{column}" for column in (
    *_ENERGY, "processes_joules", "rest_joules", "undivided_joules", "is_divided"))
_ACTIVITY = ("device", "domain", "number", "parent", "name", "detail", "calls", "launches", "busy_seconds",
             "overlapped_seconds", "symbol", *_ENERGY, "inclusive_joules", "inclusive_interval_low_joules",
             "inclusive_interval_high_joules", "energy_per_launch_joules", "mean_watts", "share_ratio", "resolvable",
             "remembered", "group", "group_joules", "group_interval_low_joules", "group_interval_high_joules",
             "reason")

COLUMNS = {
    "runs": ("path", "host", "boot_id", "user", "job", "step", "node_list", "launcher", "rank", "world_size",
             "source", "tool_version", "command", "working_directory", "pid", "exit_status", "start_time",
             "duration_seconds", "complete", "being_written", "simulated", *_COMMAND, "command_energy_reason",
             *(f"total_{column}" for column in _ENERGY), "total_rest_joules", "total_held_joules",
             "total_active_joules", "total_dynamic_joules", "total_mean_watts", "overhead_cpu_seconds",
             "overhead_wall_seconds", "overhead_peak_memory_bytes"),
    "domains": ("label", "domain", "device", "name", "uuid", "visible", "counted", *_ENERGY, *_LEVELS,
                "levels_reason", "shares_include_rest", "dynamic_joules", "rest_power_watts", "held_power_watts",
                "mean_watts", "peak_watts", "peak_window_seconds", "sensor", "method", "reason", *_COMMAND,
                "within_command_joules", "command_division_interval_low_joules", "command_division_interval_high_joules"),
    "processes": ("pid", "own_pid", "parent_pid", "name", "command_line", "start_seconds", "end_seconds",
                  "cpu_seconds", "energy_joules", "provenance", "peak_pss_bytes", "peak_uss_bytes",
                  "peak_rss_bytes", "peak_gpu_memory_bytes", "mean_sm_utilisation_ratio"),
    "shares": ("pid", "start_seconds", "label", "domain", "device", "energy_joules", "kernels_joules",
               "idle_between_launches_joules", "held_joules", "division_interval_low_joules",
               "division_interval_high_joules"),
    "windows": ("name", "pid", "thread", "begin_seconds", "duration_seconds", "domain", "device", "provenance",
                "energy_joules", "interval_low_joules", "interval_high_joules", "repeatability_joules"),
    "window_names": ("name", "labels", "imported", "count", "total_seconds", "mean_seconds", "quartile_low_seconds",
                     "median_seconds", "quartile_high_seconds", "domain", "device", "with_energy", *_ENERGY,
                     "mean_joules", "mean_interval_low_joules", "mean_interval_high_joules", "quartile_low_joules",
                     "median_joules", "quartile_high_joules", *_LEVELS, "levels_reason", "sensor", "method", "reason"),
    "kernels": _ACTIVITY,
    "layers": (*_ACTIVITY, "parameters", "macs"),
    "ranges": _ACTIVITY,
    "phases": _ACTIVITY,
    "samples": ("time_unix_seconds", "time_seconds", "device", "domain", "sensor", "power_watts"),
    "gauges": ("time_unix_seconds", "time_seconds", "device", "domain", "quantity", "value"),
}

_FLOATS = ("_joules", "_watts", "_seconds", "_ratio", "_hertz", "_celsius")
_INTEGERS = {"rank", "world_size", "pid", "own_pid", "parent_pid", "thread", "exit_status", "number", "parent", "calls",
             "launches", "group", "count", "with_energy", "parameters", "macs"}
_FLAGS = {"complete", "being_written", "simulated", "command_is_divided", "visible", "counted", "shares_include_rest", "resolvable", "remembered", "imported"}


def type_of(column):
    """"float", "integer", "flag", "time" or "text"."""
    if column.endswith(_FLOATS) or column == "value":
        return "float"
    if column.endswith("_bytes") or column in _INTEGERS:
        return "integer"
    if column in _FLAGS:
        return "flag"
    return "time" if column == "start_time" else "text"


def arrow_schema(table):
    """Of a table with the columns `recording` and those of COLUMNS; the version is in its metadata."""
    import pyarrow

    types = {"float": pyarrow.float64(), "integer": pyarrow.int64(), "flag": pyarrow.bool_(),
             "time": pyarrow.timestamp("ns", tz="UTC"), "text": pyarrow.string()}
    fields = [pyarrow.field("recording", pyarrow.string(), nullable=False)]
    fields += [pyarrow.field(column, types[type_of(column)]) for column in COLUMNS[table]]
    return pyarrow.schema(fields, metadata={"jouleprof.schema": SCHEMA, "jouleprof.table": table})


def identity(report):
    """Of a recording, by what is in it: the same in each copy of the file."""
    parts = [report.get(name) for name in ("boot_id", "host", "pid", "start_time", "rank", "job", "step")]
    parts += [report["command"], report["duration_seconds"], report["source"]]
    number = hashlib.sha256(repr(parts).encode()).hexdigest()[:12]
    begin = (report["start_time"] or "")[:19].replace(":", "").replace("-", "").replace("T", "-")
    return "-".join(part for part in (_plain(report["host"]), begin, number) if part)


def _plain(name):
    return "".join(c if c.isalnum() or c in "._" else "_" for c in name or "")
