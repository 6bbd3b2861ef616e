"""Values: no monitor needed."""

import dataclasses
import json
import math
import pickle

import pytest

import jouleprof
from jouleprof._live import ranks
from jouleprof import _text
from jouleprof._energy import Energy, Power, total_of, total_of_ranks

GPU0 = jouleprof.Domain("gpu", "gpu0", "H100", "GPU-a", "", 0, 0)
GPU1 = jouleprof.Domain("gpu", "gpu1", "H100", "GPU-b", "", 1, 1)
MEMORY = jouleprof.Domain("gpu_memory", "gpu0", "HBM", "GPU-a", "", None, 0)
CPU = jouleprof.Domain("cpu", "package-0", "Xeon", "", "", None, None)
DRAM = jouleprof.Domain("dram", "package-0", "", "", "no readable sensor", None, None)


def energy(domain, joules, error=0, repeatability=0, provenance="measured"):
    return jouleprof.Energy(domain, round(joules * 1e6), round(error * 1e6),
                            round(repeatability * 1e6), provenance, "sensor", "method")


def absent(domain):
    return jouleprof.Energy.unavailable(domain, "no readable sensor")


def measurement(*energies, **fields):
    return jouleprof.Measurement(**{"name": "epoch", "time": 2.0, "edges": "host",
                                    "_energies": energies, **fields})


WHOLE = measurement(energy(GPU0, 500, 25, 1), energy(MEMORY, 100, 10), energy(GPU1, 300, 15, 1),
                    energy(CPU, 40, 24, 1, "estimated"), absent(DRAM))


def test_the_total_adds_whole_devices_only():
    total = WHOLE.total
    assert total.joules == 840
    assert total.error == 64
    assert total.provenance == "estimated"
    assert total.sensor == "gpu0 + gpu1 + package-0"
    assert total.reason == "without dram package-0"


def test_a_measurement_is_a_dict_of_energies_by_device():
    assert WHOLE.keys() == list(WHOLE) == ["gpu0", "gpu_memory gpu0", "gpu1", "package-0", "dram package-0"]
    assert WHOLE.items() == list(zip(WHOLE.keys(), WHOLE.values()))
    assert dict(WHOLE)["gpu1"] is WHOLE.values()[2] is WHOLE["gpu1"]
    assert [e.joules for e in WHOLE.values()] == [500, 100, 300, 40, None]
    assert not hasattr(WHOLE, "energies") and not hasattr(jouleprof.Window, "energies")


def test_zeus_fields():
    assert WHOLE.gpu_energy == {0: 500, 1: 300}
    assert WHOLE.cpu_energy == {0: 40}
    assert WHOLE.dram_energy is None
    assert WHOLE.total_energy == 800


def test_absent_is_none_and_never_zero():
    m = measurement(energy(GPU0, 500), absent(GPU1), absent(DRAM))
    assert m.gpu_energy == {0: 500}
    assert m.total_energy is None
    e = m["gpu1"]
    assert (e.joules, e.low, e.high, e.error, e.repeatability) == (None,) * 5
    assert e.provenance == "unavailable" and e.reason
    nothing = measurement(absent(GPU0))
    assert nothing.total.joules is None
    assert "0 J" not in str(nothing) and "0 J" not in repr(nothing)
    cost = nothing.cost(jouleprof.Factors(source="x", grams_co2e_per_kwh=400))
    assert cost.kwh is None and cost.grams_co2e is None and "unavailable" in str(cost)


def test_no_energy_is_below_zero():
    assert energy(GPU0, 1, 5).low == 0 and energy(GPU0, 1, 5).high == 6


def test_a_device_is_its_whole_not_its_memory():
    assert WHOLE["gpu0"].joules == 500
    assert WHOLE["gpu_memory gpu0"].joules == 100
    assert (WHOLE["package-0"].joules, WHOLE["dram package-0"].joules) == (40, None)
    with pytest.raises(jouleprof.NotFound, match="gpu0"):
        WHOLE["gpu7"]


