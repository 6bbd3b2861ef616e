"""Power curves, read through the command-line tool."""

import csv
import json
import os
import re
from dataclasses import dataclass
from typing import List

from .._errors import Unavailable, existing
from .._tool import run_tool

_TRACK = re.compile(r"(?P<name>.*) power \(W\)(?: (?P<mark>ESTIMATED|SIMULATED))?(?:, 95 % (?P<end>low|high))?")


@dataclass
class Curve:
    """Power over time since the command began: seconds, watts, and the 95 % interval."""

    name: str
    seconds: List[float]
    watts: List[float]
    low: List[float]
    high: List[float]
    recording: str = ""  # the name of its file
    provenance: str = "measured"

    @property
    def label(self):
        """The name, with ESTIMATED or SIMULATED where it is."""
        return self.name if self.provenance == "measured" else f"{self.name} {self.provenance.upper()}"

    def part(self, start=None, end=None):
        """From `start` to `end`, both included; None: all."""
        kept = [i for i, t in enumerate(self.seconds)
                if (start is None or t >= start) and (end is None or t <= end)]
        return Curve(self.name, *([column[i] for i in kept]
                                  for column in (self.seconds, self.watts, self.low, self.high)), self.recording,
                     self.provenance)


def read_curves(path, *options):
    """One for each domain of a recording."""
    path = str(existing(path))
    trace = json.loads(run_tool("export", path, *options, "--format", "chrome"))
    begin = _begin_of_work(path, options, trace["baseTimeNanoseconds"])
    curves = {}
    for event in trace["traceEvents"]:
        track = _TRACK.fullmatch(event["name"]) if event.get("ph") == "C" else None
        if track is None:
            continue
        name = _label(track["name"])
        curve = curves.setdefault(name, Curve(name, [], [], [], [], os.path.basename(path),
                                              (track["mark"] or "measured").lower()))
        watts = event["args"]["watts"]
        if track["end"]:  # it follows the mean of the same step
            getattr(curve, track["end"])[-1] = watts
            continue
        curve.seconds.append((trace["baseTimeNanoseconds"] - begin) * 1e-9 + event["ts"] * 1e-6)
        for values in (curve.watts, curve.low, curve.high):
            values.append(watts)
    if not curves:
        raise Unavailable(f"{path} has no power curve")
    return list(curves.values())


def _label(name):
    """The trace puts the kind behind the device, where it names it."""
    device, _, kind = name.partition(" ")
    return device if kind in ("", "gpu", "cpu") else f"{kind} {device}"


def _begin_of_work(path, options, otherwise):
    """Nanoseconds since 1970: a reading's time less its time since the command began."""
    for kind in ("gauges", "csv"):
        rows = csv.DictReader(run_tool("export", path, *options, "--format", kind).splitlines())
        row = next(rows, None)
        if row and row.get("time_unix_seconds") and row.get("time_seconds"):
            whole, _, part = row["time_unix_seconds"].partition(".")
            return int(whole) * 10**9 + int(part.ljust(9, "0")) - round(float(row["time_seconds"]) * 1e9)
    return otherwise
