"""The objects of `report --json` as rows of a table: one value a column, units in the names."""

import datetime

from .._energy import label_of

_UNITS = ("_joules", "_watts", "_seconds", "_bytes", "_ratio", "_hertz", "_celsius")


def has_unit(column):
    return column.endswith(_UNITS) or column == "value"


def label(domain):
    """As tables and curves name it: "gpu0", "gpu_memory gpu0"."""
    return label_of(domain["domain"], domain["device"])


def flat(found, prefix=""):
    """Objects inside are joined to the name; an interval becomes two columns. Lists are left out."""
    row = {}
    for name, value in found.items():
        name = prefix + name
        if name.startswith("quartiles_"):
            continue
        if _is_interval(name, value):
            row.update(_two_columns(name, value))
        elif isinstance(value, dict):
            row.update(flat(value, name + "_"))
        elif not isinstance(value, list):
            row[name] = value
    return row


def runs(report):
    row = {name: value for name, value in report.items() if not isinstance(value, (dict, list))}
    row["command"] = " ".join(report["command"]) or None
    row.pop("command_energy", None)
    row.update(flat(report["command_energy"] or {}, "command_"))
    row.update(flat(report["total"], "total_"))
    if report.get("overhead"):
        row.update(flat(report["overhead"], "overhead_"))
    return [row]


def domains(report):
    rows = []
    for domain in report["domains"]:
        columns = {name: value for name, value in domain.items() if name not in ("id", "parent", "balance", "command")}
        rows.append({"label": label(domain), "counted": domain["id"] in report["total"]["of"], **flat(columns),
                     **flat(domain["command"] or {}, "command_")})
    return rows


def ledger(report):
    """One row for each device of the job's recording: what it is of, and the device's figures."""
    (run,) = runs(report)
    begin = run["start_time"]
    end = None if begin is None else utc_text(nanoseconds(begin) + round(run["duration_seconds"] * 1e9))
    whole = {name: run.get(name) for name in (
        "job", "step", "user", "host", "boot_id", "node_list", "launcher", "world_size", "start_time", "duration_seconds",
        "exit_status", "complete", "simulated", "command", "tool_version")}
    return [{**whole, "end_time": end, **row} for row in domains(report)]


def nanoseconds(text):
    """Of "2026-11-22T02:03:02.123456789Z", since 1970."""
    whole, *fraction = text.rstrip("Z").split(".")
    begin = datetime.datetime.fromisoformat(whole).replace(tzinfo=datetime.timezone.utc)
    return nanoseconds_of(begin.timestamp(), *fraction)


def nanoseconds_of(seconds, fraction=""):
    """Of whole seconds and the digits behind their point."""
    return int(seconds) * 1_000_000_000 + int(fraction.ljust(9, "0")[:9])


def utc_text(nanoseconds_since_1970):
    """The reverse of nanoseconds()."""
    whole, fraction = divmod(nanoseconds_since_1970, 1_000_000_000)
    return f"{datetime.datetime.fromtimestamp(whole, datetime.timezone.utc):%Y-%m-%dT%H:%M:%S}.{fraction:09d}Z"


def processes(report):
    rows = []
    for process in report["processes"]:
        row = flat(process)
        row.update({f"{label(share)}_joules": share["energy_joules"] for share in process["energy"]})
        rows.append(row)
    return rows


def shares(report):
    """One row for each process and domain."""
    rows = []
    for process in report["processes"]:
        for share in process["energy"]:
            columns = {name: value for name, value in share.items() if name != "id"}
            rows.append({"pid": process["pid"], "start_seconds": process["start_seconds"], "label": label(share),
                         **flat(columns)})
    return rows


def window_names(report):
    """One row for each name of windows (imported ones: name and labels) and domain."""
    rows = []
    for group in report["windows"]:
        own = {name: value for name, value in flat(group).items() if name != "energy"}
        own["labels"] = ";".join(f"{each['name']}={each['value']}" for each in group["labels"])
        own.update(_quartiles(group, "seconds"))
        for energy in group["energy"]:
            columns = {name: value for name, value in flat(energy).items() if name not in ("id", "count")}
            rows.append({**own, "with_energy": energy["count"], **columns, **_quartiles(energy, "joules")})
    return rows


def _quartiles(found, unit):
    names = (f"quartile_low_{unit}", f"median_{unit}", f"quartile_high_{unit}")
    return dict(zip(names, found[f"quartiles_{unit}"] or (None, None, None)))


def activity(report):
    return [{"device": device["device"], "domain": device["domain"], **flat(row)}
            for device in report["devices"] for row in device["rows"]]


def _is_interval(name, value):
    return "interval_" in name and (value is None or isinstance(value, list))


def _two_columns(name, value):
    before, _, unit = name.rpartition("interval_")
    low, high = value if value is not None else (None, None)
    return {f"{before}interval_low_{unit}": low, f"{before}interval_high_{unit}": high}