def test_a_kind_is_all_its_devices():
    assert WHOLE["gpu"].joules == 800 and WHOLE["gpu"].sensor == "gpu0 + gpu1"
    assert WHOLE["cpu"] == WHOLE["package-0"] and WHOLE["cpu"].provenance == "estimated"
    assert WHOLE["dram"].joules is None
    with pytest.raises(jouleprof.NotFound, match="no device is called 'tpu'; this measurement has: gpu0"):
        WHOLE["tpu"]


def test_a_measurement_is_a_number_and_a_mapping_of_its_devices():
    labels = ["gpu0", "gpu_memory gpu0", "gpu1", "package-0", "dram package-0"]
    assert list(WHOLE) == WHOLE.keys() == labels
    assert dict(WHOLE)["gpu1"].joules == 300
    assert "gpu0" in WHOLE and "cpu" in WHOLE and "dram" in WHOLE and "gpu_memory" not in WHOLE
    assert "gpu7" not in WHOLE and 0 not in WHOLE
    assert float(WHOLE) == WHOLE.joules == 840 and WHOLE.watts == 420
    assert WHOLE.kwh == pytest.approx(840 / 3.6e6)
    assert float(WHOLE["gpu0"]) == 500 and WHOLE["gpu0"].watts is None  # made without its time
    assert dataclasses.replace(WHOLE["gpu0"], seconds=2.0).watts == 250
    assert math.isclose(sum(map(float, [WHOLE, WHOLE["cpu"]])), 880)


def test_a_format_of_numbers_is_of_the_joules():
    assert f"{WHOLE:.1f} {WHOLE['gpu0']:8.2f} {WHOLE.total:g}" == "840.0   500.00 840"
    assert f"{WHOLE}" == str(WHOLE) and f"{WHOLE['gpu0']:>60}" == str(WHOLE["gpu0"]).rjust(60)
    with pytest.raises(jouleprof.Unavailable, match="dram"):
        f"{WHOLE['dram']:.1f}"


def test_a_figure_that_is_absent_is_no_number():
    nothing = measurement(absent(GPU0))
    assert (nothing.joules, nothing.watts, nothing.kwh) == (None,) * 3
    for figure in (nothing, nothing["gpu0"]):
        with pytest.raises(jouleprof.Unavailable, match="gpu0"):
            float(figure)


def test_as_a_dictionary_it_can_be_json():
    found = json.loads(json.dumps(WHOLE.to_dict()))
    assert (found["name"], found["seconds"], found["joules"], found["watts"]) == ("epoch", 2.0, 840, 420)
    assert (found["low"], found["high"], found["provenance"]) == (776, 904, "estimated")
    assert list(found["devices"]) == list(WHOLE)
    assert found["devices"]["gpu0"]["joules"] == 500 and found["devices"]["gpu0"]["domain"] == "gpu0"
    assert found["devices"]["dram package-0"]["joules"] is None
    assert found["devices"]["dram package-0"]["reason"] == "no readable sensor"


def test_mig_devices_are_part_of_their_board():
    mig = dataclasses.replace(GPU0, device="mig0", uuid="MIG-x", index=None)
    assert measurement(energy(GPU0, 10), energy(mig, 5)).total.joules == 10


def test_pickled_and_equal():
    assert pickle.loads(pickle.dumps(WHOLE)) == WHOLE


def test_text():
    assert _text.joules(12344) == "12.34 kJ"
    assert _text.joules(0.0005) == "500.0 uJ"
    assert _text.interval(100, 5) == "±5.0 %"
    assert _text.interval(1, 5) == "±5.000 J"
    text = str(WHOLE)
    assert "unavailable" in text and "no readable sensor" in text and "ESTIMATED" in text
    assert repr(WHOLE) == ("<Measurement epoch: 2.000 s (host edges): 840.0 J ±7.6 %, ESTIMATED: "
                           "gpu0 + gpu1 + package-0, without dram package-0>")
    assert len(repr(WHOLE).splitlines()) == 1


def test_notebooks_show_a_table_in_which_names_are_text():
    hostile = dataclasses.replace(WHOLE, name="<script>&\"")
    text = hostile._repr_html_()
    assert "<script>" not in text and "&lt;script&gt;&amp;&quot;" in text
    assert text.count("<tr>") == 1 + len(WHOLE.keys()) + 1
    for figure in ("500.0 J", "±5.0 %", "ESTIMATED", "unavailable", "no readable sensor"):
        assert figure in text


