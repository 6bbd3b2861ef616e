"""Pages of comparisons, sweeps and merged files: their figures are those of --json, without a script, too."""

import json
import re

import pytest

from conftest import SOURCE

HOSTILE = "</script><img src=x onerror=alert(1)>.jprof"


def data_of(path):
    text = path.read_text()
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))


def headline_of(path):
    """What a browser shows without JavaScript."""
    return path.read_text().split('id="data"')[0]


@pytest.fixture
def recorded(tool):
    for n in (1, 2):
        for side, watts in (("a", 250), ("b", 300)):
            tool.simulate({"devices": [{"generation": "hopper", "idle_watts": watts}]})
            tool("run", "-q", "--idle", "0s", "-o", f"{side}{n}.jprof", "--", "sleep", "0.4")
    return tool


SIDES = ("--before", "a1.jprof", "a2.jprof", "--after", "b1.jprof", "b2.jprof")


def test_a_comparison(recorded):
    found = json.loads(recorded("compare", *SIDES, "--json", "--html", "x.html").out)
    page = recorded.folder / "x.html"
    assert data_of(page)["comparison"] == found
    headline = headline_of(page)
    power = found["power"]
    assert f"{power['before_watts']:.1f} W" in headline and f"{power['after_watts']:.1f} W" in headline
    assert f"{100 * power['change_ratio']:+.1f} %" in headline
    assert "higher" in headline and "simulated" in headline
    # As the other outputs, it replaces a file, but no recording.
    recorded("compare", *SIDES, "--html", "x.html")
    recorded("compare", *SIDES, "--html", "a1.jprof", status=7)


def test_a_failed_gate_is_in_the_headline(recorded):
    recorded("compare", *SIDES, "--fail-if", "power>+3%", "--html", "x.html", status=8)
    assert "power&gt;+3%: failed" in headline_of(recorded.folder / "x.html")


def test_a_sweep(tool):
    tool("import", SOURCE / "tests/fixtures/imports/zeus_sweep.csv", "-o", "sweep.jprof")
    found = json.loads(tool("recommend", "sweep.jprof", "--json", "--html", "x.html").out)
    page = tool.folder / "x.html"
    assert data_of(page)["recommendation"] == found
    headline = headline_of(page)
    for sweep in found["sweeps"]:
        assert f"<strong>{sweep['recommended']:g} W</strong>" in headline
        for point in sweep["points"]:
            assert f"{point['setting']:g} W" in headline
            assert f"{100 * point['saving_ratio']:.1f} %" in headline


def test_a_merged_file(recorded):
    recorded("merge", "a1.jprof", "b1.jprof", "-o", "all.jprof")
    found = json.loads(recorded("report", "all.jprof", "--by", "rank", "--json").out)
    recorded("report", "all.jprof", "--html", "x.html", "--price", "0.30/kWh")
    page = recorded.folder / "x.html"
    job = data_of(page)["job"]
    assert job["hosts"] == found["hosts"] and job["ranks"] == found["ranks"]
    assert job["energy_joules"] == found["energy_joules"] and job["costs"]["money"] is not None
    assert f"{found['energy_joules']:.1f} J" in headline_of(page) and "SIMULATED" in headline_of(page)
    refused = recorded("report", "all.jprof", "--html", "x.html", status=None)
    assert refused.returncode != 0 and "--force" in refused.err
    refused = recorded("report", "all.jprof", "--svg", "x.svg", status=2)
    assert "--svg" in refused.err


def test_hostile_names_are_text(recorded):
    name = HOSTILE.replace("/", "_")
    (recorded.folder / "a1.jprof").rename(recorded.folder / name)
    recorded("compare", name, "b1.jprof", "--html", "x.html")
    page = (recorded.folder / "x.html").read_text()
    assert "<img src=x" not in page
    assert "&lt;img src=x" in headline_of(recorded.folder / "x.html")
    assert data_of(recorded.folder / "x.html")["comparison"]["before"]["runs"] == [name]
