"""Pages of comparisons, sweeps and merged files: their figures are those of --json, without a script, too."""

import html
import json
import platform
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
    sentence = next(line for line in recorded("compare", *SIDES).out.splitlines() if line and "SIMULATED" not in line)
    assert html.unescape(" ".join(headline.split())).count(sentence.strip()) == 1, sentence
    # As the other outputs, it replaces a file, but no recording.
    recorded("compare", *SIDES, "--html", "x.html")
    recorded("compare", *SIDES, "--html", "a1.jprof", status=7)


def test_a_comparison_without_a_verdict_has_no_change_in_large_letters(tool):
    sides = [SOURCE / "examples" / name for name in ("h200-deit.jprof", "h200-layers.jprof")]
    tool("compare", *sides, "--html", "x.html")
    headline = headline_of(tool.folder / "x.html")
    assert "No verdict: the sides cannot be compared (tracing_differs)" in headline
    assert 'class="hero"' not in headline and "REFUSED" in headline


NOT_MEASURED = "figures come from a simulated device. Nothing was measured."


def test_pages_and_texts_say_first_that_a_device_was_simulated(recorded):
    recorded("merge", "a1.jprof", "b1.jprof", "-o", "all.jprof")
    for arguments in (("compare", *SIDES), *(("report", "all.jprof", "--by", by) for by in ("host", "rank", "job"))):
        first = recorded(*arguments).out.splitlines()[0]
        assert first.startswith("SIMULATED") and first.endswith(NOT_MEASURED), arguments
    recorded("compare", *SIDES, "--html", "compare.html")
    recorded("report", "all.jprof", "--html", "job.html")
    for name in ("compare.html", "job.html"):
        assert headline_of(recorded.folder / name).count(NOT_MEASURED) == 1, name


def test_no_page_of_measured_devices_says_that_they_were_simulated(tool):
    sides = [SOURCE / "examples" / name for name in ("h200-deit.jprof", "h200-layers.jprof")]
    tool("merge", *sides, "-o", "all.jprof")
    assert "SIMULATED" not in tool("compare", *sides).out + tool("report", "all.jprof").out
    tool("report", "all.jprof", "--html", "job.html")
    tool("compare", *sides, "--html", "compare.html")
    for name in ("compare.html", "job.html"):
        assert NOT_MEASURED not in headline_of(tool.folder / name), name


def test_how_to_accept_what_is_refused_stands_below_it(recorded):
    """Not below warnings, which cannot be accepted."""
    recorded("run", "-q", "--idle", "0s", "-o", "bad.jprof", "--", "sh", "-c", "sleep 0.4; exit 3", status=3)
    lines = recorded("compare", "a1.jprof", "bad.jprof", "--details").out.splitlines()
    below = lines[next(i for i, line in enumerate(lines) if line.startswith("REFUSED")) + 1:]
    labels = [line.split()[0] for line in below if line and not line.startswith(" ")]
    accept = next(i for i, line in enumerate(below) if "--accept CODE" in line)
    warnings = [i for i, line in enumerate(below) if line.startswith("warning")]
    assert not warnings or accept < warnings[0], labels


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
    assert set(job) == {"hosts", "ranks"}  # no more than the page shows
    assert "0.3/kWh" in headline_of(page).replace("0.30", "0.3")
    assert f"{found['command_energy']['energy_joules']:.1f} J" in headline_of(page) and "SIMULATED" in headline_of(page)
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


SECRETS = ("secret-file", "secret-folder", "secret-word", "alert(7)")


def expect_redacted(path):
    page = path.read_text()
    assert [word for word in SECRETS if word in page] == []
    shown = re.search(r'<section id="headline">.*?</section>', page, re.DOTALL).group(0) + json.dumps(data_of(path))
    assert not re.search(rf"\b{re.escape(platform.node())}\b", shown)
    assert "left out (--redact)" in page
    assert data_of(path)["redacted"] is True


@pytest.fixture
def secret(recorded):
    """Recordings whose names, folder, command and host must not be published."""
    folder = recorded.folder / "secret-folder"
    folder.mkdir()
    names = []
    for n, side in enumerate(("a1", "a2", "b1", "b2")):
        names.append(f"secret-folder/secret-file<img src=x onerror=alert(7)>{n}.jprof")
        (recorded.folder / f"{side}.jprof").rename(recorded.folder / names[-1])
    return names


def test_redact_of_a_comparison(recorded, secret):
    recorded("compare", *SIDES[:1], *secret[:2], "--after", *secret[2:], "--html", "open.html")
    assert "secret-file" in (recorded.folder / "open.html").read_text()
    recorded("compare", *SIDES[:1], *secret[:2], "--after", *secret[2:], "--html", "x.html", "--redact")
    page = recorded.folder / "x.html"
    expect_redacted(page)
    found = data_of(page)["comparison"]
    assert found["before"] == {"title": "before", "runs": ["run 1", "run 2"]}
    assert found["after"]["runs"] == ["run 3", "run 4"]
    assert found["energy"] == data_of(recorded.folder / "open.html")["comparison"]["energy"]
    refused = recorded("compare", secret[0], secret[2], "--redact", status=2)
    assert "--html" in refused.err


def test_redact_names_a_run_that_ended_badly_by_its_number(recorded, secret):
    recorded("run", "-q", "-o", "secret-folder/s", "--", "sh", "-c", "sleep 0.3; exit 3 # secret-word", status=3)
    recorded("compare", "secret-folder/s", secret[2], "--html", "x.html", "--redact", status=None)
    conditions = data_of(recorded.folder / "x.html")["comparison"]["conditions"]
    texts = [c["text"] for c in conditions if c["code"] == "failed_run"]
    assert texts == ["run 1 ended with status 3"]
    assert "secret" not in (recorded.folder / "x.html").read_text()


def test_redact_of_a_merged_file(recorded, secret):
    recorded("merge", *secret[:2], "-o", "secret-folder/secret-word.jprof")
    recorded("report", "secret-folder/secret-word.jprof", "--html", "x.html", "--redact")
    page = recorded.folder / "x.html"
    expect_redacted(page)
    job = data_of(page)["job"]
    assert [h["host"] for h in job["hosts"]] == ["host 1"]
    assert all(h["boot_id"] is None for h in job["hosts"])
    assert {r["recording"] for r in job["ranks"]} <= {"recording 1", "recording 2"}
    recorded("report", "secret-folder/secret-word.jprof", "--redact", status=2)


def test_redact_of_a_sweep(tool):
    (tool.folder / "secret-folder").mkdir()
    path = "secret-folder/secret-file<img src=x onerror=alert(7)>.jprof"
    tool("import", SOURCE / "tests/fixtures/imports/zeus_sweep.csv", "-o", path)
    tool("recommend", path, "--html", "open.html")
    assert "secret-folder" in (tool.folder / "open.html").read_text()
    tool("recommend", path, "--html", "x.html", "--redact")
    expect_redacted(tool.folder / "x.html")
