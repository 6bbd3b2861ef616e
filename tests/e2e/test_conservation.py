"""All views of a recording give the same joules: run, processes, kernels, layers, ranges, phases."""

import json

import pytest
from conftest import SOURCE

RECORDINGS = sorted([*(SOURCE / "tests" / "fixtures").rglob("*.jprof"),
                     *(SOURCE / "examples").glob("*.jprof")])


def micro(joules):
    return round((joules or 0) * 1e6)


def test_there_are_recordings():
    assert len(RECORDINGS) >= 4


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_all_views_agree(tool, path):
    report = json.loads(tool("report", path, "--json").out)
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
