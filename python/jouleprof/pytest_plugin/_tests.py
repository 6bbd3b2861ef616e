"""What the plugin does in a session of pytest 8 or newer: measures, judges and saves."""

import os
import socket

import pytest

from .. import _text
from .._arguments import number
from .._energy import total_of
from .._errors import Error, InvalidArgument
from ._baseline import Baseline, TestEnergy, change_of

_NAMES = {"max_joules", "baseline", "devices"}
_PROPERTIES = ("energy_joules", "energy_error_joules", "energy_provenance")


def _fail(reason):
    """Without the exception that `reason` is the text of: pytest would print it twice."""
    raise pytest.fail.Exception(reason, pytrace=False) from None


class EnergyTests:
    """The hooks of one session."""

    def __init__(self, config):
        self._config = config
        self._monitors = {}  # by devices
        self._results = {}  # by test: text, baseline or None, energy
        self._failed = set()  # tests
        self._unsaved = []  # baselines, with the reason

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item):
        mark = item.get_closest_marker("energy")
        if mark is None:
            return (yield)
        if mark.args or set(mark.kwargs) - _NAMES:
            _fail("the mark energy takes max_joules=, baseline= and devices=")
        if hasattr(self._config, "workerinput"):
            self._without(item, "tests that run in parallel share the devices: run it without -n, such as with "
                          "-m energy -n 0, and the others with -m 'not energy'", must_fail=self._is_gate(mark.kwargs))
        try:
            self._check(**mark.kwargs)
        except InvalidArgument as error:
            _fail(str(error))
        try:
            window = self._monitor(mark.kwargs.get("devices")).window(item.nodeid)
        except Error as error:
            self._without(item, str(error))
        self._forget(item)  # of a run before, where failures are run again
        with window:
            result = yield
        if getattr(item, "_excinfo", None):  # of a TestCase, which pytest raises later
            return result
        try:
            self._judge(item, mark.kwargs, window)
        except (OSError, Error) as error:  # of its baseline
            _fail(str(error))
        return result

    def pytest_runtest_logreport(self, report):
        if report.when == "call" and report.failed:  # also a subtest's, and of one that passed and should not have
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self, session):
        for monitor in self._monitors.values():
            monitor.close()
        if not self._config.getoption("--jouleprof-save-baseline"):
            return
        sessions = {}
        for test, (_, name, energy) in self._results.items():
            if name is not None and test not in self._failed:
                sessions.setdefault(name, {})[test] = energy
        for name, energies in sessions.items():
            try:
                self._baseline(name).add(energies)
            except (OSError, Error) as error:
                self._unsaved.append(f"baseline {name} was not saved: {error}")
                session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        if not self._results:
            return
        terminalreporter.section("energy")
        for test, (text, _, _) in self._results.items():
            terminalreporter.write_line(f"{test}: {text}")
        for text in self._unsaved:
            terminalreporter.write_line(text, red=True)

    def _judge(self, item, options, window):
        lost = [e for e in window.energy.values() if e.domain.is_whole and e.microjoules is None and not e.domain.reason]
        if lost:  # a device that was measured before: what is left is not the test's energy
            self._without(item, "; ".join(f"{e.domain.label}: {e.reason}" for e in lost))
        counted = _counted(window.energy)
        total = total_of(counted)
        if total.joules is None or total.joules <= 0:
            self._without(item, window.energy.total.reason
                          or "the test is shorter than the sensors resolve")
        item.user_properties += zip(_PROPERTIES, (total.joules, total.error, total.provenance))
        energy = TestEnergy(
            total.joules, total.error, total.repeatability, total.provenance,
            [e.domain.label for e in counted],
            [e.domain.uuid or f"{socket.gethostname()} {e.domain.label}" for e in counted])
        text = (f"{_text.joules(total.joules)} {_text.interval(total.joules, total.error)} "
                f"{_text.word(total.provenance)}")
        parts = [text]
        failures = []
        limit = options.get("max_joules")
        if limit is not None:
            if total.low > limit:
                failures.append(f"energy {text} is above max_joules={limit:g}: its lower bound is "
                                f"{_text.joules(total.low)}")
            parts.append(f"max {_text.joules(limit)}: {_verdict(total.low, total.high, limit)}")
        name = options.get("baseline")
        if name is not None:
            change = change_of(energy, self._baseline(name).sessions_of(item.nodeid))
            against = _change_text(change, name)
            most = self._config.getoption("--jouleprof-compare-fail")
            if most is not None:
                if change.low is not None and change.low > most:
                    failures.append(f"energy {text} is higher than its baseline's by more than "
                                    f"{100 * most:g} %: {against}")
                against += f": {_verdict(change.low, change.high, most)}"
            parts.append(against)
        self._results[item.nodeid] = (", ".join(parts), None if failures else name, energy)
        if failures:
            _fail("; ".join(failures))

    def _forget(self, item):
        self._results.pop(item.nodeid, None)
        self._failed.discard(item.nodeid)
        item.user_properties[:] = [found for found in item.user_properties if found[0] not in _PROPERTIES]

    def _check(self, max_joules=None, baseline=None, devices=None):
        if max_joules is not None:
            number(max_joules, "max_joules", least=0)
        if baseline is not None:
            self._baseline(baseline)
        if devices is not None and not isinstance(devices, (str, list, tuple)):
            raise InvalidArgument(f"devices is a text or a list, not {devices!r}")

    def _monitor(self, devices):
        key = devices if devices is None or isinstance(devices, str) else tuple(devices)
        if key not in self._monitors:
            from .._live.monitor import Monitor

            self._monitors[key] = Monitor(devices)
        return self._monitors[key]

    def _baseline(self, name):
        folder = self._config.getini("jouleprof_baselines")
        return Baseline(os.path.join(self._config.rootpath, folder), name)

    def _is_gate(self, options):
        """Whether its energy can fail the test."""
        return options.get("max_joules") is not None or (
            options.get("baseline") is not None and self._config.getoption("--jouleprof-compare-fail") is not None)

    def _without(self, item, reason, must_fail=False):
        reason = f"no energy of {item.nodeid}: {reason}"
        if must_fail or self._config.getoption("--jouleprof-require"):
            _fail(reason)
        pytest.skip(reason)


def _counted(measurement):
    """The devices of the total. An estimate does not count where a sensor measured another."""
    known = [e for e in measurement.values() if e.domain.is_whole and e.microjoules is not None]
    return [e for e in known if e.provenance != "estimated"] or known


def _verdict(low, high, limit):
    if low is None:
        return "inconclusive"
    return "failed" if low > limit else "passed" if high <= limit else "inconclusive"


def _change_text(change, name):
    if change.ratio is None:
        return f"baseline {name}: {change.reason}"
    if change.low is None:
        return f"{100 * change.ratio:+.1f} % against {name}, {change.reason}"
    return (f"{100 * change.ratio:+.1f} % [{100 * change.low:+.1f}, {100 * change.high:+.1f}] "
            f"against {change.sessions} sessions of {name}")
