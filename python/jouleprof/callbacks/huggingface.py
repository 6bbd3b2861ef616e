"""Energy of a training for the Trainer of Hugging Face's transformers."""

from __future__ import annotations

import sys
import warnings
import weakref
from typing import Any

from transformers import TrainerCallback

from .._errors import Error
from .._factors import Factors
from .._live.monitor import Monitor
from .._measurement import Measurement
from .._power_limit import PowerLimitOptimizer
from ._training import Training


class HuggingFacePowerLimitOptimizer(TrainerCallback):
    """`Trainer(..., callbacks=[HuggingFacePowerLimitOptimizer(monitor)])`.

    Profiles power limits during the training and stays at the best; `optimizer` is the
    jouleprof.PowerLimitOptimizer, which takes the same arguments. The limit found before is restored
    when training ends, and where no limit can be chosen, which is a warning: it does not end the training.
    """

    def __init__(self, monitor: Any, *args: Any, **options: Any) -> None:
        self.optimizer = PowerLimitOptimizer(monitor, *args, **options)

    def on_epoch_begin(self, args, state, control, **kwargs):
        self._follow(self.optimizer.on_epoch_begin)

    def on_step_begin(self, args, state, control, **kwargs):
        self._follow(self.optimizer.on_step_begin)

    def on_step_end(self, args, state, control, **kwargs):
        self._follow(self.optimizer.on_step_end)

    def on_epoch_end(self, args, state, control, **kwargs):
        self._follow(self.optimizer.on_epoch_end)

    def on_train_end(self, args, state, control, **kwargs):
        self.optimizer.close()

    def _follow(self, act):
        try:
            act()
        except Error as error:
            self.optimizer.give_up()
            warnings.warn(f"jouleprof: no power limit was chosen: {error}", RuntimeWarning, stacklevel=2)


class HuggingFaceCallback(TrainerCallback):
    """`Trainer(..., callbacks=[HuggingFaceCallback()])`.

    Logs joules per step, epoch, evaluation, training and token with `trainer.log`. No epoch waits for its
    figure: it is logged later, with the step and epoch at which it ended. `epochs` has the whole measurements. steps: also a window for each single step.
    """

    def __init__(self, monitor: Monitor | None = None, steps: bool = False, factors: Factors | None = None) -> None:
        self._training = Training(monitor, factors)
        self._steps = steps
        self._trainer = None
        self._first_step = self._epoch_tokens = self._train_tokens = 0
        self._is_logging = False

    def __getstate__(self):
        return {**self.__dict__, "_trainer": None}  # a weak reference, which a training sets

    @property
    def epochs(self) -> list[Measurement]:
        return self._training.ended_epochs()

    def on_train_begin(self, args, state, control, **kwargs):
        trainer = next((trainer for _, trainer in _calls_of_trainer(self)), None)
        self._trainer = None if trainer is None else weakref.ref(trainer)
        self._training.start()
        self._training.begin("train")
        self._train_tokens = _tokens(state)
        if getattr(args, "eval_on_start", False):
            self._training.begin("evaluation")

    def on_epoch_begin(self, args, state, control, **kwargs):
        self._log(state, control)
        self._training.drop("evaluation")
        self._training.begin("epoch")
        self._epoch_tokens = _tokens(state)

    def on_step_begin(self, args, state, control, **kwargs):
        self._training.drop("evaluation")
        if not self._training.is_open("steps"):
            self._training.begin("steps")
            self._first_step = state.global_step
        if self._steps:
            self._training.begin("step")

    def on_step_end(self, args, state, control, **kwargs):
        self._training.end("step")
        if control.should_log or control.should_evaluate or control.should_save:
            self._end_steps(state)
            self._log(state, control)
        if control.should_evaluate:
            self._training.begin("evaluation")

    def on_epoch_end(self, args, state, control, **kwargs):
        self._end_steps(state)
        self._training.end("epoch", tokens=_tokens(state) - self._epoch_tokens, logged_as="epoch", place=_place(state))
        if control.should_evaluate:
            self._training.begin("evaluation")

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        if "train" not in (function for function, _ in _calls_of_trainer(self)):
            self._training.drop_all()  # what is open is of a training that has failed
        elif self._training.is_open("evaluation"):
            self._training.end("evaluation", logged_as=_name_of_evaluation(metrics), place=_place(state))
            self._training.begin("evaluation")  # of the next data set, if there is one

    def on_log(self, args, state, control, logs=None, **kwargs):
        # The trainer's last entry. At on_train_end its loggers are closed already.
        if not self._is_logging and logs and {"train_loss", "train_runtime"} <= logs.keys():
            self._end(state, control)

    def on_train_end(self, args, state, control, **kwargs):
        self._end(state, control)

    def _end(self, state, control):
        self._training.drop("evaluation")
        self._training.end("train", tokens=_tokens(state) - self._train_tokens, logged_as="train", place=_place(state))
        self._log(state, control, wait=True)

    def _end_steps(self, state):
        steps = state.global_step - self._first_step
        self._training.end("steps", steps, logged_as="step" if steps else None, place=_place(state))

    def _log(self, state, control, wait=False):
        now = _place(state)
        for place, metrics in self._training.finished(wait):
            trainer = self._trainer() if self._trainer is not None else None
            if trainer is None:
                state.log_history.append({**metrics, "epoch": place[1], "step": place[0]})
                continue
            # Loggers take step and epoch from the state. An entry clears should_log, which the trainer's own needs.
            self._is_logging, should_log = True, control.should_log
            state.global_step, state.epoch = place
            try:
                _plain_log(trainer)(trainer, metrics)
            finally:
                self._is_logging, control.should_log = False, should_log
                state.global_step, state.epoch = now


def _calls_of_trainer(callback):
    """(function, trainer) of each call that has led here. It passes everything to its callbacks except itself."""
    frame = sys._getframe(1)
    while frame is not None:
        owner = frame.f_locals.get("self")
        handler = getattr(owner, "callback_handler", None)
        if hasattr(owner, "log") and callback in getattr(handler, "callbacks", ()):
            yield frame.f_code.co_name, owner
        frame = frame.f_back


def _plain_log(trainer):
    """That of transformers. A derived trainer's, as of TRL, adds to each entry what it has gathered since the one before."""
    return [kind for kind in type(trainer).__mro__ if "log" in vars(kind)][-1].log


def _place(state):
    return state.global_step, state.epoch


def _tokens(state):
    """The trainer's count, of all ranks; 0 unless include_num_input_tokens_seen is set."""
    is_first = getattr(state, "is_world_process_zero", True)
    return getattr(state, "num_input_tokens_seen", 0) if is_first else 0


def _name_of_evaluation(metrics):
    """evaluation, or evaluation_NAME of one of several data sets."""
    for key in metrics or ():
        if key.startswith("eval_") and key.endswith("_runtime"):
            name = key[len("eval_"):-len("_runtime")]
            return f"evaluation_{name}" if name else "evaluation"
    return "evaluation"
