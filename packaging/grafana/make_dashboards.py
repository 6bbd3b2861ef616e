#!/usr/bin/env python3
"""Writes the two dashboards, machine.json and job.json, and checks the names of metrics that they use.

    packaging/grafana/make_dashboards.py            write them
    packaging/grafana/make_dashboards.py --check    fail where they differ, or use a metric that does not exist
"""

import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
METRICS = HERE.parents[1] / "docs" / "metrics.md"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def panel(title, kind, unit, queries, width=12, height=8, description="", **options):
    return {
        "title": title, "type": kind, "datasource": SOURCE, "description": description,
        "gridPos": {"w": width, "h": height},
        "fieldConfig": {"defaults": {"unit": unit, **options}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}} if kind == "timeseries" else {},
        "targets": [{"refId": chr(65 + i), "datasource": SOURCE, "expr": expr, "legendFormat": legend,
                     "instant": kind == "table", "format": "table" if kind == "table" else "time_series"}
                    for i, (expr, legend) in enumerate(queries)],
    }


def stacked(*arguments, **options):
    return panel(*arguments, custom={"stacking": {"mode": "normal"}, "fillOpacity": 30}, **options)


def variable(name, label, query):
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE, "refresh": 2, "sort": 1,
            "multi": True, "includeAll": True, "query": {"query": query, "refId": name},
            "definition": query, "current": {"text": ["All"], "value": ["$__all"]}}


def dashboard(uid, title, description, variables, panels):
    x = y = 0
    for number, each in enumerate(panels, 1):
        place = each["gridPos"]
        if x + place["w"] > 24:
            x, y = 0, y + place["h"]
        each["id"] = number
        place["x"], place["y"] = x, y
        x += place["w"]
    return {
        "uid": uid, "title": title, "description": description, "tags": ["jouleprof", "energy"],
        "schemaVersion": 39, "version": 1, "editable": True, "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"}, "timezone": "browser",
        "templating": {"list": [
            {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
            *variables]},
        "annotations": {"list": []}, "links": [], "panels": panels,
    }


RATE = "[$__rate_interval]"
NODE = 'instance=~"$instance"'
PARTS = f'{NODE}, domain=~"gpu|cpu|dram"'


def watts(metric, labels, by):
    """Energy over the time that it is of: rate() would beat with the time at which each scrape is answered."""
    return (f"sum by ({by}) (increase({metric}{{{labels}}}{RATE})) / on (instance) group_left () "
            f"(delta(jouleprof_last_tick_timestamp_seconds{RATE}) > 0)")


def share(family, key):
    power = watts(f"jouleprof_{family}_energy_joules_total", f'{NODE}, {key}!=""', f"instance, {key}, provenance")
    return f"topk(10, sum by ({key}, provenance) ({power}))"


def processes(count, labels, info, names):
    power = watts("jouleprof_process_energy_joules_total", labels, "instance, pid, provenance")
    return f"topk({count}, ({power}) * on (instance, pid) group_left ({names}) {info})"


def machine():
    return dashboard(
        "jouleprof-machine", "jouleprof: machine", "Energy and power of machines, devices and what uses them",
        [variable("instance", "Machine", "label_values(jouleprof_energy_joules_total, instance)")],
        [
            stacked("Power by device", "timeseries", "watt",
                    [(watts("jouleprof_energy_joules_total", PARTS, "instance, domain, device, provenance"),
                      "{{instance}} {{device}} {{domain}} {{provenance}}")], width=16,
                    description="Increase of the energy counters: nothing between two scrapes is missed."),
            panel("Energy in the shown time", "stat", "joule",
                  [(f"sum by (domain, provenance) (increase(jouleprof_energy_joules_total{{{PARTS}}}[$__range]))",
                    "{{domain}} {{provenance}}")], width=8),
            stacked("Power by job", "timeseries", "watt", [(share("job", "hpc_job"), "{{hpc_job}} {{provenance}}")]),
            stacked("Power by container", "timeseries", "watt",
                    [(share("container", "container"), "{{container}} {{provenance}}")]),
            stacked("Power by user", "timeseries", "watt", [(share("user", "uid"), "uid {{uid}} {{provenance}}")]),
            panel("Top processes", "table", "watt",
                  [(processes(15, f'{NODE}, pid!=""', "jouleprof_process_info", "comm"), "")], description="Needs `jouleprof serve --level process,...`."),
            panel("Unattributed energy", "timeseries", "watt",
                  [(watts("jouleprof_unattributed_energy_joules_total", NODE, "instance, device, domain, provenance"),
                    "{{instance}} {{device}} {{domain}} {{provenance}}")],
                  description="Energy that no process explains."),
            panel("GPU utilisation", "timeseries", "percentunit",
                  [(f'jouleprof_utilisation_ratio{{{NODE}, domain="gpu", part="gpu"}}', "{{instance}} {{device}}")],
                  max=1, min=0),
            panel("Temperature", "timeseries", "celsius",
                  [(f"jouleprof_temperature_celsius{{{NODE}}}", "{{instance}} {{device}} {{part}}")]),
            panel("GPU clock", "timeseries", "hertz",
                  [(f'jouleprof_clock_hertz{{{NODE}, clock="sm"}}', "{{instance}} {{device}}")]),
            panel("Sensors that do not report", "timeseries", "short",
                  [(f'jouleprof_sensor_available{{{NODE}, domain="gpu"}} == 0', "{{instance}} {{device}}")]),
            panel("Devices that are not measured", "stat", "short",
                  [(f'count by (instance, provenance) (jouleprof_power_watts{{{NODE}, provenance!="measured"}})',
                    "{{instance}} {{provenance}}")],
                  description="Their figures are of a model or of a simulation."),
            panel("Intervals that the energy lacks", "timeseries", "short",
                  [(f"increase(jouleprof_energy_gaps_total{{{NODE}}}{RATE}) > 0", "{{instance}} {{device}} {{domain}}")]),
            panel("Time without the service", "timeseries", "s",
                  [(f"increase(jouleprof_missing_seconds_total{{{NODE}}}{RATE})", "{{instance}}")]),
            panel("Cost of jouleprof", "timeseries", "percentunit",
                  [(f"rate(process_cpu_seconds_total{{{NODE}}}{RATE}) and on (instance) jouleprof_build_info",
                    "{{instance}}: share of one core")]),
        ])


