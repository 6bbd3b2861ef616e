"""The page of report and run: its figures are those of --json, and no file is overwritten unasked."""

import contextlib
import json
import os
import re
import subprocess
import sys


def data_of(path):
    text = path.read_text()
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL).group(1))


def test_run_and_report_write_the_same_figures(gpu):
    gpu("run", "-q", "-o", "x.jprof", "--json", "x.json", "--html", "run.html", "--", "sleep", "1")
    gpu("report", "x.jprof", "--html", "report.html")
    figures = json.loads((gpu.folder / "x.json").read_text())
    for name in ("run.html", "report.html"):
        page = data_of(gpu.folder / name)
        assert page["profile"]["total"] == figures["total"]
        assert page["profile"]["domains"] == figures["domains"]
        assert page["file"] == "x.jprof"
        assert "SIMULATED" in (gpu.folder / name).read_text().split('id="data"')[0]


def test_sums_without_a_lost_gpu_are_lower_bounds(tool):
    tool.simulate({"devices": [{"generation": "hopper"}] * 2,
                   "faults": {"kind": "gpu_lost", "device": 1, "at_seconds": 6}})
    tool("run", "-q", "-o", "x.jprof", "--html", "x.html", "--", "sleep", "7")
    tool("report", "x.jprof", "--svg", "x.svg")
    page = (tool.folder / "x.html").read_text().split('id="data"')[0]
    figure = (tool.folder / "x.svg").read_text()
    assert re.search(r"All devices: at least [\d.]+ k?J -[\d.]+ %\.", page)
    assert re.search(r"All devices: at least [\d.]+ k?J -[\d.]+ %\.", figure)
    assert re.search(r"mean power, all</dt><dd>at least [\d.]+", page)
    assert re.search(r"mean power of all devices at least [\d.]+ W", figure)
    # In the page of a job, too.
    tool.simulate({"devices": [{"generation": "hopper"}]})
    tool("run", "-q", "-o", "y.jprof", "--", "sleep", "0.2")
    tool("merge", "x.jprof", "y.jprof", "-o", "job.jprof")
    tool("report", "job.jprof", "--html", "job.html")
    page = (tool.folder / "job.html").read_text().split('id="data"')[0]
    assert re.search(r'class="alert">PARTIAL: gpu1 of .* while it had readings', page)
    assert re.search(r"All devices: at least [\d.]+ k?J -[\d.]+ %\.", page)
    assert re.search(r"<td>at least [\d.]+ k?J</td><td>-[\d.]+ %</td>", page)


def test_of_many_lost_gpus_the_alert_above_the_answer_stays_short(tool):
    """As after the driver ended. Nothing that they took is left out of it."""
    tool.simulate({"devices": [{"generation": "hopper", "idle_watts": 15}] * 9,
                   "faults": {"kind": "gpu_lost", "at_seconds": 11}})  # within the work, though it begins late
    tool("run", "-q", "-o", "x.jprof", "--html", "x.html", "--", "sleep", "12")
    page = (tool.folder / "x.html").read_text().split('id="data"')[0]
    alert = re.search(r'class="alert">(PARTIAL: .*?)</p>', page)[1]
    assert "gpu3 took" in alert and "gpu4" not in alert and len(alert) < 300
    others = re.search(r", 5 others together ([\d.]+) J. What they took otherwise is unknown.$", alert)
    least = [d["least_joules"] for d in tool.report("x.jprof")["domains"] if d["domain"] == "gpu"]
    assert len(least) == 9 and abs(float(others[1]) - sum(least[4:])) < 0.1
    # The lower bound has all that is known, and no part of the time has more than the whole.
    whole, begin = tool.report("x.jprof"), tool.report("x.jprof", "--to", "5s")
    counted = sum(d["energy_joules"] for d in whole["domains"] if d["id"] in whole["total"]["of"] and d["energy_joules"])
    assert whole["total"]["is_partial"] and not begin["total"]["is_partial"]
    assert abs(whole["total"]["energy_joules"] - counted - sum(least)) < 1e-3
    assert begin["total"]["energy_joules"] < whole["total"]["energy_joules"]
    assert whole["total"]["interval_joules"][0] < 0.96 * whole["total"]["energy_joules"]
    evidence = json.loads(tool("export", "x.jprof", "--format", "evidence").out)
    assert evidence["meters"][-1]["interval_joules"][1] is None


@contextlib.contextmanager
def busy_cpus():
    """Other programs use all CPUs: on an idle machine the command's part of their energy is no bound."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_what_cannot_be_distinguished_from_nothing_is_a_bound(tool):
    """Of a GPU in MIG mode that a command did not use, and of a CPU that it hardly used."""
    tool.simulate({"devices": [{"generation": "hopper", "mig": [{"profile": "1g.10gb", "gpu_instance_id": 3}]}]})
    with busy_cpus():
        tool("run", "-q", "-o", "x.jprof", "--html", "x.html", "--", "sleep", "0.5")
    hero = (tool.folder / "x.html").read_text().split('class="facts"')[0]
    quoted = re.findall(r"<strong>(.*?)</strong>", hero)
    assert "0 J" not in quoted
    assert quoted and all(re.fullmatch(r"at most [\d.]+ m?J", text) for text in quoted), quoted
    # Next to a GPU that was at rest, the CPU's part is a bound of its own.
    tool.simulate({"devices": [{"generation": "hopper", "idle_watts": 250}]})
    with busy_cpus():
        tool("run", "-q", "-o", "y.jprof", "--html", "y.html", "--", "sleep", "1")
    hero = (tool.folder / "y.html").read_text().split('class="facts"')[0]
    quoted = re.findall(r"<strong>(.*?)</strong>", hero)
    assert len(quoted) == 1 or re.fullmatch(r"at most [\d.]+ m?J", quoted[1]), quoted


def test_no_file_is_overwritten_unasked(gpu):
    gpu("run", "-q", "-o", "x.jprof", "--", "sleep", "0.2")
    (gpu.folder / "x.html").write_text("mine")
    refused = gpu("report", "x.jprof", "--html", "x.html", status=None)
    assert refused.returncode != 0
    assert "--force" in refused.err
    assert (gpu.folder / "x.html").read_text() == "mine"
    # Before the command: its measurement must not be lost to a name.
    refused = gpu("run", "--html", "x.html", "--", "touch", "started", status=None)
    assert refused.returncode == 125
    assert "--force" in refused.err
    assert not (gpu.folder / "started").exists()
    gpu("report", "x.jprof", "--html", "x.html", "--force")
    assert data_of(gpu.folder / "x.html")["profile"]


def test_tables_of_by_are_in_the_page_already(gpu):
    gpu("run", "-q", "-o", "x.jprof", "--", "sleep", "0.2")
    refused = gpu("report", "x.jprof", "--html", "x.html", "--by", "kernel", status=None)
    assert refused.returncode == 2
    assert "--by" in refused.err


def test_redact_leaves_out_the_command(gpu):
    gpu("run", "-q", "-o", "x.jprof", "--", "sh", "-c", "sleep 0.2; : secret")
    gpu("report", "x.jprof", "--html", "open.html")
    gpu("report", "x.jprof", "--html", "closed.html", "--redact")
    assert "secret" in (gpu.folder / "open.html").read_text()
    assert "secret" not in (gpu.folder / "closed.html").read_text()
