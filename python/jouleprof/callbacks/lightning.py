"""Energy per epoch for Lightning's Trainer."""

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback

from ._training import Training


class LightningCallback(Callback):
    """`Trainer(callbacks=[LightningCallback()])`.

    Gives "energy/epoch_joules" and its relatives to the trainer's loggers, with the step at which the
    epoch ended: when the next begins or the fit ends, for the figure takes a moment. `epochs` has
    the whole measurements. steps: measure each step too, and log the mean of them.
    """

    def __init__(self, monitor=None, steps=False, factors=None):
        super().__init__()
        self._training = Training(monitor, steps, factors)

    @property
    def epochs(self):
        return self._training.epochs

    def on_train_epoch_start(self, trainer, pl_module):
        self._log(trainer)
        self._training.begin_epoch()

    def on_train_batch_start(self, trainer, pl_module, *args, **kwargs):
        self._training.begin_step()

    def on_train_batch_end(self, trainer, pl_module, *args, **kwargs):
        self._training.end_step()

    def on_train_epoch_end(self, trainer, pl_module):
        self._training.end_epoch(trainer.global_step)

    def on_train_end(self, trainer, pl_module):
        self._log(trainer)
        steps = self._training.step_metrics()
        if steps:
            self._send(trainer, steps, trainer.global_step)

    def _log(self, trainer):
        for metrics, step in self._training.finished():
            self._send(trainer, metrics, step)

    @staticmethod
    def _send(trainer, metrics, step):
        for logger in trainer.loggers:
            logger.log_metrics(metrics, step=step)
