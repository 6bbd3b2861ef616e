#!/usr/bin/env python3
"""Checks that no file includes upwards: the floors of docs/architecture.md.

Also forbids exceptions of our own, and vendor headers outside a vendor's one API file.
Exits with 1 and one line per offence.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"

# folder -> folders (besides itself) that it may include from
BASE = {"base"}
MODEL = BASE | {"model"}
ALLOWED = {
    "base": set(),
    "abi": set(),
    "model": BASE,
    "meters": MODEL | {"abi"},
    "spans": MODEL | {"abi"},
    "recording": MODEL | {"recording/spool"},
    "recording/spool": MODEL,
    "importers": MODEL,
    "analysis": MODEL,
    "session": MODEL | {"meters", "spans", "recording", "recording/spool", "analysis"},
    "report": MODEL | {"analysis"},
    "apps/inject": MODEL | {"abi", "spans", "recording/spool"},
    "apps/serve": MODEL | {"analysis", "report", "session"},
    "apps/cli": None,  # anything but another app, of which serve is a part
    "apps/lib": None,
    "apps/python": None,
}
# Within a folder: room -> rooms of the same folder that it may include from. "" is the folder itself,
# "*" any room that is not listed; a folder that is not listed has no directions, nor has a room whose
# set is None.
_SENSORS = {"timeline/sensors"}
_TIMELINE = _SENSORS | {"timeline"}
_LEVELS = _TIMELINE | {"levels"}
_WINDOWS = _LEVELS | {"windows"}
_PROCESSES = _LEVELS | {"processes"}
_ACTIVITY = _PROCESSES | {"activity"}
_REGRESSION = _ACTIVITY | {"kernels/regression"}
_KERNELS = _REGRESSION | {"kernels"}
_OPTIONS = {"terminal", "options"}
_VERBS = _OPTIONS | {"bench", ""}
_TABLES = {"", "activity"}
_RESULTS = _TABLES | {"costs", "results"}
_FORMATS = _RESULTS | {"format", "json"}
ROOMS = {
    "analysis": {
        "timeline/sensors": _SENSORS,
        "timeline": _TIMELINE,
        "levels": _LEVELS,
        "findings": _LEVELS | {"findings"},
        "collectives": _PROCESSES | {"collectives"},
        "windows": _WINDOWS,
        "live": _WINDOWS | {"live", "processes", "repeated"},
        "processes": _PROCESSES,
        "activity": _ACTIVITY,
        "kernels/regression": _REGRESSION,
        "kernels": _KERNELS,
        "repeated": _KERNELS | {"repeated"},
        "slices": _KERNELS | {"slices"},
        "serving": _KERNELS | {"serving"},
        "sweep": {"sweep"},
        "bench": {"bench", ""},
        "compare": {"compare", ""},
        "job": {"job", "collectives", ""},
        "": _KERNELS | _WINDOWS | {"repeated", "slices", "serving", "findings", "collectives", "live", "sweep", ""},
    },
    "session": {
        "sampling": {"sampling"},
        "live": {"live"},
        "hub": {"hub", "sampling"},
        "windows": {"windows", "hub", "live", "sampling"},
        "run": {"run", "hub", "live", "sampling"},
        "sweep": {"sweep", "run", "hub", "live", "sampling"},
        "machine": {"machine", "hub", "live", "sampling"},
    },
    # Verbs by what they do; what every verb uses lies in the folder itself and in terminal, options
    # and bench.
    "apps/cli": {
        "terminal": {"terminal"},
        "options": _OPTIONS,
        "bench": _OPTIONS | {"bench"},
        "": _OPTIONS | {"", "control"},
        "compare": _VERBS | {"control", "measure", "compare"},
        "*": _VERBS,
    },
    # What every importer uses lies in the folder itself, and what every format uses there and in
    # activity, costs, results and format; "*" is any other room.
    "report": {
        "": {""},
        "activity": _TABLES,
        "costs": {"", "costs"},
        "results": _RESULTS,
        "format": _RESULTS | {"format"},
        "text/activity": _FORMATS | {"text", "text/activity"},
        "text": _FORMATS | {"text"},
        "*": _FORMATS,
    },
    "importers": {"": {""}, "*": {""}},
    "recording": {"tables": {"tables"}, "*": None},
    "spans": {"cupti/aggregate": {"cupti/aggregate", "scopes"}, "*": None},
    "meters": {
        "nvml/api": {"nvml/api"},
        "nvml/probes": {"nvml/api", "nvml/probes"},
        "*": None,
    },
}
# a meter sees what lies beside the meters' folders and itself, never another meter; meters/all
# lists them
METER_SEAM = {"meters/meter.h", "meters/cpu_model.h"}
# Settings are changed through the NVML that is read.
METER_PAIRS = {("control", "nvml")}
VENDOR = re.compile(r"^(nvml|cupti|cuda|nvToolsExt|nvtx)")
# An exception that leaves a thread ends the program, which may be somebody's training.
THREAD = re.compile(r"\bstd::(jthread|async)\b|\bstd::thread\s*[({]|\bpthread_create\b")
THREADS = "base/process/threads.h"


# Headers that comments may name: the project's, and those of the kernel, of C and of vendors.
OTHERS = {"drivers/gpu/drm/amd/include/kgd_pp_interface.h"}


def known_headers():
    return OTHERS | {path.relative_to(ROOT).as_posix() for folder in ("src", "include", "tests", "bench")
                     for path in (ROOT / folder).rglob("*.h*")}


KNOWN = known_headers()


def folder_of(path):
    """The floor's name of a file below src/, or None."""
    for name in sorted(ALLOWED, key=len, reverse=True):
        if path == name or path.startswith(name + "/"):
            return name
    return None


