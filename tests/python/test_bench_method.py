"""How jouleprof bench warms up, counts and stops; without the tool and without PyTorch."""

import random

import pytest

from jouleprof.bench import _blocks, _latency, _steady


class Device:
    """A device whose iterations take the times of a list, then the last one, on a clock of its own."""

    LEAST_MARKED_SECONDS = 1e-3

    def __init__(self, monkeypatch, seconds):
        self.now = 10**9
        self.seconds_of = list(seconds)
        self.calls = 0
        monkeypatch.setattr("time.monotonic_ns", lambda: self.now)

    def step(self):
        i = min(self.calls, len(self.seconds_of) - 1)
        self.now += round(self.seconds_of[i] * 1e9)
        self.calls += 1

    def synchronise(self):
        self.now += 1000

    def mark(self):
        return self.now

    def seconds(self, marks):
        return [(end - begin) * 1e-9 for begin, end in zip(marks, marks[1:])]


class Observer:
    """Sensors that report `watts` of a time in seconds."""

    label = "gpu0"

    def __init__(self, watts=lambda t: 100.0, clock=None, noise=0.0):
        self.watts, self.clock, self.noise = watts, clock, noise

    def sm_clock(self):
        return self.clock and self.clock()

    def power_change(self, begin, middle, end):
        early, late = self.watts((begin + middle) / 2e9), self.watts((middle + end) / 2e9)
        return abs(late - early) / early

    def tolerance(self, name, usual):
        return usual

    def relative_noise(self, begin, end):
        return self.noise


class Monitor:
    def window(self, name, sync_execution=None):
        self.name = name
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def test_a_block_is_long_enough_for_waiting_not_to_count(monkeypatch):
    device = Device(monkeypatch, [1e-3])
    count, group = _blocks.choose_plan(device.step, device)
    block = _blocks.run_block(device.step, device, count, group)
    assert (block.end - block.begin) * 1e-9 >= 0.1 and count % group == 0
    assert block.seconds_each == pytest.approx(1e-3, rel=1e-4)
    # An iteration longer than a block is a block of its own.
    slow = Device(monkeypatch, [2.0])
    assert _blocks.choose_plan(slow.step, slow) == (1, 1)


def test_short_iterations_are_marked_in_groups(monkeypatch):
    device = Device(monkeypatch, [1e-5])
    count, group = _blocks.choose_plan(device.step, device)
    assert group == 100 and count % group == 0
    block = _blocks.run_block(device.step, device, count, group)
    assert block.groups(device) == pytest.approx([1e-5] * (count // group))


def test_warm_up_goes_on_until_the_time_is_steady(monkeypatch):
    device = Device(monkeypatch, [0.02 * 0.99**i for i in range(500)])
    warm_up = _steady.warm_up(device.step, device, (1, 1), Observer(), 1.0, 60.0)
    # 1 % of change an iteration ends after 500 of them; 2 s later the halves agree.
    assert warm_up.steady and warm_up.remark == ""
    assert warm_up.iterations > 500 and warm_up.compared == ["time", "power"]


def test_warm_up_waits_for_power_and_clocks(monkeypatch):
    device = Device(monkeypatch, [0.05])
    warm_up = _steady.warm_up(device.step, device, (4, 1), Observer(lambda t: 60 + 5 * min(t, 9)),
                              1.0, 60.0)
    # On the device's clock from 1 s on; the power is steady from 9 s on.
    assert warm_up.steady and 8 < warm_up.seconds < 13
    device = Device(monkeypatch, [0.05])
    clock = Observer(clock=lambda: min(device.now, 9e9))
    warm_up = _steady.warm_up(device.step, device, (4, 1), clock, 1.0, 60.0)
    assert warm_up.steady and 8 < warm_up.seconds < 13 and "sm_clock_hertz" in warm_up.compared


def test_warm_up_gives_up_and_says_what_changed(monkeypatch):
    device = Device(monkeypatch, [0.05])
    warm_up = _steady.warm_up(device.step, device, (4, 1), Observer(lambda t: 100 * 1.1**t), 1.0, 8.0)
    assert not warm_up.steady and warm_up.remark.startswith("power changed by 1")
    assert 8 <= warm_up.seconds < 9


def test_measuring_stops_at_the_least_time_without_a_target(monkeypatch):
    device = Device(monkeypatch, [0.01])
    limits = _latency.Limits(3.0, 30.0, None)
    steady = _latency.measure(device.step, device, (10, 1), Observer(), Monitor(), "x", limits)
    assert (steady.end - steady.begin) * 1e-9 == pytest.approx(3.0, abs=0.2)
    assert steady.iterations == device.calls and steady.reached_target is None


@pytest.mark.parametrize("noise, reached", [(0.001, True), (0.05, False)])
def test_a_target_includes_the_noise_of_the_sensor(monkeypatch, noise, reached):
    device = Device(monkeypatch, [0.01])
    limits = _latency.Limits(1.0, 6.0, 0.01)
    steady = _latency.measure(device.step, device, (10, 1), Observer(noise=noise), Monitor(), "x", limits)
    assert steady.reached_target is reached
    seconds = (steady.end - steady.begin) * 1e-9
    assert seconds < 2 if reached else seconds >= 6


def test_latency_is_the_median_of_blocks_and_quantiles_are_of_iterations(monkeypatch):
    # Every tenth iteration takes ten times as long.
    device = Device(monkeypatch, [0.01 if i % 10 else 0.1 for i in range(1000)])
    limits = _latency.Limits(3.0, 3.0, None)
    steady = _latency.measure(device.step, device, (10, 1), Observer(), Monitor(), "x", limits)
    latency = _latency.latency_of(steady, device)
    assert latency["median_seconds"] == pytest.approx(0.019, rel=1e-3)
    assert latency["mean_seconds"] == pytest.approx(0.019, rel=1e-3)
    assert latency["p50_seconds"] == pytest.approx(0.01, rel=1e-3)
    assert latency["p99_seconds"] == pytest.approx(0.1, rel=1e-3)
    assert latency["distribution_seconds"] == sorted(latency["distribution_seconds"])
    assert set(round(value, 4) for value in latency["distribution_seconds"]) == {0.01, 0.1}


def test_a_distribution_keeps_its_ends_and_evenly_spaced_ranks():
    assert _blocks.distribution([1.0, 2.0]) == [1.0, 2.0]
    many = [float(i) for i in range(100_001)]
    kept = _blocks.distribution(many)
    assert (len(kept), kept[0], kept[-1]) == (1000, 0.0, 100_000.0)
    assert kept[500] == pytest.approx(50_000, abs=100)


def test_the_interval_of_a_mean_is_students(monkeypatch):
    values = [1.0, 1.1, 0.9, 1.0, 1.05]
    # t(0.975, 4) = 2.776, standard deviation 0.0742: half-width 0.0921, mean 1.01.
    assert _blocks.relative_half_width(values) == pytest.approx(0.0921 / 1.01, rel=0.01)
    assert _blocks.relative_half_width(values[:3]) is None


@pytest.mark.parametrize("correlation", [0, 0.5, 0.8])
def test_the_interval_of_a_mean_holds_it_where_neighbours_are_correlated(correlation):
    random.seed(7)
    runs, held = 400, 0
    for _ in range(runs):
        deviation, values = random.gauss(0, 1), []
        for _ in range(100):
            deviation = correlation * deviation + (1 - correlation ** 2) ** 0.5 * random.gauss(0, 1)
            values.append(1 + 0.02 * deviation)
        held += abs(sum(values) / len(values) - 1) <= _blocks.relative_half_width(values)
    assert held >= 0.90 * runs
