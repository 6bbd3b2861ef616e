"""The judge of tests/gpu/serving_proof.py, where the truth is known."""

import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "gpu"))
from serving_judge import deletion_of, least_squares, mixes_of, throughput_of, verdict  # noqa: E402

TRUTH = {"long": 60.0, "answer": 25.0, "chat": 8.0}
LIFE = {"long": 0.6, "answer": 5.0, "chat": 1.4}  # seconds


def closed_loop(rng, noise, mixes=12, seconds=25.0, in_flight=24, gain=1.0):
    """Requests that draw their joules evenly over their lives; `gain`: of the long ones' shares."""
    idle, begin = 120.0, 1000.0
    windows, requests, starts = [], [], {}
    slots = [begin] * in_flight
    for n in range(mixes):
        weights = [rng.expovariate(1) / TRUTH[kind] for kind in TRUTH]
        end = begin + (n + 1) * seconds
        while min(slots) < end:
            slot = slots.index(min(slots))
            kind = rng.choices(list(TRUTH), weights)[0]
            start, finish = slots[slot], slots[slot] + LIFE[kind] * rng.uniform(0.9, 1.1)
            slots[slot] = finish
            id = f"c/{kind}/{len(requests)}"
            starts[id] = int(1e9 * start)
            joules = TRUTH[kind] * rng.uniform(0.98, 1.02)
            requests.append({"request": id, "finish_nanoseconds": int(1e9 * finish), "true": joules,
                             "energy_joules": joules * (gain if kind == "long" else 1)})
        windows.append({"begin": int(1e9 * (end - seconds)), "end": int(1e9 * end)})
    for w in windows:
        w["in_a_step"] = in_flight
        w["joules"] = idle * (w["end"] - w["begin"]) / 1e9
        for r in requests:
            a, b = starts[r["request"]], r["finish_nanoseconds"]
            w["joules"] += r["true"] * max(0, min(b, w["end"]) - max(a, w["begin"])) / (b - a)
        w["joules"] += rng.gauss(0, noise) * w["joules"]
    return {"windows": windows, "idle_watts": [idle, idle], "in_flight": in_flight, "starts": starts}, requests


def test_mixes_find_the_classes():
    data, requests = closed_loop(random.Random(4), 0.003)
    found = mixes_of(data, requests, list(TRUTH))
    for kind, joules in TRUTH.items():
        assert found[kind]["least_squares_joules"] == pytest.approx(joules, rel=0.03)
        assert found[kind]["half_percent"] < 3
        assert abs(found[kind]["error_percent"]) < 3


def test_mixes_show_shares_that_are_wrong():
    data, requests = closed_loop(random.Random(4), 0.003, gain=1.08)
    found = mixes_of(data, requests, list(TRUTH))
    assert found["long"]["error_percent"] == pytest.approx(8, abs=3)
    assert found["long"]["verdict"].startswith("missed")


def test_a_yardstick_with_noise_decides_nothing():
    data, requests = closed_loop(random.Random(4), 0.05)
    found = mixes_of(data, requests, list(TRUTH))
    assert found["chat"]["half_percent"] > 3
    assert "interval" in found["chat"]["verdict"]


def test_intervals_of_least_squares_hold_the_truth():
    rng = random.Random(5)
    inside = 0
    for _ in range(300):
        rows = [[rng.expovariate(1) * 10 for _ in range(3)] for _ in range(12)]
        totals = [sum(x * t for x, t in zip(row, TRUTH.values())) * rng.gauss(1, 0.01) for row in rows]
        found = least_squares(rows, totals)
        inside += sum(abs(v - t) <= h for v, t, h in zip(found["values"], TRUTH.values(), found["halves"]))
    assert inside / 900 == pytest.approx(0.95, abs=0.025)
    assert least_squares([[1, 2, 0]] * 12, [3] * 12) is None  # they do not determine the classes


def test_a_deletion_has_its_interval():
    rng = random.Random(6)
    rounds, tenants, by_phase = [], {}, {}
    for n in range(11):
        is_late = n == 4  # what it used beyond its span is missing
        rounds.append({"full": {"phase": f"b{n}", "joules": 3000 + rng.gauss(0, 10) - 400 * is_late,
                                "drained": 10.5 if is_late else 9},
                       "without": {"joules": 2400 + rng.gauss(0, 10), "drained": 8}})
        tenants[f"b{n}|chat"] = {"marginal_joules": 612 + rng.gauss(0, 5), "energy_joules": 700}
        by_phase[f"b{n}"] = [{"tenant": f"b{n}|chat", "tokens_in": 10, "tokens_out": 10, "arrival_nanoseconds": 0,
                              "finish_nanoseconds": int(1e9)}]
    data = {"chat": {"span": 10, "requests": 1, "late": 0, "rounds": rounds}}
    found = deletion_of(data, tenants, by_phase, 120)["chat"]
    assert found["pairs"] == 10  # without the late one
    assert found["marginal_error_percent"] == pytest.approx(2, abs=found["half_percent"])
    assert 0.5 < found["half_percent"] < 4


def test_throughput_by_the_median_of_pairs():
    rng = random.Random(7)
    pairs = [{"with": 1.004 + rng.gauss(0, 0.01), "without": 1 + rng.gauss(0, 0.01)} for _ in range(60)]
    pairs[3]["with"] = 2.0  # another program
    found = throughput_of(pairs)
    low, high = found["median_interval"]
    assert low < 0.4 < high
    assert high - low < 2
    assert found["verdict"] == "met"  # all of the interval is below the goal
    cheap = [{"with": 0.96 + rng.gauss(0, 0.005), "without": 1} for _ in range(30)]
    assert throughput_of(cheap)["verdict"] == "met"  # it costs nothing, whatever made the blocks differ
    dear = [{"with": 1.04 + rng.gauss(0, 0.005), "without": 1} for _ in range(30)]
    assert throughput_of(dear)["verdict"] == "missed"


@pytest.mark.parametrize("error, half, said", [
    (1, 1, "met"), (-3, 3, "met, but the interval reaches beyond"), (7, 1, "missed"),
    (-6, 2, "missed, but the interval reaches within"), (1, None, "one value")])
def test_verdicts(error, half, said):
    assert verdict(error, half, 5) == said