def job():
    mine = 'hpc_job=~"$hpc_job"'
    return dashboard(
        "jouleprof-job", "jouleprof: job", "Energy and power of jobs",
        [variable("hpc_job", "Job", 'label_values(jouleprof_job_energy_joules_total{hpc_job!=""}, hpc_job)')],
        [
            stacked("Power by device", "timeseries", "watt",
                    [(watts("jouleprof_job_energy_joules_total", mine, "hpc_job, instance, device, provenance"),
                      "{{hpc_job}} {{instance}} {{device}} {{provenance}}")], width=16),
            panel("Energy in the shown time", "stat", "joule",
                  [(f"sum by (hpc_job, provenance) (increase(jouleprof_job_energy_joules_total{{{mine}}}[$__range]))",
                    "{{hpc_job}} {{provenance}}")], width=8),
            panel("GPUs given to the job", "table", "short",
                  [(f"jouleprof_allocation_info{{{mine}}}", "")]),
            panel("Utilisation of these GPUs", "timeseries", "percentunit",
                  # Several jobs or instances may share a board.
                  [(f"jouleprof_allocation_info{{{mine}}} * on (instance, device) group_left () "
                    'jouleprof_utilisation_ratio{domain="gpu", part="gpu"}',
                    "{{hpc_job}} {{instance}} {{device}}")], max=1, min=0),
            panel("Processes of the job", "table", "watt",
                  [(processes(20, 'pid!=""', f"jouleprof_process_info{{{mine}}}", "comm, hpc_job"), "")], width=24,
                  description="Needs `jouleprof serve --level process,...`."),
        ])


def without_provenance(made):
    """Titles of panels that add up energies of several provenances, or do not show which they are of."""
    titles = []
    for each in made["panels"]:
        for target in each["targets"]:
            if "energy_joules" not in target["expr"]:
                continue
            sums = re.findall(r"sum by \(([^)]*)\)", target["expr"])
            if not sums or not all("provenance" in s for s in sums):
                titles.append(each["title"])
            elif each["type"] != "table" and "{{provenance}}" not in target["legendFormat"]:
                titles.append(each["title"])
    return titles


def unknown_metrics(text):
    known = set(re.findall(r"^\| `(\w+)` \|", METRICS.read_text(), re.M))
    used = set(re.findall(r"\b(?:jouleprof|process)_\w+(?:_total|_info|_ratio|_celsius|_hertz|_available)\b", text))
    return sorted(used - known)


def main():
    wrong = []
    for name, made in (("machine.json", machine()), ("job.json", job())):
        text = json.dumps(made, indent=2) + "\n"
        wrong += [f"{name}: docs/metrics.md has no {metric}" for metric in unknown_metrics(text)]
        wrong += [f"{name}: '{title}' hides the provenance" for title in without_provenance(made)]
        if "--check" not in sys.argv:
            (HERE / name).write_text(text)
        elif (HERE / name).read_text() != text:
            wrong.append(f"{name} is not what make_dashboards.py writes")
    print("\n".join(wrong) or "dashboards: ok")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
