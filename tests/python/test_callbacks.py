"""Callbacks, on base classes that do as little as the real ones. test_trainers.py has the real ones."""

import multiprocessing
import pickle
import subprocess
import sys
import time
import types

import pytest

import jouleprof
import jouleprof.callbacks
from conftest import CONSTANT
from fake_frameworks import Trainer, lightning_trainer
from jouleprof._live import default

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
    # In a process of its own: other tests of this one import the frameworks.
    names = subprocess.run([sys.executable, "-c", "import sys, jouleprof.callbacks; print(*sys.modules)"],
                           stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert "jouleprof.callbacks" in names
    assert not {"jouleprof.callbacks.huggingface", "transformers", "lightning", "torch"} & set(names)
    with pytest.raises(AttributeError):
        jouleprof.callbacks.KerasCallback


def test_hugging_face(gpu, fake):
    fake("transformers", "TrainerCallback", "huggingface")
    callback = jouleprof.callbacks.HuggingFaceCallback(gpu, steps=True, factors=FACTORS)
    trainer = Trainer([callback])
    trainer.train()
    entries = trainer.log_history
    epoch = next(e for e in entries if "energy/epoch_joules" in e)
    (m,) = callback.epochs
    assert epoch["energy/epoch_joules"] == m.total.joules
    assert m.total.low == epoch["energy/epoch_joules_low"] <= epoch["energy/epoch_joules_high"]
    assert epoch["energy/epoch_gpu0_joules"] == m["gpu0"].joules
    assert epoch["energy/epoch_grams_co2e"] == m.cost(FACTORS).grams_co2e
    assert epoch["energy/epoch_is_measured"] == 0  # it is simulated
    assert any("energy/step_joules" in e for e in entries) and any("energy/train_joules" in e for e in entries)
    assert gpu.total("step").count == 1
    trainer.train()  # anew
    assert len(callback.epochs) == 1 and callback.epochs[0] != m


def test_an_epoch_that_ended_before_a_failure_is_kept(gpu, fake):
    fake("transformers", "TrainerCallback", "huggingface")
    callback = jouleprof.callbacks.HuggingFaceCallback(gpu)
    trainer = Trainer([callback])
    callback.on_epoch_end, ended = (lambda *a, **k: (ended(*a, **k), 1 / 0)), callback.on_epoch_end
    with pytest.raises(ZeroDivisionError):
        trainer.train()
    assert [m.name for m in callback.epochs] == ["epoch"]
    assert [m.name for m in callback.epochs] == ["epoch"]


def test_an_epoch_is_logged_at_its_own_step(gpu, fake):
    """It is known later, in the middle of the next one."""
    fake("transformers", "TrainerCallback", "huggingface")

    class Placing(Trainer):
        def call(self, event, **details):
            super().call(event, **details)
            if event == "epoch_end":  # a second epoch of one long step
                self.state.epoch = 1
                super().call("epoch_begin")
                super().call("step_begin")
                time.sleep(0.6)
                self.state.global_step, self.state.epoch = 7, 1.5
                super().call("step_end")
                assert (self.state.global_step, self.state.epoch) == (7, 1.5)
                self.state.global_step, self.state.epoch = 9, 2
                super().call("epoch_end")

    trainer = Placing([jouleprof.callbacks.HuggingFaceCallback(gpu)])
    trainer.train()
    of_epochs = [i for i, metrics in enumerate(trainer.log_history) if "energy/epoch_joules" in metrics]
    assert [trainer.places[i] for i in of_epochs] == [(1, 0), (9, 2)]
    assert of_epochs[0] < len(trainer.log_history) - 1


def test_the_trainers_own_entries_are_whole(gpu, fake):
    """An entry clears should_log, and a derived trainer may empty there what it has gathered for its own."""
    fake("transformers", "TrainerCallback", "huggingface")

    class Gathering(Trainer):
        gathered = 0

        def log(self, metrics):
            super().log({**metrics, "gathered": self.gathered})
            self.gathered = 0

        def call(self, event, **details):
            super().call(event, **details)
            if event == "step_end":
                time.sleep(0.6)  # its figure is known then
                self.gathered, self.control.should_log = 7, True
                super().call("step_begin")
                super().call("step_end")
                assert "energy/step_joules" in self.log_history[-1]
                if self.control.should_log:
                    self.log({"loss": 1})

    trainer = Gathering([jouleprof.callbacks.HuggingFaceCallback(gpu)])
    trainer.train()
    assert [entry for entry in trainer.log_history if "gathered" in entry] == [{"loss": 1, "gathered": 7}]


def test_each_data_set_of_an_evaluation_has_its_energy(gpu, fake):
    fake("transformers", "TrainerCallback", "huggingface")
    callback = jouleprof.callbacks.HuggingFaceCallback(gpu)
    trainer = Trainer([callback])
    took = {}

    class Evaluating(Trainer):
        def call(self, event, **details):
            self.control.should_evaluate = event == "step_end"
            super().call(event, **details)
            if event == "step_end":
                for name, seconds in (("first", 0.1), ("second", 0.3)):
                    begin = time.monotonic()
                    time.sleep(seconds)
                    took[name] = time.monotonic() - begin
                    super().call("evaluate", metrics={f"eval_{name}_loss": 1, f"eval_{name}_runtime": seconds})

    trainer = Evaluating([callback])
    trainer.train()
    found = {name: value for entry in trainer.log_history for name, value in entry.items()}
    assert found["energy/evaluation_first_joules"] == pytest.approx(250 * took["first"], rel=0.15)
    assert found["energy/evaluation_second_joules"] == pytest.approx(250 * took["second"], rel=0.1)
    assert "energy/evaluation_joules" not in found


def test_an_evaluation_after_a_training_that_failed_ends_no_window_of_it(gpu, fake):
    fake("transformers", "TrainerCallback", "huggingface")

    class Failing(Trainer):
        def call(self, event, **details):
            self.control.should_evaluate = event == "step_end"
            super().call(event, **details)
            if event == "step_end":
                raise ZeroDivisionError

        def evaluate(self):
            super().call("evaluate", metrics={"eval_runtime": 0.1})

    callback = jouleprof.callbacks.HuggingFaceCallback(gpu)
    trainer = Failing([callback])
    with pytest.raises(ZeroDivisionError):
        trainer.train()
    trainer.evaluate()
    trainer.evaluate()
    with pytest.raises(jouleprof.NotFound):
        gpu.total("evaluation")
    assert not callback._training._open


def test_an_entry_of_the_program_does_not_end_the_training(gpu, fake):
    """The last entry of a trainer has its run time, too."""
    fake("transformers", "TrainerCallback", "huggingface")
    known = {}

    class Logging(Trainer):
        def call(self, event, **details):
            if event in ("step_end", "train_end"):
                time.sleep(0.1)
                known[event] = [name for entry in self.log_history for name in entry]
            super().call(event, **details)
            if event == "step_begin":
                super().call("log", logs={"train_loss": 1.0})
            if event == "epoch_end":
                super().call("log", logs={"train_loss": 1.0, "train_runtime": 2.0})

    Logging([jouleprof.callbacks.HuggingFaceCallback(gpu)]).train()
    assert "energy/train_joules" not in known["step_end"] and "energy/train_joules" in known["train_end"]


def test_an_evaluation_before_the_first_step_has_its_energy(gpu, fake):
    fake("transformers", "TrainerCallback", "huggingface")

    class Evaluating(Trainer):
        args = types.SimpleNamespace(eval_on_start=True)

        def call(self, event, **details):
            super().call(event, **details)
            if event == "train_begin":
                time.sleep(0.2)
                super().call("evaluate", metrics={"eval_runtime": 0.2})

    trainer = Evaluating([jouleprof.callbacks.HuggingFaceCallback(gpu)])
    trainer.train()
    (found,) = [entry for entry in trainer.log_history if "energy/evaluation_joules" in entry]
    assert found["energy/evaluation_seconds"] == pytest.approx(0.2, abs=0.1)


def test_a_step_never_waits_for_its_figure(gpu, fake, monkeypatch):
    fake("transformers", "TrainerCallback", "huggingface")
    callback = jouleprof.callbacks.HuggingFaceCallback(gpu)
    waited = []
    real = jouleprof.Window.wait
    monkeypatch.setattr(jouleprof.Window, "wait", lambda self, timeout=None: waited.append(timeout) or real(self, timeout))
    trainer = Trainer([callback])
    call, during = trainer.call, {}

    def watch(event, **details):
        before = len(waited)
        call(event, **details)
        during.setdefault(event, []).extend(waited[before:])

    monkeypatch.setattr(trainer, "call", watch)
    trainer.train()
    assert during["step_end"] == [] == during["epoch_begin"]
    assert None in during["train_end"]


@pytest.mark.parametrize("package", ["lightning.pytorch", "pytorch_lightning"])
def test_lightning(gpu, fake, monkeypatch, package):
    if package == "pytorch_lightning":
        monkeypatch.setitem(sys.modules, "lightning", None)
    fake(package, "Callback", "lightning")
    callback = jouleprof.callbacks.LightningCallback(gpu)
    Trainer([callback]).fit()
    assert [m.name for m in callback.epochs] == ["epoch"]


class Lightning:
    """Its trainer, as far as the callback sees it."""

    def __init__(self, callback):
        self.logged = {}
        self._callback = callback
        self._module = types.SimpleNamespace(log=lambda name, value, **options: self.logged.update({name: value}))
        self._trainer = lightning_trainer()

    def call(self, *events, arguments=()):
        for event in events:
            getattr(self._callback, f"on_{event}")(self._trainer, self._module, *arguments)

    def step(self, is_logged=False, accumulates=False):
        self._trainer._logger_connector.should_update_logs = is_logged
        self._trainer.fit_loop._should_accumulate = lambda: accumulates
        self.call("train_batch_start", arguments=[None, 0])
        self.call("train_batch_end", arguments=[None, None, 0])


@pytest.mark.parametrize("kind", ["validation", "test"])
def test_lightning_measures_anew_after_a_failure(gpu, fake, kind):
    fake("lightning.pytorch", "Callback", "lightning")
    lightning = Lightning(jouleprof.callbacks.LightningCallback(gpu))
    lightning.call(f"{kind}_start")
    time.sleep(0.5)  # an exception
    lightning.call(f"{kind}_start", f"{kind}_epoch_end")
    assert lightning.logged[f"energy/{kind}_seconds"] < 0.4


def test_lightning_validates_after_a_training_that_failed(gpu, fake):
    fake("lightning.pytorch", "Callback", "lightning")
    lightning = Lightning(jouleprof.callbacks.LightningCallback(gpu))
    lightning.call("train_start", "train_epoch_start")
    lightning.call("exception", arguments=[KeyboardInterrupt()])
    lightning.call("validation_start", "validation_epoch_end")
    assert "energy/validation_joules" in lightning.logged and "energy/epoch_joules" not in lightning.logged


def test_an_epoch_within_which_lightning_resumes_has_the_energy_of_what_was_left(gpu, fake):
    """Lightning starts no epoch then."""
    fake("lightning.pytorch", "Callback", "lightning")
    callback = jouleprof.callbacks.LightningCallback(gpu, tokens=lambda batch: 8)
    lightning = Lightning(callback)
    lightning.call("train_start")
    lightning.step()
    time.sleep(0.1)
    lightning.step()
    lightning.call("train_epoch_end")
    assert lightning.logged["energy/epoch_seconds"] >= 0.1
    joules = lightning.logged["energy/epoch_joules"]
    assert [m.joules for m in callback.epochs] == [joules]
    assert lightning.logged["energy/epoch_joules_per_token"] == pytest.approx(joules / 16)


@pytest.mark.parametrize("monitor", [types.SimpleNamespace(), types.SimpleNamespace(monitor="energy/epoch_joules"),
                                     types.SimpleNamespace(monitor="energy/epoch_joules", strict=False)])
def test_no_figure_of_an_epoch_before_is_kept_in_lightning(machine, fake, monitor):
    """Where a GPU was lost. Only one that a strict callback would end the training without stays."""
    fake("lightning.pytorch", "Callback", "lightning")
    gpu = machine.gpus(CONSTANT, faults={"kind": "gpu_lost", "at_seconds": 5}).monitor("gpu0")
    lost = time.monotonic() + 5.2
    lightning = Lightning(jouleprof.callbacks.LightningCallback(gpu))
    lightning._trainer.callback_metrics = lightning.logged
    lightning._trainer.callbacks = [monitor]
    lightning.call("train_start", "train_epoch_start")
    time.sleep(0.1)
    lightning.call("train_epoch_end")
    assert {"energy/epoch_joules", "energy/epoch_gpu0_joules"} <= set(lightning.logged)
    time.sleep(max(0.0, lost - time.monotonic()))
    lightning.call("train_epoch_start")
    if hasattr(monitor, "monitor") and not hasattr(monitor, "strict"):
        with pytest.warns(RuntimeWarning, match="no energy/epoch_joules now.*strict=False"):
            lightning.call("train_epoch_end")
        assert set(lightning.logged) == {"energy/epoch_joules", "energy/epoch_seconds"}
    else:
        lightning.call("train_epoch_end")
        assert set(lightning.logged) == {"energy/epoch_seconds"}


def test_lightning_need_not_log_steps(gpu, fake):
    fake("lightning.pytorch", "Callback", "lightning")
    lightning = Lightning(jouleprof.callbacks.LightningCallback(gpu))
    lightning.call("train_start", "train_epoch_start")
    lightning.step()
    lightning.call("train_epoch_end")
    assert "energy/step_joules" in lightning.logged


def test_lightning_logs_steps_where_its_loggers_write(gpu, fake):
    """They count batches over all epochs, and leave out those that only accumulate gradients."""
    fake("lightning.pytorch", "Callback", "lightning")
    callback = jouleprof.callbacks.LightningCallback(gpu)
    lightning = Lightning(callback)
    lightning.call("train_start", "train_epoch_start")
    lightning.step(is_logged=True)
    assert callback._training._ended[0].window.energy
    lightning.step(is_logged=True, accumulates=True)
    assert lightning.logged == {}
    lightning.step(is_logged=True)
    assert "energy/step_joules" in lightning.logged


def test_lightning_logs_the_mean_of_all_steps_that_have_become_known(gpu, fake, monkeypatch):
    fake("lightning.pytorch", "Callback", "lightning")
    from jouleprof.callbacks._training import Training

    known = Training._known
    monkeypatch.setattr(Training, "_known", lambda self, wait: known(self, wait) if wait else [])
    lightning = Lightning(jouleprof.callbacks.LightningCallback(gpu))
    lightning.call("train_start", "train_epoch_start")
    for is_logged in (False, False, True, False):
        lightning.step(is_logged)
        time.sleep(0.02 if is_logged else 0)
    lightning.call("train_epoch_end")
    total = gpu.total("steps")
    assert lightning.logged["energy/step_seconds"] == pytest.approx(total.time / 4)
    assert lightning.logged["energy/step_joules"] == pytest.approx(total.total.joules / 4, rel=1e-3)


def test_a_process_of_the_trainer_has_a_monitor_of_its_own(machine, fake):
    """Trainers fork after their callbacks were made, and spawn with pickled ones."""
    fake("transformers", "TrainerCallback", "huggingface")
    machine.gpus(CONSTANT)
    callback = jouleprof.callbacks.HuggingFaceCallback()
    Trainer([callback]).train()
    forked = multiprocessing.get_context("fork").Process(target=Trainer([callback]).train)
    forked.start()
    forked.join(60)
    assert forked.exitcode == 0
    Trainer([pickle.loads(pickle.dumps(callback))]).train()
    default.monitor().close()


@pytest.mark.parametrize("fails", ["closed", "elsewhere"])
def test_a_monitor_that_is_of_no_use_does_not_end_the_training(gpu, fake, fails):
    fake("transformers", "TrainerCallback", "huggingface")
    callback = jouleprof.callbacks.HuggingFaceCallback(gpu)
    if fails == "closed":
        gpu.close()
    else:
        callback = pickle.loads(pickle.dumps(callback))
    trainer = Trainer([callback])
    with pytest.warns(RuntimeWarning, match="jouleprof: no energy of 'step': .*monitor") as warned:
        with pytest.raises(AssertionError):  # the fake trainer wants a figure
            trainer.train()
    assert trainer.log_history == [] and sum("no energy of" in str(each.message) for each in warned) == 1


def test_a_missing_figure_is_not_logged(machine, fake, monkeypatch):
    fake("transformers", "TrainerCallback", "huggingface")
    monitor = machine.gpus(CONSTANT, faults={"kind": "gpu_lost", "at_seconds": 0.3}).monitor("gpu0")
    time.sleep(0.8)
    callback = jouleprof.callbacks.HuggingFaceCallback(monitor)
    logged = []
    trainer = Trainer([callback])
    with pytest.raises(AssertionError):  # the fake trainer wants a figure
        trainer.train()
    logged = trainer.log_history
    assert {name for e in logged for name in e} == {
        "energy/step_seconds", "energy/epoch_seconds", "energy/train_seconds"}


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


def test_a_power_limit_that_cannot_be_chosen_does_not_end_the_training(gpu, fake, monkeypatch):
    fake("transformers", "TrainerCallback", "huggingface")
    called = []

    class Unlucky:
        def __init__(self, *args, **options):
            pass

        def on_step_end(self):
            raise jouleprof.Unavailable("the energy of a GPU is not available")

        def give_up(self):
            called.append("give_up")

    import jouleprof.callbacks.huggingface as module

    monkeypatch.setattr(module, "PowerLimitOptimizer", Unlucky)
    callback = jouleprof.callbacks.HuggingFacePowerLimitOptimizer(gpu)
    with pytest.warns(RuntimeWarning, match="no power limit was chosen: the energy of a GPU"):
        callback.on_step_end(None, None, None)
    assert called == ["give_up"]