def room_of(path, folder):
    """The part of `path` between its floor's folder and its own name."""
    return "/".join(path[len(folder) + 1 :].split("/")[:-1])


def offends_rooms(folder, source, target):
    """Whether one file of a folder may not include another of the same folder."""
    rooms = ROOMS.get(folder)
    if rooms is None:
        return False
    own, other = room_of(source, folder), room_of(target, folder)
    allowed = rooms.get(own, rooms.get("*", set()))
    return allowed is not None and other not in allowed | {own}


def offences(path):
    """Yields (line, message) for one source file."""
    relative = path.relative_to(SRC).as_posix()
    own = folder_of(relative)
    if own is None:
        yield 1, "lies in a folder that has no floor; add it to tools/check_floors.py"
        return
    is_test = path.stem.endswith(("_test", "_fuzz", "_fixture"))
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for name in re.findall(r"(?<![\w./-])[a-z][a-z_0-9/]*\.h(?:pp)?\b", line.partition("//")[2]):
            if not any(known == name or known.endswith("/" + name) for known in KNOWN):
                yield number, f"its comment names {name}, which does not exist"
        # A library's own exception, thrown to where that library's are caught, is that library's.
        if re.search(r"\bthrow\b(?! SQLite::)", line.split("//")[0]) and not is_test:
            yield number, "throws; return a Result instead"
        if THREAD.search(line.split("//")[0]) and not is_test and relative != THREADS:
            yield number, f"starts a thread by itself; start_thread() of {THREADS} catches what it throws"
        match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
        if not match:
            continue
        target = match.group(1)
        if VENDOR.match(target) and "_abi" not in relative and "_api" not in relative:
            yield number, f"includes {target} outside its API file"
        other = folder_of(target)
        if other == own and not is_test and offends_rooms(own, relative, target):
            yield number, f"{room_of(relative, own) or own} may not include {target}"
        if other is None or other == own:
            meters = [p.split("/")[1] for p in (relative, target) if p.startswith("meters/")]
            if tuple(meters) in METER_PAIRS:
                continue
            if meters[0:1] != ["all"] and len(set(meters)) == 2 and target not in METER_SEAM:
                yield number, f"one meter includes another: {target}"
            continue
        if other.startswith("apps/") and (own, other) != ("apps/cli", "apps/serve"):
            yield number, f"includes another app: {target}"
        elif ALLOWED[own] is not None and other not in ALLOWED[own]:
            yield number, f"{own} may not include {target}"


def main():
    found = 0
    for path in sorted(SRC.rglob("*")):
        if path.suffix in {".h", ".hpp", ".cpp", ".c"}:
            for line, message in offences(path):
                print(f"{path.relative_to(ROOT)}:{line}: {message}")
                found += 1
    for path in sorted((ROOT / "include").rglob("*.h*")):
        for line, text in enumerate(path.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*"([^"]+)"', text)
            if match and not match.group(1).startswith("jouleprof/"):
                print(f"{path.relative_to(ROOT)}:{line}: a public header includes {match.group(1)}")
                found += 1
    print(f"floors: {found} offence(s)" if found else "floors: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
