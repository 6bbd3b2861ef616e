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
    def __init__(self, callbacks=(), **options):
        self.callbacks = callbacks

    def train(self):
        state = types.SimpleNamespace(epoch=0, global_step=0, log_history=[])
        for callback in self.callbacks:
            callback.on_epoch_begin(None, state, None)
            callback.on_epoch_end(None, state, None)
            callback.on_train_end(None, state, None)
            assert state.log_history

    def fit(self, *args):
        trainer = types.SimpleNamespace(global_step=0, loggers=[])
        for callback in self.callbacks:
            callback.on_train_epoch_start(trainer, None)
            callback.on_train_epoch_end(trainer, None)
            callback.on_train_end(trainer, None)
