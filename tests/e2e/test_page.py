"""The page of report and run: its figures are those of --json, and no file is overwritten unasked."""

import json
import re


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
