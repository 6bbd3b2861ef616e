"""Runs the modules of a model alone, and then its kernels, so that they can be told apart."""

import time

from . import _tracing


class Alone:
    """Each kind for `seconds`, on what it is given in `model(*args, **kwargs)`."""

    def __init__(self, model, args, kwargs, seconds):
        import torch

        self._hook = _tracing.load_hook("jouleprof_replay")
        self._call = self._hook.Call(torch, model, args, kwargs)
        self._seconds = seconds
        self._modules = self._hook.Kinds(torch)
        self._kernels = _tracing.load_hook("jouleprof_kernels").Kinds(
            torch, _tracing.load_library(),
            _tracing.load_hook("jouleprof_cuda_graph").Driver())

    def find(self):
        """Calls the model once."""
        self._modules.find(self._call.module, self._call)

    def run(self, side):
        """`side`: of the hook jouleprof_layers."""
        side.replay_begin()
        try:
            time.sleep(self._hook.SETTLE_SECONDS)
            with self._hook.unchanged(self._call.torch, [self._call.module]):
                self._modules.replay(side, self._seconds)
                self._kernels.replay(self._call, side, self._seconds)
        finally:
            side.replay_end()

    def warnings(self):
        failed = sorted(self._modules.failed) + self._kernels.failed
        return [f"could not be run alone: {', '.join(failed)}"] if failed else []
