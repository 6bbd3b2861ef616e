"""compare: recordings and commands on simulated GPUs, gates, baselines and outputs."""

import json
import os
import pty
import subprocess
import sys
import xml.etree.ElementTree

import pytest
from conftest import TOOL, Tool

SLEEP = "import sys, time; time.sleep(float(sys.argv[1]))"


def board(watts, **keys):
    return {"devices": [{"generation": "hopper", "idle_watts": watts, **keys}]}


def record(tool, name, watts=250, seconds=0.5, **keys):
    tool.simulate(board(watts, **keys))
    tool("run", "-q", "--idle", "0s", "-o", name, "--", sys.executable, "-c", SLEEP, seconds)


@pytest.fixture
def recorded(tool):
    """Two recordings before, two after, in turn: after draws 20 % more power."""
    for n in (1, 2):
        record(tool, f"a{n}.jprof", watts=250)
        record(tool, f"b{n}.jprof", watts=300)
    return tool


def test_sets_of_recordings_in_turn_have_a_verdict(recorded):
    process = recorded("compare", "--before", "a1.jprof", "a2.jprof", "--after", "b1.jprof",
                       "b2.jprof", "--json")
    found = json.loads(process.out)
    assert found["schema"] == "jouleprof.comparison/2"
    assert (found["units_before"], found["units_after"]) == (2, 2)
    assert found["power"]["change_ratio"] == pytest.approx(0.2, abs=0.01)
    assert found["power"]["verdict"] == "higher"
    assert found["domains"] == ["gpu0"]
    assert {c["code"] for c in found["conditions"]} == {"simulated"}


def test_one_recording_a_side_claims_no_more_than_it_knows(recorded):
    text = recorded("compare", "a1.jprof", "b1.jprof").out
    assert "inconclusive" in text and "spread_unknown" in text
    status = recorded("compare", "a1.jprof", "b1.jprof", "--fail-if", "power>3%", status=9)
    assert "inconclusive" in status.out
    recorded("compare", "a1.jprof", "b1.jprof", "--fail-if", "power>3%", "--inconclusive", "pass")
    recorded("compare", "a1.jprof", "b1.jprof", "--fail-if", "power>3%", "--spread", "1%", status=8)
    recorded("compare", "b1.jprof", "a1.jprof", "--fail-if", "power>3%", "--spread", "1%")


def test_self_test_shows_whether_a_gate_can_fail(recorded):
    same = ("compare", "a1.jprof", "a2.jprof", "--fail-if", "power>3%")
    recorded(*same, "--spread", "0.5%")
    text = recorded(*same, "--spread", "0.5%", "--self-test", status=8).out
    assert "Self-test" in text
    recorded(*same, "--spread", "5%", "--self-test", status=9)


def test_outputs_for_continuous_integration(recorded):
    process = recorded("compare", "a1.jprof", "b1.jprof", "--spread", "1%", "--fail-if", "power>3%",
                       "--format", "markdown=c.md", "--format", "junit=c.xml", "--format", "benchmark=c.json",
                       "--format", "github", status=8)
    assert "::error title=jouleprof gate::power>3%25: failed" in process.out
    assert "| power |" in (recorded.folder / "c.md").read_text()
    suite = xml.etree.ElementTree.parse(recorded.folder / "c.xml").getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert [b["unit"] for b in json.loads((recorded.folder / "c.json").read_text())] == ["J", "s"]


def test_other_boards_keep_their_calibration_error(tool):
    record(tool, "a.jprof", watts=250, uuid="GPU-11111111-0000-0000-0000-000000000000")
    record(tool, "b.jprof", watts=255, uuid="GPU-22222222-0000-0000-0000-000000000000")
    found = json.loads(tool("compare", "a.jprof", "b.jprof", "--spread", "0.1%", "--json").out)
    assert "board_differs" in {c["code"] for c in found["conditions"]}
    assert found["power"]["verdict"] == "inconclusive"
    low, high = found["power"]["interval_ratio"]
    assert high - low == pytest.approx(2 * 1.02 * 0.0707, rel=0.05)


