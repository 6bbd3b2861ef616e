"""Single executions of layers: exact times, estimated energies (docs/layers.md)."""

import csv
import json
import types

import pytest
from jouleprof.torch import LayerProfiler, KernelProfiler, _executions
from test_torch_profilers import run


def row(name, joules, calls=1, half=0.1, **more):
    return {"layer_name": name, "calls": calls, "inclusive_energy_j": joules, "resolvable": True, "reason": "",
            "inclusive_low_j": None if joules is None else joules * (1 - half),
            "inclusive_high_j": None if joules is None else joules * (1 + half),
            "provenance": "estimated", "device": "gpu0", **more}


def executions(name, *seconds, **more):
    return [{"layer_name": name, "seconds": each, "step": 0, **more} for each in seconds]


def estimated(found, rows):
    means = _executions.means(rows)
    return _executions.estimate(found, lambda each: means.get(each["layer_name"]))


def test_energies_are_in_proportion_to_times_and_sum_to_the_layers_energy():
    found = estimated(executions("fc", 0.1, 0.2, 0.3), [row("fc", 20.0, calls=2)])
    assert [each["energy_j"] for each in found] == pytest.approx([5.0, 10.0, 15.0])
    assert [each["avg_power_w"] for each in found] == pytest.approx([50.0] * 3)
    assert {each["provenance"] for each in found} == {"estimated"} and found[0]["device"] == "gpu0"


def test_the_interval_has_the_error_of_the_mean_and_the_spread_of_the_times():
    same = estimated(executions("fc", 0.2, 0.2, 0.2), [row("fc", 10.0)])
    assert (same[0]["energy_low_j"], same[0]["energy_high_j"]) == pytest.approx((9.0, 11.0))
    # Of three, with 10 % of standard deviation: t = 4.3027.
    other = estimated(executions("fc", 0.18, 0.2, 0.22), [row("fc", 10.0)])
    relative = (0.1 ** 2 + 0.43027 ** 2) ** 0.5
    assert other[2]["energy_high_j"] == pytest.approx(11.0 * (1 + relative))
    assert other[2]["energy_low_j"] == pytest.approx(11.0 * (1 - relative))


@pytest.mark.parametrize("rows, seconds, words", [
    ([row("fc", 10.0, resolvable=False, reason="ran too short")], (0.1, 0.2), "ran too short"),
    ([row("fc", None)], (0.1, 0.2), "not resolvable"),
    ([row("fc", 10.0)], (0.1,), "one execution has no spread"),
    ([], (0.1, 0.2), "did not have this layer"),
    ([row("fc", 10.0)], (0.0, 0.0), "too short to be timed"),
])
def test_what_cannot_be_estimated_is_absent_with_a_reason(rows, seconds, words):
    for each in estimated(executions("fc", *seconds), rows):
        assert each["energy_j"] is each["energy_low_j"] is each["energy_high_j"] is each["avg_power_w"] is None
        assert each["provenance"] == "unavailable" and words in each["reason"]
        assert each["duration_ms"] == each["seconds"] * 1e3


def test_decoding_is_what_a_generation_has_in_addition_to_prefill():
    prefill = [row("fc", 2.0), row("noise", 2.0, half=0.5), row("lost", None)]
    whole = [row("fc", 11.0, calls=10), row("noise", 2.1, calls=10, half=0.5), row("lost", 3.0, calls=10)]
    found = _executions.differences(whole, prefill)
    assert found["fc"].joules == pytest.approx(1.0)
    assert found["fc"].half == pytest.approx((1.1 ** 2 + 0.2 ** 2) ** 0.5 / 9)
    assert found["noise"].joules is None and "less than its error" in found["noise"].reason
    assert found["lost"].joules is None and "not resolvable" in found["lost"].reason


def test_simulated_figures_stay_simulated():
    found = estimated(executions("fc", 0.1, 0.1), [row("fc", 10.0, provenance="simulated")])
    assert {each["provenance"] for each in found} == {"simulated"}
    assert _executions.summary(found)["fc"]["execution_j_provenance"] == "simulated"


def test_the_summary_has_mean_deviation_least_and_greatest():
    fc = estimated(executions("fc", 0.1, 0.2, 0.3), [row("fc", 10.0)])
    lost = estimated(executions("lost", 0.1, 0.2), [row("lost", None)])
    found = _executions.summary([*fc, *lost])
    assert found["fc"]["executions"] == 3
    assert [found["fc"][f"execution_ms_{what}"] for what in ("mean", "std", "min", "max")] == pytest.approx(
        [200.0, 100.0, 100.0, 300.0])
    assert [found["fc"][f"execution_j_{what}"] for what in ("mean", "std", "min", "max")] == pytest.approx(
        [10.0, 5.0, 5.0, 15.0])
    assert found["fc"]["execution_j_provenance"] == "estimated"
    assert found["lost"]["execution_ms_max"] == pytest.approx(200.0)
    assert found["lost"]["execution_j_mean"] is None and found["lost"]["execution_j_provenance"] == "unavailable"


