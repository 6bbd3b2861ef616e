"""Results of LayerProfiler and KernelProfiler, from the devices of `jouleprof report --by --json`."""

import csv

import pytest
from jouleprof.torch import _inputs, _names, _tables


def row(name, energy, **more):
    interval = None if energy is None else [energy * 0.9, energy * 1.1]
    return {"number": 0, "parent": None, "name": name, "detail": "Linear [2, 4] float32",
            "calls": 20, "launches": 40, "busy_seconds": 0.02, "provenance": "estimated",
            "energy_joules": energy, "interval_joules": interval, "inclusive_joules": energy,
            "inclusive_interval_joules": interval, "mean_watts": 300.0, "resolvable": True,
            "parameters": 20, "macs": None, "reason": None, **more}


def device(*rows, **more):
    return {"domain": "gpu", "device": "gpu0", "name": "A GPU", "provenance": "measured",
            "kernels_joules": 18.0, "idle_between_launches_joules": 1.0, "unattributed_joules": 1.0,
            "idle_watts": 100.0, "measured_interval_joules": [90.0, 110.0], "method": "regression", "rows": list(rows),
            "warnings": [], **more}


def test_figures_are_per_run():
    results = _tables.LAYERS.results([device(row("fc", 12.0))], 10, {"fc": 500})
    (fc,) = results
    assert fc["energy_j"] == pytest.approx(1.2)
    assert (fc["energy_low_j"], fc["energy_high_j"]) == pytest.approx((1.08, 1.32))
    assert fc["duration_ms"] == pytest.approx(2.0)
    assert fc["calls"] == 2 and fc["launches"] == 4
    assert fc["macs"] == 500
    assert fc["energy_per_mac_j"] == pytest.approx(1.2 / 1000)
    stats = _tables.stats([device(row("fc", 12.0))], 10, 0.5, 0.0, results)
    assert stats["active_j"] == pytest.approx(2.0)
    assert stats["idle_j"] == pytest.approx(5.0)
    assert stats["energy_j"] == pytest.approx(7.0)
    assert stats["avg_power_w"] == pytest.approx(140.0)


def test_what_could_not_be_had_is_absent(tmp_path):
    rows = [row("fc", None, resolvable=None, reason="ran too short"), row("head", 3.0)]
    results = _tables.LAYERS.results([device(*rows)], 10, {})
    assert results[0]["energy_j"] is None and results[0]["energy_per_mac_j"] is None
    path, top = _tables.LAYERS.save(tmp_path / "layers", results)
    with open(path, newline="", encoding="utf-8") as file:
        first, second = csv.DictReader(file)
    assert first["energy_j"] == first["energy_low_j"] == first["start_power_w"] == ""
    assert first["reason"] == "ran too short"
    assert second["energy_j"] == "0.3"
    assert top.name == "layers_top10_energy.csv"
    with open(top, newline="", encoding="utf-8") as file:
        assert [line["layer_name"] for line in csv.DictReader(file)] == ["head"]


def test_columns_that_others_have_come_first():
    assert _tables.LAYERS.columns[:9] == [
        "layer_name", "exec_id", "start_time", "end_time", "duration_ms", "start_power_w",
        "end_power_w", "avg_power_w", "energy_j"]
    assert _tables.KERNELS.columns[:5] == [
        "kernel_name", "exec_id", "duration_ms", "avg_power_w", "energy_j"]


def test_names_with_commas_and_quotes_are_kept(tmp_path):
    name = 'void f<float, "x">(int, long)'
    path, _ = _tables.KERNELS.save(
        tmp_path / "kernels.csv", _tables.KERNELS.results([device(row(name, 1.0))], 1, {}))
    with open(path, newline="", encoding="utf-8") as file:
        assert next(csv.DictReader(file))["kernel_name"] == name


def test_the_summary_shows_what_is_not_resolvable():
    results = _tables.LAYERS.results(
        [device(row("fc", 12.0), row("act", 0.1, resolvable=False))], 10, {})
    text = _tables.LAYERS.summary(
        _tables.stats([device()], 10, 0.5, 0.0, results), results, 10, ["too short"])
    assert "LAYER PROFILING SUMMARY" in text and "Device: A GPU" in text
    assert "Total Execution Time: 50.00 ms" in text
    assert "not resolvable" in text and "Warning: too short" in text
    assert "1.200 J" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["layer_name", "exec_id"] in [words[:2] for words in lines]
    assert ["fc", "0"] in [words[:2] for words in lines] and ["act", "1"] in [words[:2] for words in lines]


def test_a_simulated_device_makes_the_total_simulated():
    results = _tables.LAYERS.results([device(row("fc", 1.0), provenance="simulated")], 1, {})
    for others, worst in (((), "simulated"), (("measured", "estimated"), "simulated"),
                          (("unavailable",), "unavailable")):
        devices = [device(provenance=word) for word in ("simulated", *others)]
        assert _tables.stats(devices, 1, 0.5, 0.0, results)["provenance"] == worst


def both():
    """A GPU's rows and a CPU's, of the same layers."""
    cpu = device(row("fc", 40.0), domain="cpu", device="package-0", name="A CPU",
                 kernels_joules=40.0, idle_watts=None, provenance="estimated")
    return [device(row("fc", 12.0), row("act", 3.0)), cpu]


