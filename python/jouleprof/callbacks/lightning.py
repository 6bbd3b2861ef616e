"""Energy of a training for Lightning's Trainer."""

from __future__ import annotations

import warnings
from typing import Any, Callable

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback

from .._factors import Factors
from .._live.monitor import Monitor
from .._measurement import Measurement
from ._training import Training

_SHOWN = ("energy/epoch_joules", "energy/step_joules")  # in the progress bar


class LightningCallback(Callback):
    """`Trainer(callbacks=[LightningCallback()])`.

    Logs joules per step, epoch, validation, test and token with `pl_module.log`: into
    `trainer.callback_metrics`, where EarlyStopping and ModelCheckpoint find them, the progress bar and the
    loggers. The end of an epoch waits for its figure, about 0.15 s, which count to no epoch. `epochs` has
    the whole measurements. steps: also a window for each single step. tokens: a function that returns the
    number of tokens of a batch.
    """

    def __init__(self, monitor: Monitor | None = None, steps: bool = False, factors: Factors | None = None,
                 tokens: Callable[[Any], int] | None = None) -> None:
        super().__init__()
        self._training = Training(monitor, factors)
        self._steps = steps
        self._tokens_of = tokens
        self._step_count = self._tokens = 0

    @property
    def epochs(self) -> list[Measurement]:
        return self._training.ended_epochs()

    def on_train_start(self, trainer, pl_module):
        self._training.start()
        self._step_count = self._tokens = 0

    def on_train_epoch_start(self, trainer, pl_module):
        self._training.begin("epoch")
        self._step_count = self._tokens = 0

    def on_train_batch_start(self, trainer, pl_module, batch, *args, **kwargs):
        self._training.begin("epoch")  # of a training that resumes within an epoch, which has no start
        self._training.begin("steps")
        if self._steps:
            self._training.begin("step")

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, *args, **kwargs):
        self._training.end("step")
        self._step_count += 1
        if self._tokens_of is not None:
            self._tokens += int(self._tokens_of(batch))
        if _is_logged(trainer):
            self._end_steps()
            self._log(trainer, pl_module, wait=False, on_step=True)

    def on_validation_start(self, trainer, pl_module):
        self._end_steps()
        if not trainer.sanity_checking:
            self._training.begin_anew("validation")

    def on_validation_epoch_end(self, trainer, pl_module):
        self._training.end("validation", logged_as="validation")
        if not trainer.sanity_checking and not self._training.is_open("epoch"):
            self._log(trainer, pl_module)

    def on_test_start(self, trainer, pl_module):
        self._training.begin_anew("test")

    def on_test_epoch_end(self, trainer, pl_module):
        self._training.end("test", logged_as="test")
        self._log(trainer, pl_module)

    def on_train_epoch_end(self, trainer, pl_module):
        self._end_steps()
        self._training.end("epoch", tokens=self._tokens, logged_as="epoch")
        self._log(trainer, pl_module)

    def on_exception(self, trainer, pl_module, exception):
        self._training.drop_all()

    def _end_steps(self):
        steps, self._step_count = self._step_count, 0
        self._training.end("steps", steps, logged_as="step" if steps else None, place=steps)

    def _log(self, trainer, pl_module, wait=True, on_step=False):
        # Each name once: Lightning keeps the last value of a step or an epoch. Steps of which several parts have
        # become known have the mean of all.
        ended = [f"energy/{kind}_" for kind in self._training.waiting_kinds()] if wait else []
        found = {}
        before = 0
        for steps, metrics in self._training.finished(wait):
            if steps and before and metrics.keys() <= found.keys():
                metrics = {name: (before * found[name] + steps * value) / (before + steps)
                           for name, value in metrics.items()}
            before += steps or 0
            found.update(metrics)
        for name, value in found.items():
            pl_module.log(name, value, prog_bar=name in _SHOWN, logger=bool(trainer.loggers), on_step=on_step,
                          on_epoch=not on_step)
        if ended:
            _drop_earlier(trainer, tuple(ended), found)


def _drop_earlier(trainer, prefixes, found):
    """Lightning keeps a figure until the next one of its name: what a part lacks would be that of one before."""
    strict = {each.monitor for each in (*trainer.callbacks, *trainer.lr_scheduler_configs)
              if getattr(each, "monitor", None) and getattr(each, "strict", True)}  # without it they end the training
    for metrics in (trainer.callback_metrics, trainer.progress_bar_metrics):
        for name in [name for name in metrics if name.startswith(prefixes) and name not in found]:
            if name not in strict:
                del metrics[name]
            elif metrics is trainer.callback_metrics:
                warnings.warn(f"jouleprof: there is no {name} now; what monitors it sees the figure of before. "
                              "EarlyStopping(strict=False) waits for the next one", RuntimeWarning, stacklevel=2)


def _is_logged(trainer):
    """Whether the loggers get what a batch logs: every N of the batches of all epochs that end a step."""
    return trainer._logger_connector.should_update_logs and not trainer.fit_loop._should_accumulate()
