"""Each expression of the dashboards and of the rules, by a real Prometheus over a service with two jobs on one board."""

import json
import os
import re
import subprocess
import urllib.error

import pytest
from conftest import SOURCE, Tool

from test_serve import IN_PID_NAMESPACE, prometheus, serving, wait_for
from test_serve_accounting import needs_prometheus

PACKAGING = SOURCE / "packaging"
WATTS = 300
SPAN = "15s"
# Nothing here is in a container, and no board is lost.
EMPTY = {("machine", "Power by container"), ("machine", "Sensors that do not report")}
# Whether there is such an interval depends on how busy this machine is.
MAY_BE_EMPTY = {("machine", "Intervals that the energy lacks")}
if IN_PID_NAMESPACE:  # the pids on a GPU are not valid, so that no process is of a job
    EMPTY.add(("job", "Processes of the job"))


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Asks Prometheus."""
    folder = tmp_path_factory.mktemp("dashboards")
    tool = Tool(folder)
    jobs = folder / "jobs"
    jobs.mkdir()
    (jobs / "0").write_text("7\n8\n")
    (jobs / "1").write_text("9\n")
    board = {"generation": "hopper", "idle_watts": 80, "power": {"shape": "constant", "watts": WATTS},
             "processes": [{"tree": {"environment": "JOULEPROF_TEST_JOB=1"}, "sm_utilisation_ratio": 0.5}]}
    tool.simulate({"devices": [board, board]})
    with subprocess.Popen(["sleep", "600"], env={**os.environ, "JOULEPROF_TEST_JOB": "1"}) as worker:
        try:
            with serving(tool, "--job-mapping-dir", jobs, "--level", "process,job,container,user", "--state",
                         folder / "state.json") as service:
                (folder / "prometheus.yml").write_text(json.dumps({
                    "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                    "rule_files": [str(PACKAGING / "prometheus" / "jouleprof.rules.yml")],
                    "scrape_configs": [{"job_name": "jouleprof", "static_configs": [
                        {"targets": [service.url.removeprefix("http://")]}]}]}))
                with prometheus(folder) as query:
                    job = 'max(count_over_time(jouleprof_job_energy_joules_total{hpc_job="9", domain="gpu"}[1m]))'
                    wait_for("scrapes", lambda: (query(job) or 0) >= 20)
                    yield query.ask
        finally:
            worker.kill()


def panels():
    for name in ("machine", "job"):
        for panel in json.loads((PACKAGING / "grafana" / f"{name}.json").read_text())["panels"]:
            for target in panel["targets"]:
                yield pytest.param(name, panel, target, id=f"{name}: {panel['title']}")


def shown(text):
    for variable, value in (("$__rate_interval", SPAN), ("$__range", "1m"), ("$instance", ".+"), ("$hpc_job", ".+")):
        text = text.replace(variable, value)
    assert "$" not in text, text
    return text


def figures(asked, text, what=bool):
    """Of a query, once they are so: a scrape that a busy machine made late leaves none for a second."""
    def found():
        result = asked("query", query=shown(text))["result"]
        return result if what(result) else None

    return wait_for(f"figures of {text}", found)


@needs_prometheus
@pytest.mark.parametrize("name, panel, target", panels())
def test_a_panel_has_figures(asked, name, panel, target):
    panel_of = (name, panel["title"])
    try:
        found = asked("query", query=shown(target["expr"]))["result"]
        if panel_of not in EMPTY | MAY_BE_EMPTY:
            found = figures(asked, target["expr"])
    except urllib.error.HTTPError as error:
        raise AssertionError(error.read().decode()) from None
    assert panel_of not in EMPTY or not found
    for series in found:
        missing = set(re.findall(r"{{(\w+)}}", target["legendFormat"])) - set(series["metric"])
        assert not missing, f"the legend has no {missing}"


@needs_prometheus
def test_the_variables_of_the_dashboards_have_values(asked):
    for name in ("machine", "job"):
        for variable in json.loads((PACKAGING / "grafana" / f"{name}.json").read_text())["templating"]["list"]:
            if variable["type"] != "query":
                continue
            selector, label = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"]).groups()
            assert all(label in series["metric"] for series in asked("query", query=selector)["result"])


@needs_prometheus
def test_panels_show_the_power(asked):
    panel = next(p.values[2] for p in panels() if p.id == "machine: Power by device")

    def right(result):
        watts = {s["metric"]["device"]: float(s["value"][1]) for s in result if s["metric"]["provenance"] == "simulated"}
        return watts == pytest.approx({"gpu0": WATTS, "gpu1": WATTS}, rel=0.02)

    figures(asked, panel["expr"], right)
    # Two jobs on one board: each has its line.
    used = next(p.values[2] for p in panels() if p.id == "job: Utilisation of these GPUs")
    lines = {(s["metric"]["hpc_job"], s["metric"]["device"]) for s in figures(asked, used["expr"])}
    assert lines == {("7", "gpu0"), ("8", "gpu0"), ("9", "gpu1")}
    of_job = next(p.values[2] for p in panels() if p.id == "job: Power by device")

    def is_mine(result):
        return [float(s["value"][1]) for s in result if (s["metric"]["hpc_job"], s["metric"]["device"]) == ("9", "gpu1")
                ] == [pytest.approx(WATTS, rel=0.02)]

    figures(asked, of_job["expr"], is_mine)


@needs_prometheus
def test_the_rules_are_evaluated(asked):
    def groups():
        found = asked("rules")["groups"]
        return found if found and all(rule["health"] != "unknown" for g in found for rule in g["rules"]) else None

    rules = [rule for group in wait_for("the rules", groups) for rule in group["rules"]]
    assert len(rules) == 13
    assert [(rule["name"], rule.get("lastError")) for rule in rules if rule["health"] != "ok"] == []
    firing = {rule["name"] for rule in rules if rule.get("alerts") and rule["state"] == "firing"}
    assert firing <= {"JouleprofEnergyGap"}  # as the panel above

    def power():
        found = asked("query", query='instance_domain:jouleprof_power_watts:rate5m{domain="gpu"}')["result"]
        return found if found and float(found[0]["value"][1]) == pytest.approx(2 * WATTS, rel=0.02) else None

    assert wait_for("the recorded power", power)[0]["metric"]["provenance"] == "simulated"
    per_job = asked("query", query='instance_job:jouleprof_power_watts:rate5m{hpc_job="9", provenance="simulated"}')["result"]
    assert float(per_job[0]["value"][1]) > 0.9 * WATTS
