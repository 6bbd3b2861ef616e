"""Energies of tests in earlier sessions, and the change against them."""

import dataclasses
import json
import math
import os
import re
from typing import List, Optional

from .. import _files, _student
from .._errors import Corrupt, InvalidArgument

SCHEMA = "jouleprof.pytest/1"
_KEPT = 30  # sessions of each test


@dataclasses.dataclass(frozen=True)
class TestEnergy:
    """The energy of a test in one session, in joules; error and repeatability as in Energy."""

    __test__ = False  # no test class

    joules: float
    error: float
    repeatability: float
    provenance: str
    domains: List[str]  # labels of those in the total
    devices: List[str]  # their UUIDs, else host and device

    @property
    def gain(self) -> float:
        """The relative error that is common to all measurements of one device."""
        return math.sqrt(max(0.0, self.error**2 - self.repeatability**2)) / self.joules


@dataclasses.dataclass(frozen=True)
class Change:
    """The relative change of a test's energy, and its 95 % interval."""

    ratio: Optional[float]
    low: Optional[float]
    high: Optional[float]
    sessions: int  # of the baseline
    reason: str = ""  # why there is no interval


def change_of(now: TestEnergy, sessions: List[TestEnergy]) -> Change:
    """The prediction interval of one more session, of logarithms (Student's t): the unit is the
    session, so that the spread from one to the next is in it. It is at least as wide as the
    sensors' repeatability. On another device, and of estimates, the calibration errors of both are
    part of it."""
    comparable = [s for s in sessions
                  if (s.domains, s.provenance) == (now.domains, now.provenance)]
    if not comparable:
        reason = "domains_differ" if sessions else "no_baseline"
        return Change(None, None, None, 0, reason)
    logs = [math.log(s.joules) for s in comparable]
    count = len(logs)
    mean = math.fsum(logs) / count
    change = math.log(now.joules) - mean
    if count == 1:
        return Change(math.expm1(change), None, None, 1, "spread_unknown")
    spread = math.sqrt(math.fsum((x - mean)**2 for x in logs) / (count - 1))
    half = _student.quantile(count - 1) * spread * math.sqrt(1 + 1 / count)
    noise = math.hypot(now.repeatability / now.joules,
                       max(s.repeatability / s.joules for s in comparable))
    half = max(half, noise)
    others = [s.gain for s in comparable
              if s.devices != now.devices or now.provenance == "estimated"]
    if others:
        half = math.hypot(half, now.gain, max(others))
    return Change(math.expm1(change), math.expm1(change - half), math.expm1(change + half), count)


class Baseline:
    """A file of energies by test. `name` is a file name without its suffix."""

    def __init__(self, folder, name):
        if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
            raise InvalidArgument(f"baseline '{name}' is no file name: use letters, digits, _ . -")
        self.path = os.path.join(folder, name + ".json")

    def sessions_of(self, test) -> List[TestEnergy]:
        return self._read().get(test, [])

    def add(self, energies):
        """Appends one session: {test: TestEnergy}. Replaces the file at once or not at all."""
        folder = os.path.dirname(self.path)
        os.makedirs(folder, exist_ok=True)
        with _files.alone_in(folder):
            tests = self._read()
            for test, energy in energies.items():
                tests[test] = [*tests.get(test, []), energy][-_KEPT:]
            document = {"schema": SCHEMA, "tests": {
                test: [dataclasses.asdict(s) for s in sessions]
                for test, sessions in sorted(tests.items())}}
            with _files.replacing(self.path) as file:
                json.dump(document, file, indent=1)
                file.write("\n")

    def _read(self):
        try:
            with open(self.path, encoding="utf-8") as file:
                document = json.load(file)
            if document["schema"] != SCHEMA:
                raise ValueError(f"its schema is not {SCHEMA}")
            tests = {test: [TestEnergy(**s) for s in sessions]
                     for test, sessions in document["tests"].items()}
            if any(not s.joules > 0 for sessions in tests.values() for s in sessions):
                raise ValueError("an energy is not above 0")
            return tests
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Corrupt(f"{self.path} is no baseline of pytest: {error}. Remove it, and save it "
                          "again with --jouleprof-save-baseline") from error
