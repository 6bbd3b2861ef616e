#!/usr/bin/env python3
"""Checks that the unit, the image and the manifests run `jouleprof serve` with options that exist, and agree.

`--self-test` checks that mistakes are found.
"""

import copy
import json
import pathlib
import re
import shlex
import sys

from kubernetes.render import render

HERE = pathlib.Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
KINDS = {"Namespace", "PriorityClass", "DaemonSet", "Service", "NetworkPolicy"}
WITHOUT_NAMESPACE = {"Namespace", "PriorityClass"}
OPEN_PATHS = {"/healthz", "/readyz"}  # without a password
SCHEMAS = ("1.27", "1.30", "1.33")


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


def check_manifests(objects, port):
    """Of one rendered kustomization: that its parts fit together."""
    kinds = {o["kind"]: o for o in objects}
    assert set(kinds) - {"ServiceMonitor"} == KINDS and len(objects) == len(kinds)
    namespace = kinds["Namespace"]["metadata"]["name"]
    for made in objects:
        assert made["kind"] in WITHOUT_NAMESPACE or made["metadata"]["namespace"] == namespace
    assert kinds["Namespace"]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"
    daemons = kinds["DaemonSet"]["spec"]
    template = daemons["template"]
    labels = template["metadata"]["labels"]
    for wanted in (daemons["selector"]["matchLabels"], kinds["Service"]["spec"]["selector"],
                   kinds["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]):
        assert wanted and wanted.items() <= labels.items(), "selects no pod"
    assert daemons["updateStrategy"]["rollingUpdate"]["maxUnavailable"], "a rollout has no limit"
    pod = template["spec"]
    assert pod["hostPID"] is True, "the driver's pids are the node's"
    assert pod["priorityClassName"] == kinds["PriorityClass"]["metadata"]["name"]
    [container] = pod["containers"]
    assert check_command("manifest", container["args"]) == port, "listens on another port than the image"
    [open_port] = container["ports"]
    assert open_port["containerPort"] == port
    [service_port] = kinds["Service"]["spec"]["ports"]
    [allowed] = kinds["NetworkPolicy"]["spec"]["ingress"][0]["ports"]
    for name in (service_port["targetPort"], allowed["port"]):
        assert name in (open_port["name"], port), f"no port {name}"
    notes = template["metadata"]["annotations"]
    assert notes["prometheus.io/port"] == str(port) and notes["prometheus.io/path"] in PATHS
    scheme = "HTTPS" if "--web.config.file" in container["args"] else "HTTP"
    for probe in ("livenessProbe", "readinessProbe"):
        get = container[probe]["httpGet"]
        assert get["path"] in PATHS & OPEN_PATHS, f"{probe}: {get['path']} needs a password, or is no page"
        assert get["port"] in (open_port["name"], port), f"{probe}: no port {get['port']}"
        assert get["scheme"] == scheme
    volumes = {v["name"]: v for v in pod["volumes"]}
    mounts = {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    assert set(volumes) == set(mounts), "volumes and mounts differ"
    for option in {"--state", "--web.config.file"} & set(container["args"]):
        file = pathlib.PurePosixPath(container["args"][container["args"].index(option) + 1])
        assert str(file.parent) in mounts.values(), f"{file} is in no volume"
    for variable in container["env"]:
        assert isinstance(variable["value"], str), f"{variable['name']} is no text"
    if "ServiceMonitor" in kinds:
        monitor = kinds["ServiceMonitor"]["spec"]
        assert monitor["selector"]["matchLabels"].items() <= kinds["Service"]["metadata"]["labels"].items()
        [endpoint] = monitor["endpoints"]
        assert endpoint["port"] == service_port["name"] and endpoint["path"] in PATHS
        assert endpoint["scheme"] == scheme.lower()
        assert {"sourceLabels": ["__meta_kubernetes_pod_node_name"], "targetLabel": "node"} in endpoint["relabelings"]


def check_schemas(objects):
    """Against the schemas that Kubernetes publishes, where the Python module kubernetes-validate is installed."""
    try:
        import kubernetes_validate
    except ImportError:
        print("manifests: not held against Kubernetes' schemas (no Python module kubernetes-validate)")
        return
    for made in objects:
        if made["kind"] == "ServiceMonitor":  # of the operator, which the module does not know
            continue
        for version in SCHEMAS:
            kubernetes_validate.validate(made, version, strict=True)


def self_test(objects, port):
    def broken(change):
        changed = copy.deepcopy(objects)
        kinds = {o["kind"]: o for o in changed}
        change(kinds, kinds["DaemonSet"]["spec"]["template"]["spec"]["containers"][0])
        try:
            check_manifests(changed, port)
        except AssertionError:
            return
        raise SystemExit("check_service: a mistake was not found")

    broken(lambda k, c: c["args"].append("--listne"))
    broken(lambda k, c: c["args"].__setitem__(2, ":9878"))
    broken(lambda k, c: c["ports"][0].update(containerPort=80))
    broken(lambda k, c: c["livenessProbe"]["httpGet"].update(path="/health"))
    broken(lambda k, c: c["livenessProbe"]["httpGet"].update(path="/metrics"))
    broken(lambda k, c: c["readinessProbe"]["httpGet"].update(scheme="FTP"))
    broken(lambda k, c: c["volumeMounts"][0].update(name="data"))
    broken(lambda k, c: k["DaemonSet"]["spec"]["selector"].update(matchLabels={"app": "other"}))
    broken(lambda k, c: k["DaemonSet"]["spec"]["template"]["spec"].update(hostPID=False))
    broken(lambda k, c: k["DaemonSet"]["spec"]["template"]["spec"].update(priorityClassName="other"))
    broken(lambda k, c: k["Service"]["spec"].update(selector={"app": "other"}))
    broken(lambda k, c: k["Service"]["spec"]["ports"][0].update(targetPort="web"))
    broken(lambda k, c: k["NetworkPolicy"]["spec"]["ingress"][0]["ports"][0].update(port="web"))
    broken(lambda k, c: k["ServiceMonitor"]["spec"]["endpoints"][0].update(port="web"))
    broken(lambda k, c: k["ServiceMonitor"]["spec"]["endpoints"][0].update(relabelings=[]))


def main():
    assert {"--listen", "--state"} <= OPTIONS and {"/metrics", "/healthz"} <= PATHS, "the pages changed"
    check_unit((HERE / "systemd/jouleprof.service").read_text())
    port = check_image((HERE / "container/Containerfile").read_text())
    for folder in ("base", "overlays/prometheus-operator", "overlays/tls"):
        objects = render(HERE / "kubernetes" / folder)
        check_manifests(objects, port)
        check_schemas(objects)
    if "--self-test" in sys.argv:
        self_test(objects, port)


if __name__ == "__main__":
    main()