def test_costs_keep_their_source():
    factors = jouleprof.Factors(source="bill of May", price_per_kwh=0.3, currency="EUR",
                                grams_co2e_per_kwh=400)
    cost = measurement(energy(GPU0, 3.6e6, 3.6e5)).cost(factors)
    assert (cost.kwh, cost.price, cost.currency, cost.grams_co2e) == (1, 0.3, "EUR", 400)
    assert cost.price_error == pytest.approx(0.03)
    assert "bill of May" in str(cost) and "EUR" in str(cost)
    wide = measurement(energy(GPU0, 3.6e6, 7.2e6)).cost(factors)
    assert "0.3000 EUR, 400.0 g CO2e ±7.200 MJ" in str(wide)  # of the energy, as in its own text


@pytest.mark.parametrize("wrong", [
    {"source": ""}, {"source": "x"}, {"source": "x", "price_per_kwh": 1},
    {"source": "x", "currency": "EUR", "grams_co2e_per_kwh": 1},
])
def test_factors_without_what_they_need(wrong):
    with pytest.raises(jouleprof.InvalidArgument):
        jouleprof.Factors(**wrong)


def test_the_source_is_mandatory():
    with pytest.raises(TypeError):
        jouleprof.Factors(price_per_kwh=1, currency="EUR")


def test_ranks_gains_add_up_and_repeatabilities_in_quadrature():
    # error 5 = gain 4 and repeatability 3
    total = total_of_ranks([energy(GPU0, 100, 5, 3), energy(GPU1, 200, 5, 3)])
    assert total.joules == 300
    assert total.repeatability == pytest.approx(math.hypot(3, 3), abs=2e-6)
    assert total.error == pytest.approx(math.hypot(8, math.hypot(3, 3)), abs=2e-6)
    assert total_of([energy(GPU0, 100, 5, 3), energy(GPU1, 200, 5, 3)]).error == 10


def test_ranks_count_a_device_once():
    first = measurement(energy(GPU0, 100), energy(CPU, 20, 0, 0, "estimated"), time=2.0)
    second = measurement(energy(GPU1, 200), energy(CPU, 21, 0, 0, "estimated"), time=2.5)
    one_host = ranks.combined([("a", first), ("a", second)])
    assert one_host.total.joules == 320
    assert one_host.time == 2.5
    assert one_host.total.provenance == "estimated"
    two_hosts = ranks.combined([("a", first), ("b", second)])
    assert two_hosts.total.joules == 341
    assert two_hosts["b:gpu1"].joules == 200


def test_ranks_need_torch_distributed(monkeypatch):
    monkeypatch.delitem(__import__("sys").modules, "torch", raising=False)
    with pytest.raises(jouleprof.Unavailable, match="distributed"):
        ranks.sum_over_ranks(WHOLE)


def test_errors_are_one_tree():
    for kind in (jouleprof.InvalidArgument, jouleprof.Unavailable, jouleprof.NotFound,
                 jouleprof.Timeout, jouleprof.PermissionDenied, jouleprof.Corrupt):
        assert issubclass(kind, jouleprof.Error)
    assert issubclass(jouleprof.InvalidArgument, ValueError)
    assert issubclass(jouleprof.Unavailable, RuntimeError)


def test_an_energy_without_a_lost_device_has_no_upper_bound():
    found = {"energy_joules": 600.0, "interval_joules": [570.0, None], "repeatability_joules": 1.0,
             "provenance": "measured", "is_partial": True, "without": [{"device": "gpu0", "reason": "unavailable"}]}
    partial = Energy.of_json(None, found)
    assert (partial.low, partial.high, partial.error) == (570, None, None) and "lower bound" in partial.reason
    assert repr(partial).startswith("<Energy total: at least 600.0 J -5")
    both = total_of([partial, partial])
    assert (both.joules, both.low, both.high) == (1200, 1140, None) and both.is_partial
    assert Power.mean_of(partial, 2).high is None
