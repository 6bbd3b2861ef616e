"""All views and parts of a recording give the same joules: run, processes, kernels, layers."""

import json

import pytest
from conftest import SOURCE

RECORDINGS = sorted([*(SOURCE / "tests" / "fixtures").rglob("*.jprof"),
                     *(SOURCE / "examples").glob("*.jprof")])


CUTS = (0, 0.17, 0.43, 0.441, 0.77, 1)  # shares of the duration


def micro(joules):
    return round((joules or 0) * 1e6)


def test_there_are_recordings():
    assert len(RECORDINGS) >= 4


def expect_same_as_job(tool, path, report):
    """A job of one recording has the recording's figures."""
    job = json.loads(tool("report", path, "--by", "job", "--json", status=None).out or "null")
    if job:
        assert job["command_energy"] == report["command_energy"]
        for figure in ("energy_joules", "interval_joules", "provenance", "is_partial"):
            assert job[figure] == report["total"][figure], figure


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_all_views_agree(tool, path):
    report = json.loads(tool("report", path, "--json").out)
    expect_same_as_job(tool, path, report)
    for d in report["domains"]:
        if None not in (d["rest_joules"], d["held_joules"], d["active_joules"]):
            levels = sum(micro(d[f"{level}_joules"]) for level in ("rest", "held", "active"))
            assert levels == micro(d["energy_joules"]), d["device"]
        balance = d["balance"]
        if balance["parts_joules"] is None:
            continue
        shares = sum(micro(e["energy_joules"]) for p in report["processes"] for e in p["energy"]
                     if e["id"] == d["id"])
        parts = shares + sum(micro(balance[f"{part}_joules"])
                             for part in ("rest", "idle", "others", "held_unowned", "unattributed"))
        assert parts == micro(d["energy_joules"]), d["device"]

    views = {by: json.loads(tool("report", path, "--by", by, "--json", status=None).out or "{}")
             for by in ("kernel", "layer", "range", "phase")}
    for by, view in views.items():
        for a in view.get("devices", []):
            parts = sum(micro(a[f"{part}_joules"]) for part in (
                "idle", "kernels", "idle_between_launches", "others", "unattributed"))
            assert parts == micro(a["measured_joules"]), by
            own = sum(micro(r["energy_joules"]) for r in a["rows"])
            assert not a["rows"] or own == micro(a["kernels_joules"]), by
            if a["processes"]:
                assert sum(micro(p["kernels_joules"]) for p in a["processes"]) == micro(
                    a["kernels_joules"])
                gpu = next(d for d in report["domains"] if d["device"] == a["device"]
                           and d["domain"] == a["domain"])
                of_processes = sum(micro(e["kernels_joules"]) for p in report["processes"]
                                   for e in p["energy"] if e["id"] == gpu["id"])
                assert of_processes == micro(a["kernels_joules"])


def parts_of(tool, path, duration, *options):
    """The reports of adjacent parts; none of a part in which nothing ran."""
    edges = [f"{duration * cut:.9f}s" for cut in CUTS[1:-1]]
    for begin, end in zip([None, *edges], [*edges, None], strict=True):
        part = [*(["--from", begin] if begin else []), *(["--to", end] if end else [])]
        made = tool("report", path, "--json", *options, *part, status=None)
        assert made.returncode == 0 or "in this part" in made.err, made.err
        if made.returncode == 0:
            yield json.loads(made.out)


def is_sum(parts, whole, tolerance):
    return abs(sum(p or 0 for p in parts) - whole) <= max(tolerance * abs(whole), 0.05)


def expect_parts_add_up(tool, path):
    whole = json.loads(tool("report", path, "--json").out)
    if whole["duration_seconds"] is None:
        return
    parts = list(parts_of(tool, path, whole["duration_seconds"]))
    for i, d in enumerate(whole["domains"]):
        of_parts = [p["domains"][i] for p in parts]
        if d["energy_joules"] is None or None in [p["energy_joules"] for p in of_parts]:
            continue
        assert is_sum([p["energy_joules"] for p in of_parts], d["energy_joules"], 1e-3), d["device"]
        for p in [d, *of_parts]:
            own = p["command"]
            low, high = p["interval_joules"]
            assert low <= p["energy_joules"] <= high
            # A command has no more than the device, and GPU memory no other owner than its GPU.
            assert not own or own["energy_joules"] <= p["energy_joules"] + 1e-6, d["device"]
        for report in [whole, *parts]:
            board = report["domains"][i]
            for memory in report["domains"]:
                if memory["parent"] != board["id"] or memory["domain"] != "gpu_memory":
                    continue
                if None in (memory["command"], board["command"], memory["rest_power"],
                            board["rest_power"]):
                    continue
                assert (memory["command"]["rest_joules"] is None) == (
                    board["command"]["rest_joules"] is None), d["device"]

    layers = json.loads(tool("report", path, "--by", "layer", "--json", status=None).out or "{}")
    if not layers:
        return
    of_layers = list(parts_of(tool, path, whole["duration_seconds"], "--by", "layer"))
    for a in layers["devices"]:
        same = [b for p in of_layers for b in p["devices"] if b["device"] == a["device"]]
        for figure in ("measured_joules", "idle_joules"):
            assert is_sum([b[figure] for b in same], a[figure], 0.02), (a["device"], figure)
        assert is_sum([b["kernels_joules"] for b in same], a["kernels_joules"], 0.05), a["device"]


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_parts_add_up(tool, path):
    expect_parts_add_up(tool, path)


def test_parts_add_up_where_another_held_the_gpu(tool):
    tool.simulate({"devices": [{
        "generation": "hopper", "idle_watts": 80, "held_watts": 120,
        "processes": [{"pid": 1, "sm_utilisation_ratio": 0.1, "memory_mib": 900,
                       "from_seconds": 2, "to_seconds": 3.5}]}]})
    tool("run", "-o", "shared.jprof", "--", "sleep", "4")
    report = tool.report("shared.jprof")
    expect_same_as_job(tool, "shared.jprof", report)
    gpu, memory = report["domains"][:2]
    assert gpu["rest_power"] and memory["rest_power"]
    expect_parts_add_up(tool, "shared.jprof")


LOGS = ("aipowermeter_older.json", "dmon_two_gpus.txt", "dmon_work.txt", "zeus_monitor.csv")


@pytest.mark.parametrize("name", LOGS)
def test_views_and_parts_of_an_imported_log_agree(tool, name):
    tool("import", SOURCE / "tests" / "fixtures" / "imports" / name, "-o", "log.jprof")
    expect_same_as_job(tool, "log.jprof", tool.report("log.jprof"))
    expect_parts_add_up(tool, "log.jprof")
