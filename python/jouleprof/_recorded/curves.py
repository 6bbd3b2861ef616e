"""Power curves, read through the command-line tool."""

import json
import os
import re
from dataclasses import dataclass
from typing import List

from .._arguments import number
from .._energy import label_of
from .._errors import Unavailable, existing_file
from .._tool import run_tool
from .flat import nanoseconds

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
        for edge, name in ((start, "start"), (end, "end")):
            if edge is not None:
                number(edge, name, " of seconds")
        kept = [i for i, t in enumerate(self.seconds)
                if (start is None or t >= start) and (end is None or t <= end)]
        return Curve(self.name, *([column[i] for i in kept]
                                  for column in (self.seconds, self.watts, self.low, self.high)), self.recording,
                     self.provenance)


def read_curves(path, *options):
    """One for each domain of a recording."""
    path = existing_file(path)
    trace = json.loads(run_tool("export", path, *options, "--format", "chrome"))
    started = json.loads(run_tool("report", path, *options, "--json"))["start_time"]
    base = trace.get("baseTimeNanoseconds", 0)  # absent where no wall clock is known
    begin = base if started is None else nanoseconds(started)
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
        curve.seconds.append((base - begin) * 1e-9 + event["ts"] * 1e-6)
        for values in (curve.watts, curve.low, curve.high):
            values.append(watts)
    if not curves:
        raise Unavailable(f"{path} has no power curve")
    return list(curves.values())


def _label(name):
    """The trace puts the kind behind the device, where it names it."""
    device, _, kind = name.partition(" ")
    return label_of(kind or "gpu", device)