def test_an_output_is_no_input_and_no_other_output(recorded):
    before = (recorded.folder / "a1.jprof").read_bytes()
    for outputs in (["--html", "x", "--format", "junit=x"], ["--format", "markdown=a1.jprof"]):
        process = recorded("compare", "a1.jprof", "b1.jprof", *outputs, status=7)
        assert outputs[-1].split("=")[-1] in process.err, process.err
    assert (recorded.folder / "a1.jprof").read_bytes() == before


def test_failed_runs_are_refused(recorded):
    recorded("run", "-q", "--idle", "0s", "-o", "bad.jprof", "--", sys.executable, "-c",
             "import time; time.sleep(0.5); raise SystemExit(3)", status=3)
    text = recorded("compare", "a1.jprof", "bad.jprof", "--spread", "1%").out
    assert "REFUSED" in text and "failed_run" in text
    assert "REFUSED" not in recorded("compare", "a1.jprof", "bad.jprof", "--spread", "1%",
                                     "--accept", "failed_run").out


def test_baselines_are_kept_by_name(recorded):
    recorded("compare", "--save-baseline", "main", "a1.jprof", "a2.jprof")
    process = recorded("compare", "--baseline", "main", "b1.jprof", "--json")
    found = json.loads(process.out)
    assert found["before"]["title"] == "baseline main of commit none"
    assert len(found["before"]["runs"]) == 2
    assert found["power"]["verdict"] == "higher"
    assert recorded("compare", "--baseline", "main@none", "b1.jprof").out
    error = recorded("compare", "--baseline", "other", "b1.jprof", status=3).err
    assert "there is no baseline other" in error
    assert "--save-baseline" in recorded("compare", "--save-baseline", "a/b", "a1.jprof",
                                         status=2).err


def test_pairs_run_both_commands_in_turn(tool):
    tool.simulate(board(250))
    log = tool.folder / "order"
    script = ("import sys, time; open(sys.argv[1], 'a').write(sys.argv[2]); time.sleep(0.3);"
              " print('output of the command')")
    side = [sys.executable, "-c", script, str(log)]
    process = tool("compare", "--pairs", "3", "--warmup", "1", "--keep", "runs", "--json",
                   "--fail-if", "power>50%", "--", *side, "A", "---", *side, "B")
    assert log.read_text() == "AB" + "ABBABA"
    found = json.loads(process.out)
    assert found["paired"] and found["units_before"] == 3
    assert found["power"]["change_ratio"] == pytest.approx(0, abs=0.05)
    assert "output of the command" in process.err and "pair   3 of 3" in process.err
    assert len(list((tool.folder / "runs").glob("*.jprof"))) == 6
    kept = sorted(str(p) for p in (tool.folder / "runs").glob("*-before.jprof"))
    again = [p.replace("before", "after") for p in kept]
    assert json.loads(tool("compare", "--paired", "--before", *kept, "--after", *again,
                           "--json").out)["power"]["change_ratio"] == found["power"]["change_ratio"]


def test_kept_recordings_are_not_replaced(tool):
    compare = ("compare", "--pairs", "2", "--warmup", "0", "--keep", "kept", "--", "true", "---")
    tool(*compare, "sleep", "0.2")
    kept = {file.name: file.read_bytes() for file in (tool.folder / "kept").iterdir()}
    assert "of an earlier comparison; choose another folder" in tool(*compare, "sleep", "0.1", status=2).err
    assert {file.name: file.read_bytes() for file in (tool.folder / "kept").iterdir()} == kept


def test_pairs_stop_where_a_command_fails(tool):
    tool.simulate(board(250))
    process = tool("compare", "--pairs", "2", "--", sys.executable, "-c", "raise SystemExit(7)",
                   "---", "true", status=7)
    assert "failed with status 7" in process.err


