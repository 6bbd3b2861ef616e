"""Callbacks, on base classes that do as little as the real ones."""

import importlib
import sys
import time
import types

import pytest

import jouleprof
import jouleprof.callbacks

FACTORS = jouleprof.Factors(source="grid", grams_co2e_per_kwh=400)


@pytest.fixture
def fake(monkeypatch):
    """Puts a module with a base class where the framework would be."""

    def put(name, base, callback):
        for depth in range(name.count(".") + 1):
            part = ".".join(name.split(".")[: depth + 1])
            monkeypatch.setitem(sys.modules, part, types.ModuleType(part))
        setattr(sys.modules[name], base, type(base, (), {}))
        monkeypatch.delitem(sys.modules, f"jouleprof.callbacks.{callback}", raising=False)

    yield put
    for name in ("huggingface", "lightning"):
        sys.modules.pop(f"jouleprof.callbacks.{name}", None)


def test_importing_them_imports_no_framework():
    importlib.reload(jouleprof.callbacks)
    assert "jouleprof.callbacks.huggingface" not in sys.modules
    with pytest.raises(AttributeError):
        jouleprof.callbacks.KerasCallback


def test_hugging_face(gpu, fake):
    fake("transformers", "TrainerCallback", "huggingface")
    callback = jouleprof.callbacks.HuggingFaceCallback(gpu, steps=True, factors=FACTORS)
    state = types.SimpleNamespace(epoch=0.0, global_step=0, log_history=[])
    for epoch in range(2):
        callback.on_epoch_begin(None, state, None, model=None)
        assert len(state.log_history) == epoch
        for _ in range(3):
            callback.on_step_begin(None, state, None)
            time.sleep(0.01)
            state.global_step += 1
            callback.on_step_end(None, state, None)
        state.epoch += 1
        callback.on_epoch_end(None, state, None)
    callback.on_train_end(None, state, None)
    first, second, steps = state.log_history
    assert [(e["epoch"], e["step"]) for e in (first, second)] == [(1, 3), (2, 6)]
    m = callback.epochs[1]
    assert second["energy/epoch_joules"] == m.total.joules
    assert m.total.low == second["energy/epoch_joules_low"] <= second["energy/epoch_joules_high"]
    assert second["energy/epoch_gpu0_joules"] == m["gpu0"].joules
    assert second["energy/epoch_grams_co2e"] == m.cost(FACTORS).grams_co2e
    assert 0 < steps["energy/step_joules"] < second["energy/epoch_joules"]


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_lightning(gpu, fake, monkeypatch, package):
    if package == "pytorch_lightning":
        monkeypatch.setitem(sys.modules, "lightning", None)
    fake(package, "Callback", "lightning")
    callback = jouleprof.callbacks.LightningCallback(gpu)
    logged = []
    logger = types.SimpleNamespace(log_metrics=lambda m, step: logged.append((step, m)))
    trainer = types.SimpleNamespace(global_step=0, loggers=[logger])
    for _ in range(2):
        callback.on_train_epoch_start(trainer, None)
        callback.on_train_batch_start(trainer, None, None, 0)
        time.sleep(0.02)
        trainer.global_step += 1
        callback.on_train_batch_end(trainer, None, None, None, 0)
        callback.on_train_epoch_end(trainer, None)
    callback.on_train_end(trainer, None)
    assert [step for step, _ in logged] == [1, 2]
    assert logged[0][1]["energy/epoch_joules"] == callback.epochs[0].total.joules
    assert "energy/step_joules" not in logged[1][1]


def test_a_missing_figure_is_not_logged(machine, fake, monkeypatch):
    from conftest import CONSTANT

    fake("transformers", "TrainerCallback", "huggingface")
    monitor = machine.gpus(CONSTANT, faults={"kind": "gpu_lost", "at_seconds": 0.3}).monitor("gpu0")
    time.sleep(0.8)
    callback = jouleprof.callbacks.HuggingFaceCallback(monitor)
    state = types.SimpleNamespace(epoch=1.0, global_step=1, log_history=[])
    callback.on_epoch_begin(None, state, None)
    callback.on_epoch_end(None, state, None)
    callback.on_train_end(None, state, None)
    assert set(state.log_history[0]) == {"energy/epoch_seconds", "epoch", "step"}


def test_hugging_face_power_limits(gpu, fake, monkeypatch):
    fake("transformers", "TrainerCallback", "huggingface")
    called = []

    class Recorder:
        def __init__(self, *args, **options):
            called.append((args[0] is gpu, args[1:], options))

        def __getattr__(self, name):
            return lambda: called.append(name)

    import jouleprof.callbacks.huggingface as module

    monkeypatch.setattr(module, "PowerLimitOptimizer", Recorder)
    callback = jouleprof.callbacks.HuggingFacePowerLimitOptimizer(gpu, "time", pl_step=50)
    for name in ("on_epoch_begin", "on_step_begin", "on_step_end", "on_epoch_end", "on_train_end"):
        getattr(callback, name)(None, None, None, model=None)
    assert called == [(True, ("time",), {"pl_step": 50}), "on_epoch_begin", "on_step_begin",
                      "on_step_end", "on_epoch_end", "close"]
