"""Stands in for the packages that the examples of the documentation use."""

import sys
import types


def install(monkeypatch, torch):
    """Puts them where `import` finds them, for one test."""
    monkeypatch.setitem(sys.modules, "torch", torch)
    torch.distributed = types.ModuleType("torch.distributed")
    torch.distributed.is_available = lambda: True
    torch.distributed.is_initialized = lambda: True
    torch.distributed.get_rank = lambda group=None: 0
    torch.distributed.broadcast_object_list = lambda objects, src=0, group=None: None
    torch.distributed.get_world_size = lambda group=None: 1

    def gather(gathered, mine, group=None):
        gathered[:] = [mine]

    torch.distributed.all_gather_object = gather
    monkeypatch.setenv("LOCAL_RANK", "0")

    transformers = types.ModuleType("transformers")
    transformers.TrainerCallback = type("TrainerCallback", (), {})
    transformers.Trainer = Trainer
    lightning = types.ModuleType("lightning")
    lightning.pytorch = types.ModuleType("lightning.pytorch")
    lightning.pytorch.Callback = type("Callback", (), {})
    lightning.pytorch.Trainer = Trainer
    for module in (transformers, lightning, lightning.pytorch):
        monkeypatch.setitem(sys.modules, module.__name__, module)


class Trainer:
    """Calls a callback as the trainers of both frameworks do, for one epoch of one step."""

    args = None

    def __init__(self, callbacks=(), **options):
        self.callbacks = callbacks

    def train(self):
        self.log_history = []
        self.places = []
        self.callback_handler = types.SimpleNamespace(callbacks=self.callbacks)
        self.state = types.SimpleNamespace(epoch=0, global_step=0, num_input_tokens_seen=0)
        self.control = types.SimpleNamespace(should_log=True, should_evaluate=False, should_save=False)
        for event in ("train_begin", "epoch_begin", "step_begin", "step_end", "epoch_end", "train_end"):
            self.state.global_step += event == "step_end"
            self.call(event)
        assert any("energy/epoch_joules" in entry for entry in self.log_history)

    def log(self, metrics):
        self.log_history.append(metrics)
        self.places.append((self.state.global_step, self.state.epoch))
        self.control.should_log = False

    def call(self, event, **details):
        for callback in self.callbacks:
            call = getattr(callback, f"on_{event}", None)
            if call is not None:
                call(self.args, self.state, self.control, **details)

    def fit(self, *args):
        logged = {}
        module = types.SimpleNamespace(log=lambda name, value, **options: logged.update({name: value}))
        trainer = lightning_trainer()
        for callback in self.callbacks:
            callback.on_train_start(trainer, module)
            callback.on_train_epoch_start(trainer, module)
            callback.on_train_batch_start(trainer, module, None, 0)
            callback.on_train_batch_end(trainer, module, None, None, 0)
            callback.on_train_epoch_end(trainer, module)
        assert "energy/epoch_joules" in logged


def lightning_trainer():
    """Lightning's, as far as the callback sees it; set `should_update_logs` where its loggers would write."""
    return types.SimpleNamespace(
        sanity_checking=False, loggers=[], callback_metrics={}, progress_bar_metrics={}, callbacks=[],
        lr_scheduler_configs=[],
        _logger_connector=types.SimpleNamespace(should_update_logs=False),
        fit_loop=types.SimpleNamespace(_should_accumulate=lambda: False))