def test_interrupted_pairs_leave_nothing_that_refuses_the_same_line(tool):
    tool.simulate(board(250))
    line = ("compare", "--pairs", "2", "--keep", "kept", "--", "sh", "-c", "[ -e done ] || kill -INT $$", "---", "true")
    process = tool(*line, status=130)
    assert "sh was interrupted; only runs that succeed are compared" in process.err
    assert list((tool.folder / "kept").iterdir()) == []
    (tool.folder / "done").touch()
    tool(*line)


def test_pairs_before_one_that_fails_are_compared(tool):
    tool.simulate(board(250))
    process = tool("compare", "--pairs", "4", "--warmup", "0", "--", "true", "---", "sh", "-c",
                   "echo run >> count; [ $(wc -l < count) -le 2 ] || exit 5", status=5)
    assert "2 pairs of runs" in process.out
    assert "failed with status 5; only runs that succeed are compared; the 2 pairs before it are" in process.err


@pytest.mark.parametrize("arguments", [
    (), ("a.jprof",), ("a.jprof", "b.jprof", "c.jprof"), ("--pairs", "2", "--", "true"),
    ("--pairs", "1", "--", "true", "---", "true"), ("a.jprof", "b.jprof", "--by", "joules"),
    ("a.jprof", "b.jprof", "--fail-if", "energy+3%"), ("a.jprof", "b.jprof", "--", "true"),
    ("a.jprof", "b.jprof", "--self-test"), ("a.jprof", "b.jprof", "--accept", "work_difers"), ("a.jprof", "b.jprof", "--spread", "x"),
])
def test_invalid_usage(tool, arguments):
    assert tool("compare", *arguments, status=2).err.startswith("jouleprof: ")


def test_missing_and_equal_files(recorded):
    recorded("compare", "a1.jprof", "missing.jprof", status=3)
    assert "on both sides" in recorded("compare", "a1.jprof", "./a1.jprof", status=2).err


def test_a_copy_is_no_run_of_its_own(recorded):
    (recorded.folder / "copy.jprof").write_bytes((recorded.folder / "a1.jprof").read_bytes())
    error = recorded("compare", "a1.jprof", "copy.jprof", status=2).err
    assert "a1.jprof and copy.jprof are the same recording" in error
    recorded("compare", "--before", "a1.jprof", "copy.jprof", "--after", "b1.jprof", status=2)


@pytest.mark.parametrize(("by", "option"), [("kernel", "--kernels"), ("layer", "--layers"),
                                            ("phase", "--layers"), ("window", "open them")])
def test_without_a_trace_the_reason_replaces_the_rows(recorded, by, option):
    text = recorded("compare", "a1.jprof", "b1.jprof", "--by", by).out
    assert "no rows: no run has" in text and option in text


def test_a_file_of_repeated_runs_is_so_many_runs(tool):
    for name in ("before", "after"):
        tool("run", "-q", "--idle", "0s", "--repeat", "3", "-o", f"{name}.jprof", "--", "sleep", "0.3")
    found = json.loads(tool("compare", "before.jprof", "after.jprof", "--json").out)
    assert (len(found["before"]["runs"]), len(found["after"]["runs"])) == (3, 3), found["before"]
    tool("run", "-q", "--idle", "0s", "-o", "one.jprof", "--", "sleep", "0.3")
    tool("run", "-q", "--idle", "0s", "--append", "one.jprof", "--", "sleep", "0.3")
    assert "compare" not in tool("compare", "before.jprof", "one.jprof").err


def test_on_a_terminal_a_comparison_is_short(recorded):
    leader, follower = pty.openpty()
    subprocess.run([TOOL, "compare", "a1.jprof", "b1.jprof", "--spread", "1%"], cwd=recorded.folder,
                   env=recorded.environment, stdout=follower, check=True)
    os.close(follower)
    text = os.read(leader, 1 << 16).decode()
    assert text.count("\n") <= 15 and "--details" in text and "energy" in text, text