def test_rows_of_the_cpu_are_in_addition_to_the_gpus(tmp_path):
    results = _tables.LAYERS.results(both(), 10, {})
    assert [(r["layer_name"], r["device"]) for r in results] == [
        ("fc", "gpu0"), ("act", "gpu0"), ("fc", "package-0")]
    stats = _tables.stats(both(), 10, 0.5, 0.0, results)
    assert stats["device"] == "A GPU" and stats["provenance"] == "measured"
    assert stats["active_j"] == pytest.approx(2.0) and stats["count"] == 2
    gpu, cpu = _tables.LAYERS.summary(stats, results, 10, []).split("In addition, CPU:")
    assert "1.200 J" in gpu and "4.000 J" not in gpu
    assert "4.000 J" in cpu and "1.200 J" not in cpu
    _, top = _tables.LAYERS.save(tmp_path / "layers.csv", results)
    with open(top, newline="", encoding="utf-8") as file:
        assert [line["energy_j"] for line in csv.DictReader(file)] == ["1.2", "0.3"]


HEAD = "void at::native::vectorized_elementwise_kernel<4, at::native::Functor_"
TAIL = "<float>, std::array<char*, 3ul>, a very long rest of arguments > >" + "x" * 400 + "(int)"


def test_long_kernel_names_are_short_in_the_summary_and_whole_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    names = [HEAD + part + TAIL for part in ("add", "mul")]
    rows = [row(name, 12.0, detail="grid 1024x1x1, block 128x1x1", calls=None) for name in names]
    results = _tables.KERNELS.results([device(*rows)], 10, {})
    assert [result["kernel_name"] for result in results] == names
    text = _tables.KERNELS.summary(_tables.stats([device()], 10, 0.5, 0.0, results), results, 10, [])
    lines = text.split("\n")
    assert max(map(len, lines)) <= 90
    below = [line for line in lines if line.endswith("  grid 1024x1x1, block 128x1x1")]
    assert len(set(below)) == 2
    assert "Functor_add" in below[0] and "Functor_mul" in below[1] and "void" not in below[0]
    path, top = _tables.KERNELS.save(tmp_path / "kernels", results)
    for file in (path, top):
        assert all(name in file.read_text() for name in names)


def test_kernel_names_are_shortened_as_by_the_command_line():
    names = ["void f<float>(float*, int (*)(int))", "sgemm_128x64", "(anonymous namespace)::g(int)",
             "memcpy (host to device)", "()", "", "h() const"]
    assert _names.shortened(names, [60] * len(names)) == [
        "f<float>", "sgemm_128x64", "(anonymous namespace)::g", "memcpy (host to device)", "()", "", "h"]
    names = [HEAD + part + TAIL for part in ("add", "mul", "sub")] + ["(" * 500, ")" * 500]
    for width in range(1, 81):
        made = _names.shortened(names, [width] * len(names))
        assert all(len(name) <= width for name in made)
        assert width < 30 or len(set(made[:3])) == 3


def test_idle_that_is_not_known_is_said():
    unknown = device(row("fc", 12.0), domain="cpu", idle_watts=None)
    results = _tables.LAYERS.results([unknown], 10, {})
    stats = _tables.stats([unknown], 10, 0.5, 0.0, results)
    assert stats["idle_j"] is None and stats["energy_j"] == pytest.approx(1.2)
    assert "includes idle energy: idle power is not known" in _tables.LAYERS.summary(stats, results, 10, [])


def test_on_a_cpu_only_layers_count():
    outside = row("(outside of layers)", 5.0)
    shared = device(row("fc", 12.0), row("act", 3.0), outside, domain="cpu", unattributed_joules=70.0)
    results = _tables.LAYERS.results([shared], 10, {})
    stats = _tables.stats([shared], 10, 0.5, 0.0, results)
    assert stats["active_j"] == pytest.approx(1.5)
    assert stats["active_error_j"] == pytest.approx(0.15)
    assert stats["energy_j"] == pytest.approx(1.5 + 5.0)


def test_generation_is_split():
    def of(seconds, active):
        return _tables.stats([device(kernels_joules=active, idle_between_launches_joules=0.0,
                                     unattributed_joules=0.0)], 1, seconds, 0.0, [])

    found = _tables.generation(of(0.1, 10.0), of(1.1, 60.0), 101)
    assert found["prefill_energy_j"] == pytest.approx(20.0)
    assert found["decode_energy_j"] == pytest.approx(150.0)
    assert found["energy_per_token_j"] == pytest.approx(1.5)
    assert found["energy_per_token_error_j"] == pytest.approx(200 ** 0.5 / 100)


class Encoding:
    """As Hugging Face's: no dict, but with keys."""

    def __init__(self, data):
        self._data = data

    def keys(self):
        return self._data.keys()

    def __getitem__(self, key):
        return self._data[key]


@pytest.mark.parametrize("inputs", [
    (1, 2), [1, 2], {"a": 1, "b": 2}, Encoding({"a": 1, "b": 2})])
def test_inputs_of_all_kinds(inputs):
    args, kwargs = _inputs.arguments(inputs)
    assert (lambda a, b: (a, b))(*args, **kwargs) == (1, 2)


def test_a_tensor_is_one_argument():
    assert _inputs.arguments("tensor") == (("tensor",), {})
