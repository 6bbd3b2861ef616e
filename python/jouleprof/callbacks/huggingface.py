"""Energy per epoch for the Trainer of Hugging Face's transformers."""

from transformers import TrainerCallback

from .._power_limit import PowerLimitOptimizer
from ._training import Training


class HuggingFacePowerLimitOptimizer(TrainerCallback):
    """`Trainer(..., callbacks=[HuggingFacePowerLimitOptimizer(monitor)])`.

    Profiles power limits during the training and stays at the best; `optimizer` is the
    jouleprof.PowerLimitOptimizer, which takes the same arguments. The limit found before is restored
    when training ends.
    """

    def __init__(self, monitor, *args, **options):
        self.optimizer = PowerLimitOptimizer(monitor, *args, **options)

    def on_epoch_begin(self, args, state, control, **kwargs):
        self.optimizer.on_epoch_begin()

    def on_step_begin(self, args, state, control, **kwargs):
        self.optimizer.on_step_begin()

    def on_step_end(self, args, state, control, **kwargs):
        self.optimizer.on_step_end()

    def on_epoch_end(self, args, state, control, **kwargs):
        self.optimizer.on_epoch_end()

    def on_train_end(self, args, state, control, **kwargs):
        self.optimizer.close()


class HuggingFaceCallback(TrainerCallback):
    """`Trainer(..., callbacks=[HuggingFaceCallback()])`.

    Puts "energy/epoch_joules" and its relatives into the trainer's log history, one entry an epoch:
    when the next epoch begins or training ends, for the figure takes a moment. `epochs` has the whole
    measurements. steps: measure each step too, and log the mean of them.
    """

    def __init__(self, monitor=None, steps=False, factors=None):
        self._training = Training(monitor, steps, factors)

    @property
    def epochs(self):
        return self._training.epochs

    def on_epoch_begin(self, args, state, control, **kwargs):
        self._log(state)
        self._training.begin_epoch()

    def on_step_begin(self, args, state, control, **kwargs):
        self._training.begin_step()

    def on_step_end(self, args, state, control, **kwargs):
        self._training.end_step()

    def on_epoch_end(self, args, state, control, **kwargs):
        self._training.end_epoch((state.epoch, state.global_step))

    def on_train_end(self, args, state, control, **kwargs):
        self._log(state)
        steps = self._training.step_metrics()
        if steps:
            self._append(state, steps, state.epoch, state.global_step)

    def _log(self, state):
        for metrics, (epoch, step) in self._training.finished():
            self._append(state, metrics, epoch, step)

    @staticmethod
    def _append(state, metrics, epoch, step):
        state.log_history.append({**metrics, "epoch": epoch, "step": step})
