#!/usr/bin/env python3
"""Checks that the unit, the image and the manifest run `jouleprof serve` with options that exist, and agree.

`--self-test` checks that mistakes are found.
"""

import copy
import json
import pathlib
import re
import shlex
import sys

import yaml

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"


def section(text, heading):
    return text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


OPTIONS = set(re.findall(r"^ +(--[a-z][a-z.-]*)",
                         section((DOCS / "cli.md").read_text(), "jouleprof serve"), re.M))
PATHS = set(re.findall(r"^\| `(/[^`]*)`", section((DOCS / "metrics.md").read_text(), "Pages"), re.M))


def check_command(where, words):
    """The port of a command line of serve; None: the default."""
    assert words and words[0] == "serve", f"{where}: does not run `serve`: {words}"
    for word in words[1:]:
        option = word.split("=")[0]
        assert not option.startswith("--") or option in OPTIONS, f"{where}: {option} is no option"
    if "--listen" not in words:
        return None
    return int(words[words.index("--listen") + 1].rsplit(":", 1)[1])


def check_unit(text):
    line = re.search(r"^ExecStart=(.*)$", text, re.M).group(1)
    words = shlex.split(line)
    assert words[0] == "/usr/bin/jouleprof", f"the unit runs {words[0]}"
    check_command("unit", [w for w in words[1:] if not w.startswith("$")])


def check_image(text):
    last = dict(line.split(" ", 1) for line in text.splitlines() if re.match("[A-Z]+ ", line))
    stages = re.findall(r"^FROM (\S+)(?: AS (\S+))?$", text, re.M)
    copied = re.findall(r"^COPY --from=(\S+)", text, re.M)
    assert len(stages) > 1 and set(copied) <= {name for _, name in stages}, "the image copies from no stage"
    assert json.loads(last["ENTRYPOINT"]) == ["/usr/bin/jouleprof"]
    port = check_command("image", json.loads(last["CMD"]))
    assert port == int(last["EXPOSE"]), "the image exposes another port than it listens on"
    return port


def check_manifest(objects, port):
    kinds = {o["kind"]: o for o in objects}
    assert set(kinds) == {"Namespace", "DaemonSet"} and len(objects) == 2
    assert kinds["Namespace"]["apiVersion"] == "v1" and kinds["DaemonSet"]["apiVersion"] == "apps/v1"
    daemons = kinds["DaemonSet"]
    assert daemons["metadata"]["namespace"] == kinds["Namespace"]["metadata"]["name"]
    template = daemons["spec"]["template"]
    wanted = daemons["spec"]["selector"]["matchLabels"]
    assert wanted and wanted.items() <= template["metadata"]["labels"].items(), "selects no pod"
    pod = template["spec"]
    assert pod["hostPID"] is True, "the driver's pids are the node's"
    [container] = pod["containers"]
    assert check_command("manifest", container["args"]) == port, "listens on another port than the image"
    [open_port] = container["ports"]
    assert open_port["containerPort"] == port
    notes = template["metadata"]["annotations"]
    assert notes["prometheus.io/port"] == str(port) and notes["prometheus.io/path"] in PATHS
    for probe in ("livenessProbe", "readinessProbe"):
        get = container[probe]["httpGet"]
        assert get["path"] in PATHS, f"no page {get['path']}"
        assert get["port"] in (open_port["name"], port), f"{probe}: no port {get['port']}"
    volumes = {v["name"]: v for v in pod["volumes"]}
    mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    assert set(volumes) == set(mounts), "volumes and mounts differ"
    state = pathlib.PurePosixPath(container["args"][container["args"].index("--state") + 1])
    assert str(state.parent) in mounts.values(), f"{state} is in no volume"
    for variable in container["env"]:
        assert isinstance(variable["value"], str), f"{variable['name']} is no text"


def self_test(objects, port):
    def broken(change):
        changed = copy.deepcopy(objects)
        daemons = next(o for o in changed if o["kind"] == "DaemonSet")
        change(daemons, daemons["spec"]["template"]["spec"]["containers"][0])
        try:
            check_manifest(changed, port)
        except AssertionError:
            return
        raise SystemExit("check_service: a mistake was not found")

    broken(lambda d, c: c["args"].append("--listne"))
    broken(lambda d, c: c["args"].__setitem__(2, ":9878"))
    broken(lambda d, c: c["ports"][0].update(containerPort=80))
    broken(lambda d, c: c["livenessProbe"]["httpGet"].update(path="/health"))
    broken(lambda d, c: c["volumeMounts"][0].update(name="data"))
    broken(lambda d, c: d["spec"]["selector"].update(matchLabels={"app": "other"}))
    broken(lambda d, c: d["spec"]["template"]["spec"].update(hostPID=False))


def main():
    assert {"--listen", "--state"} <= OPTIONS and {"/metrics", "/healthz"} <= PATHS, "the pages changed"
    check_unit((HERE / "systemd/jouleprof.service").read_text())
    port = check_image((HERE / "container/Containerfile").read_text())
    objects = list(yaml.safe_load_all((HERE / "kubernetes/jouleprof.yaml").read_text()))
    check_manifest(objects, port)
    if "--self-test" in sys.argv:
        self_test(objects, port)


if __name__ == "__main__":
    main()
