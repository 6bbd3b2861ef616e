#!/usr/bin/env python3
"""The objects of a kustomization as `kubectl kustomize` renders them, for what is used here: resources, images, and
JSON patches (RFC 6902). Anything else is an error.

    render.py FOLDER        prints them as YAML
"""

import pathlib
import sys

import yaml

KNOWN = {"apiVersion", "kind", "resources", "images", "patches"}


def render(folder):
    folder = pathlib.Path(folder).resolve()
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    unknown = set(kustomization) - KNOWN
    assert not unknown, f"{folder}: cannot render {', '.join(sorted(unknown))}"
    objects = []
    for name in kustomization["resources"]:
        path = folder / name
        objects += render(path) if path.is_dir() else list(yaml.safe_load_all(path.read_text()))
    for entry in kustomization.get("patches", ()):
        target = entry["target"]
        chosen = [o for o in objects if o["kind"] == target["kind"] and o["metadata"]["name"] == target["name"]]
        assert chosen, f"{folder}: {entry['path']} patches nothing"
        for patched in chosen:
            for change in yaml.safe_load((folder / entry["path"]).read_text()):
                patch(patched, change)
    for image in kustomization.get("images", ()):
        for container in (c for o in objects for c in containers(o) if c["image"] == image["name"]):
            container["image"] = f"{image['newName']}:{image['newTag']}"
    return objects


def containers(made):
    return made.get("spec", {}).get("template", {}).get("spec", {}).get("containers", ())


def patch(made, change):
    *way, last = [step.replace("~1", "/").replace("~0", "~") for step in change["path"].split("/")[1:]]
    place = made
    for step in way:
        place = place[int(step) if isinstance(place, list) else step]
    if change["op"] == "replace":
        assert last in place, f"{change['path']}: there is nothing to replace"
    else:
        assert change["op"] == "add", change["op"]
    if isinstance(place, list):
        assert last == "-", change["path"]
        place.append(change["value"])
    else:
        place[last] = change["value"]


if __name__ == "__main__":
    print(yaml.safe_dump_all(render(sys.argv[1]), sort_keys=False), end="")
