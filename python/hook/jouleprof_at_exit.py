"""`jouleprof run --replay`: keeps the inputs of a model's calls, and re-runs its layers and kernels in
isolation when the program ends (jouleprof_replay.py, jouleprof_kernels.py). Never raises, and does not
change the program's exit status.
"""

import atexit
import contextlib
import ctypes
import os
import sys
import time

_MOST_MODELS = 16  # modules that are called from outside of all others
_MOST_CALLS = 4    # of each, with inputs of different shapes
_MOST_BYTES = 1 << 30  # of all inputs
_MOST_SECONDS = 30     # for all re-runs
_FIRST_SHARE = 0.7     # of them for kernels; modules are mixtures of these


class AtExit:
    """Keeps a reference to each model that is called, and to the inputs of its first calls: memory
    that the program has released stays allocated until its end."""

    def __init__(self, torch, load, library, seconds):
        self.torch = torch
        self.replay = load("jouleprof_replay")
        self.kernels = load("jouleprof_kernels")
        self.driver = load("jouleprof_cuda_graph").Driver
        self.steps = load("jouleprof_optimizer").Steps(torch)
        with contextlib.suppress(ImportError, AttributeError):  # PyTorch before 2.1
            from torch.optim import optimizer

            optimizer.register_optimizer_step_post_hook(self.steps.keep)
        self.library = library
        self.seconds = seconds
        self.side = None
        self.calls = {}  # by address of the model: {shapes: Call}; the last has all further shapes, too
        self.bytes = 0
        self.full = False
        self._process = os.getpid()
        atexit.register(self.run)

    def keep(self, model, names, *values):
        """Called before each call of a module from outside of all others."""
        if self.full or not self.torch.cuda.is_initialized():
            return
        calls = self.calls.get(id(model))
        if calls is None:
            if len(self.calls) == _MOST_MODELS or compiled(model):
                return
            calls = self.calls[id(model)] = {}
        elif len(calls) == _MOST_CALLS:
            next(reversed(calls.values())).count += 1
            return
        shapes = (names, self.replay.shape(self.torch, values))
        if shapes in calls:
            calls[shapes].count += 1
            return
        self.bytes += sum(tensor.numel() * tensor.element_size()
                          for tensor in self.replay.tensors(self.torch, values))
        if self.bytes > _MOST_BYTES:
            self.full = True
            self.side.problem("replay: inputs are kept up to 1 GiB; a model that was called later "
                              "is not re-run")
            return
        values = [self.replay.detached(self.torch, value) for value in values]
        count = len(values) - len(names or ())
        calls[shapes] = self.replay.Call(self.torch, inner_model(model), tuple(values[:count]),
                                         dict(zip(names or (), values[count:])))

    def run(self):
        if self.side is None or os.getpid() != self._process:
            return
        try:
            problem = self._why_not() or self._replay()
        except BaseException as error:  # Ctrl-C, too
            problem = f"ended early: {type(error).__name__} {error}"
        if problem:
            self.side.problem(f"replay: {problem}")
        self.calls.clear()

    def _why_not(self):
        if hasattr(sys, "last_type"):  # an exception, or Ctrl-C: the user does not want to wait
            return "no layer was re-run, because the program ended with an exception"
        if not self.torch.cuda.is_initialized():
            return "nothing ran on a GPU; the energy of layers on a CPU follows from their time"
        if not any(self.calls.values()):
            return "no model was called on a GPU, or only compiled ones"
        distributed = getattr(self.torch, "distributed", None)
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            if distributed.get_world_size() > 1:
                return ("this process belongs to a torch.distributed group, which might wait for it; "
                        "call torch.distributed.destroy_process_group() before the program ends")
        return None

    def _replay(self):
        kept = [call for calls in self.calls.values() for call in calls.values()]
        for call in kept:
            call.trains = call.trains and self._is_trained(call.module)
        models = list({id(call.module): call.module for call in kept}.values())
        kinds = self.replay.Kinds(self.torch)
        kernels = self.kernels.Kinds(self.torch, self.library, self.driver())
        for call in kept:
            kinds.wait(call.devices())
        self.library.jouleprof_trace_flush()
        self.side.replay_begin()
        try:
            time.sleep(self.replay.SETTLE_SECONDS)
            with self.replay.unchanged(self.torch, models):
                weights = [self._weight(kinds, call) for call in kept]
                self.side.replayed(-1.0, 0)
                self._announce()
                begin = time.perf_counter()
                for call, until in shared_time(kept, weights, begin + _FIRST_SHARE * _MOST_SECONDS):
                    kernels.replay(call, self.side, self.seconds, until)
                if kernels.stuck:
                    leave_when_exiting(self.library)
                    return f"not re-run in isolation: {', '.join(kernels.failed)}"
                end = begin + _MOST_SECONDS
                layer, _ = self.side.names.layers.get(id(models[0]), (None, None))
                if layer is not None:
                    self.steps.replay(kinds.loop, self.side, layer, self.seconds, end)
                kinds.replay(self.side, self.seconds, end)
        finally:
            self.side.replayed(-1.0, 0)
        failed = sorted(kinds.failed) + kernels.failed + self.steps.failed
        return f"not re-run in isolation: {', '.join(failed)}" if failed else None

    def _weight(self, kinds, call):
        """About how long the program spent in such calls, in seconds."""
        begin = time.perf_counter()
        with call.state():
            kinds.find(call.module, call)
        kinds.wait(call.devices())
        return call.count * (time.perf_counter() - begin)

    def _announce(self):
        if sys.stderr is not None and sys.stderr.isatty():
            print(f"jouleprof: re-runs kernels and layers in isolation, {self.seconds:g} s each, for up "
                  f"to {_MOST_SECONDS} s", file=sys.stderr, flush=True)

    def _is_trained(self, module):
        return bool(self.steps.optimizers) or any(
            part.grad is not None for part in module.parameters())


def shared_time(calls, weights, end, clock=time.perf_counter):
    """Pairs of a call and the time (of `clock`) until which its kernels may be re-run: those with the
    largest weight first, each with its share of the time that is left until `end`."""
    left = sum(weights)
    for weight, call in sorted(zip(weights, calls), key=lambda pair: -pair[0]):
        now = clock()
        yield call, now + (end - now) * (weight / left if left > 0 else 1)
        left -= weight


def leave_when_exiting(library):
    """exit() ends the trace and the process, with its status, before the driver waits for its GPU."""
    c = ctypes.CDLL(None)
    c.on_exit(ctypes.cast(c._exit, ctypes.c_void_p), None)
    for last_first in (c.fflush, library.jouleprof_trace_end):
        c.__cxa_atexit(ctypes.cast(last_first, ctypes.c_void_p), None, None)


def compiled(model):
    return sys.modules["_jouleprof_layers"].is_compiled(model)


def inner_model(model):
    """The model that DistributedDataParallel runs in each process; other models themselves."""
    if type(model).__name__ == "DistributedDataParallel":
        return model.module
    return model