class Gpu:
    """PyTorch with a GPU, as far as Timer uses it. Work is queued: the host's clock does not show its time."""

    def __init__(self):
        self.now = 0.0  # of the GPU
        self.hooks = {"pre": [], "post": []}
        gpu = self

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self, stream):
                assert stream == "stream of cuda:1"
                self.at = gpu.now

            def elapsed_time(self, end):
                return (end.at - self.at) * 1e3

        def register(which):
            def add(hook):
                gpu.hooks[which].append(hook)
                return types.SimpleNamespace(remove=lambda: gpu.hooks[which].remove(hook))
            return add

        self.cuda = types.SimpleNamespace(Event=Event, current_stream=lambda device: f"stream of {device}",
                                          synchronize=lambda device: None)
        self.nn = types.SimpleNamespace(modules=types.SimpleNamespace(module=types.SimpleNamespace(
            register_module_forward_pre_hook=register("pre"), register_module_forward_hook=register("post"))))

    def call(self, module):
        for hook in self.hooks["pre"]:
            hook(module, ())
        for child in module.children:
            self.call(child)
        self.now += module.takes
        for hook in self.hooks["post"]:
            hook(module, (), None)


class Module:
    def __init__(self, takes, *children):
        self.takes = takes
        self.children = children

    def modules(self):
        return [self, *self.children]


def test_times_on_a_gpu_are_those_of_its_events():
    gpu = Gpu()
    fc, act, stranger = Module(0.25), Module(0.5), Module(8.0)
    model = Module(0.125, fc, act, fc)
    names = {id(model): "net", id(fc): "fc", id(act): "act"}
    timer = _executions.Timer(gpu, model, lambda module: names[id(module)], "cuda:1")

    def run():
        gpu.call(stranger)
        gpu.call(model)

    found = timer.time(run, 2)
    assert gpu.hooks == {"pre": [], "post": []}
    assert [each["layer_name"] for each in found] == ["net", "fc", "act", "fc"] * 2
    assert [each["seconds"] for each in found] == pytest.approx([1.125, 0.25, 0.5, 0.25] * 2)
    assert [each["run"] for each in found] == [0] * 4 + [1] * 4
    starts = [each["start_time"] - found[0]["start_time"] for each in found]
    assert starts == pytest.approx([0.0, 0.0, 0.25, 0.75, 9.125, 9.125, 9.375, 9.875])


def test_an_execution_that_raised_is_in_no_row():
    gpu = Gpu()
    fails, works = Module(0.5), Module(0.25)
    model = Module(0.0, fails, works)
    names = {id(model): "net", id(fails): "fails", id(works): "works"}
    timer = _executions.Timer(gpu, model, lambda module: names[id(module)], "cuda:1")

    def run():
        for hook in gpu.hooks["pre"]:
            hook(model, ())
            hook(fails, ())
        gpu.call(works)
        for hook in gpu.hooks["post"]:
            hook(model, (), None)

    assert [each["layer_name"] for each in timer.time(run, 2)] == ["net", "works"] * 2


def test_power_at_the_ends_is_the_nearest_reading_of_the_device():
    readings = object.__new__(_executions.Readings)
    readings._kept = {"gpu0": [(10.2, 300.0), (10.0, 100.0), (10.1, 200.0)]}  # the clock was set back
    at = {"start_time": 10.04, "end_time": 10.16}
    each, other, late = readings.add_to([{"device": "gpu0", **at}, {"device": None, **at},
                                         {"device": "gpu0", "start_time": 11.1, "end_time": 11.3}])
    assert (each["start_power_w"], each["end_power_w"]) == (100.0, 300.0)
    assert other["start_power_w"] is other["end_power_w"] is None
    assert (late["start_power_w"], late["end_power_w"]) == (300.0, None)


def test_executions_of_a_real_model(tmp_path):
    found, done = run("executions", tmp_path)
    assert found["layers"] == ["Sequential", "0", "1", "2"] * 5 and found["runs"] == [n for n in range(5) for _ in "abcd"]
    assert "20 executions saved to layer_power_profile_executions.csv (energies are estimated)\n" in done.stdout
    with open(tmp_path / "layer_power_profile_executions.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[:9] == ["layer_name", "exec_id", "start_time", "end_time", "duration_ms", "start_power_w",
                                 "end_power_w", "avg_power_w", "energy_j"]
    assert all(float(each["start_power_w"]) > 0 and float(each["end_power_w"]) > 0 for each in rows)
    assert [int(each["exec_id"]) for each in rows] == list(range(20))
    for whole, *parts in zip(*(rows[n::4] for n in range(4))):  # each run: the model has its parts
        assert float(whole["duration_ms"]) >= sum(float(part["duration_ms"]) for part in parts)
        assert all(float(whole["start_time"]) <= float(part["start_time"]) <= float(whole["end_time"]) for part in parts)
    assert found["hooks"] == 0
    for name, mean in found["means"].items():  # on average an execution has the layer's energy
        own = [float(each["energy_j"]) for each in rows if each["layer_name"] == name and each["energy_j"]]
        assert mean is None or sum(own) / 5 == pytest.approx(mean)
    assert any(mean is not None for mean in found["means"].values())


def test_steps_of_a_generation(tmp_path):
    found, _ = run("generation", tmp_path)
    assert found["steps"] == [[0, 1, 2, 3]] * 4  # of each run: prefill, and three tokens


def test_executions_of_what_cannot_be_timed_are_refused(tmp_path):
    assert "torch.compile" in run("compiled_executions", tmp_path)[0]
    model = types.SimpleNamespace(parameters=list)
    with pytest.raises(ValueError, match="LayerProfiler"):
        KernelProfiler(model, tool="unused").profile(None, executions=True)
