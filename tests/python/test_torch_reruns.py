"""When re-runs go on and when they end, and how often a model runs (docs/layers.md)."""

import io

import jouleprof
import pytest
from jouleprof.torch import _profilers, _reruns
from test_torch_tables import device, row


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def play(answers, kinds, budget=20.0, analysis=1.5):
    """Rounds of `kinds` kinds, with `answers` of what is open after each: the seconds of each round,
    the seconds that all took, and what was printed."""
    clock, log = Clock(), io.StringIO()
    todo = list(answers)

    def report():
        clock.now += analysis
        names = todo.pop(0) if todo else []
        return [device(*[row(name, 12.0, resolvable=False) for name in names])]

    seconds = []
    for each, end in _reruns.rounds(report, clock.now + budget, clock, log):
        assert end == 120.0 or budget != 20.0
        seconds.append(each)
        clock.now += min(kinds * (each + 0.3), end - clock.now)
    return seconds, clock.now - 100, log.getvalue().splitlines()


def test_rounds_end_when_all_is_resolved():
    assert play([[]], kinds=5) == ([0.3], pytest.approx(4.5), [])
    seconds, took, lines = play([["fc1", "fc2"], []], kinds=5)
    assert seconds == [0.3, 0.6] and took == pytest.approx(3 + 1.5 + 4.5 + 1.5)
    assert lines == ["jouleprof: 2 with 5 % of the energy or more not within ±10 %: fc1, fc2; "
                     "re-runs continue for up to 16 s"]


def test_rounds_end_with_the_budget():
    seconds, took, lines = play([["fc"]] * 100, kinds=5)
    assert seconds[:2] == [0.3, 0.6] and took <= 20
    assert len(lines) == len(seconds) - 1
    seconds, took, _ = play([["fc"]] * 100, kinds=100)  # one round is more than there is time for
    assert seconds == [0.3] and took == pytest.approx(20)
    seconds, _, _ = play([["fc"]] * 100, kinds=20)
    assert seconds == [0.3]  # what is left would be too short for each


def test_progress_names_a_few():
    assert _reruns.progress(list("abcdef")) == (
        "6 with 5 % of the energy or more not within ±10 %: a, b, c, d and 2 more")
    assert len(_reruns.progress(["void f<" + "x" * 500 + part for part in "ab"])) < 200
    assert _reruns.progress([]) == "no energies are known yet"


def within(energy, half):
    return [energy * (1 - half), energy * (1 + half)]


@pytest.mark.parametrize("more, is_open", [
    ({}, False),
    ({"interval_joules": within(12.0, 0.11)}, True),
    ({"inclusive_interval_joules": within(12.0, 0.11)}, True),
    ({"resolvable": False}, True),
    ({"interval_joules": [0.0, 13.0]}, True),  # no energy is below zero
    ({"energy_joules": 0.1, "interval_joules": within(0.1, 0.9), "inclusive_joules": 0.1,
      "inclusive_interval_joules": within(0.1, 0.9)}, False),  # less than 5 %
    ({"energy_joules": None, "interval_joules": None}, True),
    ({"energy_joules": None, "interval_joules": None, "busy_seconds": 0.0}, False),
])
def test_rows_that_matter_have_to_be_within_ten_percent(more, is_open):
    good = {"interval_joules": within(12.0, 0.09), "inclusive_interval_joules": within(12.0, 0.09)}
    rows = [row("fc", 12.0, **{**good, **more}), row("act", 6.0, **{
        "interval_joules": within(6.0, 0.09), "inclusive_interval_joules": within(6.0, 0.09)})]
    assert _reruns.open_rows([device(*rows)]) == (["fc"] if is_open else [])
    assert _reruns.open_rows([device(*rows, domain="cpu")]) == []  # estimates stay as wide


@pytest.mark.parametrize("each, runs", [(2.0, 10), (0.1, 16), (0.001, 1501), (0.0, None)])
def test_short_runs_are_repeated(each, runs):
    clock, count = Clock(), []

    def run():
        count.append(1)
        clock.now += each or 1e-6

    done, seconds = _profilers.repeat(run, lambda: None, 10, 1.5, clock)
    assert done == len(count) and seconds == pytest.approx(clock.now - 100)
    assert seconds >= 1.5 and (runs is None or abs(done - runs) <= 1)
    assert _profilers.repeat(run, lambda: None, 7, 0, clock)[0] == 7


def test_a_slow_first_run_does_not_end_the_repetition():
    clock, first = Clock(), [1.0]

    def run():
        clock.now += first.pop() if first else 0.01

    runs, seconds = _profilers.repeat(run, lambda: None, 1, 1.5, clock)
    assert seconds >= 1.5 and runs >= 50


class Library:
    """Answers one after the other: what libjouleprof_inject.so says of each round."""

    def __init__(self, *answers):
        self.answers = list(answers)

        def now(each, every, said, size):
            code, said.value = self.answers.pop(0)
            return code

        self.jouleprof_replay_now = now


def test_re_runs_that_are_refused_end_the_rounds_with_the_reason():
    reruns = _reruns.Reruns()
    library = Library((0, b"2 kernels were re-run"), (-1, b"no room"))
    reruns.run(library, [(0.1, 1e12)] * 3)
    assert reruns.warnings() == ["2 kernels were re-run", "no room"] and library.answers == []


def test_a_kernel_that_breaks_the_context_is_an_error():
    with pytest.raises(jouleprof.Error, match="it did not end"):
        _reruns.Reruns().run(Library((-2, b"the program cannot go on: it did not end")), [(0.1, 1e12)])
