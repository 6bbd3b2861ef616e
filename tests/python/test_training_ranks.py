"""Which figures of a training are logged when ranks know them at different times."""

import jouleprof
import pytest

from jouleprof._live import ranks
from jouleprof.callbacks import _training


class LostWindow:
    """Of a rank whose monitor was closed."""

    def poll(self):
        raise jouleprof.Unavailable("the monitor is closed")

    energy = property(poll)

    def __exit__(self, *error):
        pass


class Window:
    """Of a rank that knows its energy, or not yet."""

    def __init__(self, measurement, is_known=True):
        self.energy = measurement
        self._is_known = is_known

    def poll(self):
        return self.energy if self._is_known else None

    def __exit__(self, *error):
        pass


@pytest.fixture
def measurements(gpu):
    found = []
    for name in ("a", "b", "c"):
        with gpu.window(name) as window:
            pass
        found.append(window.energy)
    return found


def training(gpu, windows):
    made = _training.Training(gpu, None)
    for window in windows:
        made._open["epoch"] = window
        made.end("epoch", tokens=10, logged_as="epoch")
    return made


def other_ranks(monkeypatch, others):
    """`others`: what each other rank has known so far, by the call."""
    calls = iter(others)
    monkeypatch.setattr(_training, "_gathered", lambda known: [("host", known), ("other", next(calls))])


def test_a_figure_is_logged_once_every_rank_knows_it(gpu, measurements, monkeypatch):
    a, b, c = measurements
    mine = training(gpu, [Window(a), Window(b), Window(c, is_known=False)])
    other_ranks(monkeypatch, [[(a, 10)], [(b, 10), (c, 10)]])
    (first,) = mine.finished(wait=False)
    expected = ranks.combined([("host", a), ("other", a)])
    assert first[1]["energy/epoch_joules"] == expected.total.joules
    assert first[1]["energy/epoch_joules_per_token"] == expected.total.joules / 20
    (second,) = mine.finished(wait=False)
    assert second[1]["energy/epoch_joules"] == ranks.combined([("host", b), ("other", b)]).total.joules
    assert [m.name for m in mine.epochs] == ["a", "b"]


def test_nothing_is_logged_while_one_rank_knows_nothing(gpu, measurements, monkeypatch):
    a, b, _ = measurements
    mine = training(gpu, [Window(a), Window(b)])
    other_ranks(monkeypatch, [[], [(a, 0), (b, 0)]])
    assert mine.finished(wait=False) == []
    assert len(mine.finished(wait=True)) == 2


def test_alone_later_figures_do_not_overtake(gpu, measurements):
    a, b, _ = measurements
    mine = training(gpu, [Window(a, is_known=False), Window(b)])
    assert mine.finished(wait=False) == []
    assert [m.name for m in mine.epochs] == []
    assert len(mine.finished(wait=True)) == 2


@pytest.mark.parametrize("wait", [False, True])
def test_a_figure_that_one_rank_lost_shifts_no_other(gpu, measurements, monkeypatch, wait):
    a, b, c = measurements
    mine = training(gpu, [LostWindow(), Window(b), Window(c)])
    other_ranks(monkeypatch, [[(a, 10), (b, 10), (None, 10)]])
    with pytest.warns(RuntimeWarning, match="the monitor is closed"):
        found = mine.finished(wait)
    assert [metrics["energy/epoch_joules"] for _, metrics in found] == [
        ranks.combined([("host", b), ("other", b)]).total.joules]
    assert mine._ended == []
