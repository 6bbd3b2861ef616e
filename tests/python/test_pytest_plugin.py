"""Tests with a limit on their energy, in a pytest of their own on a simulated GPU."""

import json
import math
import os
import subprocess
import sys
import threading
import xml.etree.ElementTree

import pytest
from conftest import CONSTANT

pytestmark = pytest.mark.skipif(pytest.version_tuple < (8,), reason="the plugin needs pytest 8")

TEST = """
import time
import pytest

@pytest.fixture
def warm():
    time.sleep(0.3)

@pytest.mark.energy({mark})
def test_work(warm):
    time.sleep(0.2)
    {body}

def test_other():
    pass
"""


class Project:
    """A folder with one measured test and one other."""

    def __init__(self, machine):
        self.folder = machine.folder
        self.out = ""

    def write(self, mark, body="pass"):
        (self.folder / "test_it.py").write_text(TEST.format(mark=mark, body=body))
        return self

    def run(self, *arguments, passed=0, failed=0, skipped=0):
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "jouleprof.pytest_plugin", "-p",
             "no:cacheprovider", "-rs", "--rootdir", str(self.folder), "--junitxml", "out.xml",
             str(self.folder / "test_it.py"), *arguments],
            cwd=self.folder, env={**os.environ, "PYTEST_ADDOPTS": "",
                                  "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            check=False, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.out, self.status = done.stdout, done.returncode
        suite = xml.etree.ElementTree.parse(self.folder / "out.xml").getroot().find("testsuite")
        counts = [int(suite.get(name)) for name in ("tests", "failures", "skipped", "errors")]
        assert counts == [passed + failed + skipped, failed, skipped, 0], self.out
        return {p.get("name"): p.get("value") for p in suite.iter("property")}

    @property
    def baseline(self):
        return self.folder / ".jouleprof" / "main.json"

    def sessions(self):
        (sessions,) = json.loads(self.baseline.read_text())["tests"].values()
        return sessions


@pytest.fixture
def project(machine):
    machine.gpus(CONSTANT)
    return Project(machine)


def test_a_limit_fails_only_where_the_interval_lies_above_it(project):
    found = project.write("max_joules=1000, devices='gpu0'").run(passed=2)
    joules, error = (float(found[k]) for k in ("energy_joules", "energy_error_joules"))
    # 250 W: the body takes 0.2 s or longer, and the fixture is not in it.
    assert joules > 49 - error
    assert found["energy_provenance"] == "simulated"
    assert "max 1.000 kJ: passed" in project.out and "SIMULATED" in project.out
    project.write("max_joules=10, devices='gpu0'").run(passed=1, failed=1)
    assert "is above max_joules=10: its lower bound is" in project.out


def test_the_fixture_is_not_measured(project):
    found = project.write("devices='gpu0'", "assert True").run(passed=2)
    test = next(xml.etree.ElementTree.parse(project.folder / "out.xml").iter("testcase"))
    whole = 250 * float(test.get("time"))
    assert float(found["energy_joules"]) < whole - 250 * 0.25


def test_a_failing_test_keeps_its_own_failure(project):
    found = project.write("max_joules=1, devices='gpu0'", "assert 1 == 2").run(passed=1, failed=1)
    assert "assert 1 == 2" in project.out and "max_joules=1:" not in project.out
    assert not found


def test_baselines_learn_the_spread_from_sessions(project):
    project.write("baseline='main', devices='gpu0'")
    project.run(passed=2)
    assert "no_baseline" in project.out and not project.baseline.exists()
    for n in range(3):
        project.run("--jouleprof-save-baseline", passed=2)
        assert len(project.sessions()) == n + 1
    # Known energies and devices, so that no session of this test decides.
    document = json.loads(project.baseline.read_text())
    (test, sessions), = document["tests"].items()

    def scale(*factors):
        scaled = [{**sessions[0], "joules": sessions[0]["joules"] * f} for f in factors]
        project.baseline.write_text(json.dumps({**document, "tests": {test: scaled}}))

    scale(0.1, 0.101, 0.102)
    project.run("--jouleprof-compare-fail", "50%", passed=1, failed=1)
    assert "higher than its baseline's by more than 50 %" in project.out
    scale(10, 10.1, 10.2)
    project.run("--jouleprof-compare-fail", "5%", passed=2)
    assert "against 3 sessions of main: passed" in project.out
    scale(0.1)
    project.run("--jouleprof-compare-fail", "50%", passed=2)
    assert "spread_unknown: inconclusive" in project.out
    # A test that failed adds nothing.
    scale(0.1, 0.101, 0.102)
    project.run("--jouleprof-compare-fail", "50%", "--jouleprof-save-baseline", passed=1, failed=1)
    assert len(project.sessions()) == 3


def test_without_a_sensor_tests_are_skipped_with_the_reason_or_fail(project):
    project.write("max_joules=10, devices='gpu7'").run(passed=1, skipped=1)
    assert "no energy of" in project.out and "gpu7" in project.out
    project.run("--jouleprof-require", passed=1, failed=1)


def test_a_gate_does_not_vanish_where_tests_run_in_parallel(project):
    pytest.importorskip("xdist")
    parallel = ("-p", "xdist", "-n", "2")
    project.write("devices='gpu0'").run(*parallel, passed=1, skipped=1)
    project.write("max_joules=1000, devices='gpu0'").run(*parallel, passed=1, failed=1)
    assert "run it without -n" in project.out
    project.write("baseline='main', devices='gpu0'").run(*parallel, passed=1, skipped=1)
    project.run(*parallel, "--jouleprof-compare-fail", "5%", passed=1, failed=1)


def test_wrong_words_are_errors_that_name_the_right_ones(project):
    project.write("max_watts=3").run(passed=1, failed=1)
    assert "takes max_joules=, baseline= and devices=" in project.out
    project.write("baseline='../x', devices='gpu0'").run(passed=1, failed=1)
    assert "is no file name" in project.out
    project.write("baseline='main', devices='gpu0'")
    project.baseline.parent.mkdir()
    project.baseline.write_text('{"schema": "other"}')
    project.run(passed=1, failed=1)
    assert "Remove it" in project.out


@pytest.mark.parametrize("mark, expected", [
    ("max_joules='5'", "max_joules is a number, not '5'"), ("max_joules=-1", "must not be below 0"),
    ("devices=5", "devices is a text or a list, not 5"), ("baseline=5", "is no file name"),
])
def test_a_mark_of_nonsense_is_a_failure_with_words(project, mark, expected):
    project.write(mark).run(passed=1, failed=1)
    assert expected in project.out and "pytest_plugin/" not in project.out
    assert "During handling of the above exception" not in project.out


def test_a_baseline_that_cannot_be_saved_hides_no_other_failure(project):
    project.write("baseline='main', devices='gpu0'")
    where = ("-o", "jouleprof_baselines=/proc/none", "--jouleprof-save-baseline")
    project.run(*where, passed=2)
    assert "baseline main was not saved: " in project.out and project.status == 1
    with open(project.folder / "test_it.py", "a") as file:
        file.write("\ndef test_bad():\n    assert 1 == 2\n")
    project.run(*where, passed=2, failed=1)
    assert "assert 1 == 2" in project.out and "baseline main was not saved: " in project.out and project.status == 1


def test_a_baseline_that_cannot_be_read_is_a_failure_with_words(project):
    (project.folder / "file").write_text("")
    project.write("baseline='main', devices='gpu0'")
    project.run("-o", "jouleprof_baselines=file", passed=1, failed=1)
    assert "Not a directory" in project.out and "pytest_plugin/" not in project.out


def energy(joules, **other):
    from jouleprof.pytest_plugin._baseline import TestEnergy

    return TestEnergy(**{"joules": joules, "error": 0.05 * joules, "repeatability": 1e-4 * joules,
                         "provenance": "measured", "domains": ["gpu0"], "devices": ["GPU-1"],
                         **other})


def test_the_interval_is_that_of_one_more_session():
    from jouleprof.pytest_plugin._baseline import change_of

    sessions = [energy(100 * math.exp(x)) for x in (-0.01, 0, 0.01)]
    change = change_of(energy(105), sessions)
    # t(2) = 4.3027, s = 0.01, sqrt(1 + 1/3).
    half = 4.3027 * 0.01 * math.sqrt(4 / 3)
    assert change.ratio == pytest.approx(0.05)
    assert (change.low, change.high) == pytest.approx(
        (1.05 * math.exp(-half) - 1, 1.05 * math.exp(half) - 1))
    assert change.sessions == 3


def test_sensor_noise_and_other_devices_widen_it():
    from jouleprof.pytest_plugin._baseline import change_of

    same = [energy(100, repeatability=1.0)] * 4
    half = math.hypot(0.01, 0.02)
    assert math.log1p(change_of(energy(100, repeatability=2.0), same).high) == pytest.approx(half)
    other = energy(100, error=7.0, devices=["GPU-2"])
    gains = math.hypot(math.sqrt(0.05**2 - 0.01**2), math.sqrt(0.07**2 - 1e-8))
    half = math.hypot(math.hypot(1e-4, 0.01), gains)
    assert math.log1p(change_of(other, same).high) == pytest.approx(half)
    estimated = [energy(100, provenance="estimated")] * 4
    assert change_of(energy(100, provenance="estimated"), estimated).high > 0.07
    assert change_of(energy(100, domains=["gpu0", "cpu"]), same).reason == "domains_differ"
    assert change_of(energy(100), []).reason == "no_baseline"


def test_sessions_that_end_at_once_are_all_in_the_baseline(tmp_path):
    from jouleprof.pytest_plugin._baseline import Baseline, TestEnergy

    energy = TestEnergy(1.0, 0.1, 0.1, "measured", [], [])
    together, failed = threading.Barrier(8), []

    def add():
        baseline = Baseline(str(tmp_path), "main")
        together.wait()
        try:
            baseline.add({"test": energy})
        except (OSError, ValueError) as error:
            failed.append(error)

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(Baseline(str(tmp_path), "main").sessions_of("test")) == 8


def test_a_device_that_is_lost_meanwhile_passes_no_limit(project, machine):
    machine.gpus(CONSTANT, faults={"kind": "gpu_lost", "at_seconds": 0.5})  # the CPU's estimate is left
    project.write("max_joules=1000", "time.sleep(1)").run(passed=1, skipped=1)
    assert "gpu0: readings of" in project.out
    project.run("--jouleprof-require", passed=1, failed=1)


FAILING = """
import time, unittest
import pytest

@pytest.mark.energy(baseline="main", devices="gpu0")
class TestIt(unittest.TestCase):
    def test_failing(self):
        self.fail("on purpose")

    def test_good(self):
        time.sleep(0.2)

@pytest.mark.energy(baseline="main", devices="gpu0")
@pytest.mark.xfail(strict=True)
def test_unexpected():
    time.sleep(0.1)

@pytest.mark.energy(baseline="main", devices="gpu0")
def test_subtest(request):  # one that fails, as pytest 9 and pytest-subtests report it; the body ends in order
    report = pytest.TestReport(request.node.nodeid, ("", 0, ""), {}, "failed", "a part", "call")
    request.node.ihook.pytest_runtest_logreport(report=report)
"""


def test_tests_that_fail_late_add_nothing_to_a_baseline(project):
    (project.folder / "test_it.py").write_text(FAILING)
    project.run("--jouleprof-save-baseline", passed=2, failed=3)
    assert [name.split("::")[-1] for name in json.loads(project.baseline.read_text())["tests"]] == ["test_good"]
    failing = next(t for t in xml.etree.ElementTree.parse(project.folder / "out.xml").iter("testcase")
                   if t.get("name") == "test_failing")
    assert not list(failing.iter("property")) and "on purpose" in project.out


def test_a_test_that_is_run_again_has_the_energy_of_its_last_run(project):
    pytest.importorskip("pytest_rerunfailures")
    project.write("max_joules=75, devices='gpu0'", "global pause; pause, before = 0, pause; time.sleep(before)\n\npause = 0.5")
    project.run("-p", "pytest_rerunfailures", "--reruns", "1", passed=2)
    last = list(xml.etree.ElementTree.parse(project.folder / "out.xml").iter("testcase"))[1]
    (joules,) = [float(p.get("value")) for p in last.iter("property") if p.get("name") == "energy_joules"]
    assert last.get("name") == "test_work" and joules < 75
