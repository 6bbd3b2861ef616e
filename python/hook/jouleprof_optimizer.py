"""Re-runs optimizer steps in isolation, and restores parameters and optimizer state bit for bit."""

import contextlib
import time

_MOST = 8  # optimizers


class Steps:
    """The optimizers that step while the program runs. Keeps them, and so their parameters, alive."""

    def __init__(self, torch):
        self.torch = torch
        self.optimizers = []
        self.failed = []  # names of types that were not re-run

    def keep(self, optimizer, *_):
        """Called after each step."""
        if len(self.optimizers) < _MOST and not any(optimizer is one for one in self.optimizers):
            self.optimizers.append(optimizer)

    def replay(self, loop, side, layer, seconds, end):
        """Loops over each optimizer's step for `seconds`, until `end` (perf_counter). `loop`: of
        jouleprof_replay.Kinds. The loops count for `layer`, which launches none of their kernels."""
        for optimizer in self.optimizers:
            if time.perf_counter() + seconds > end or not self._loop(optimizer, loop, seconds):
                self.failed.append(type(optimizer).__name__)
                side.replayed(-1.0, 0)
            else:
                side.replayed(float(layer), 1)

    def _loop(self, optimizer, loop, seconds):
        step = _Step(self.torch, optimizer)
        if not step.devices():
            return False
        try:
            with step.unchanged():
                return loop(step, seconds) > 0
        except Exception:  # it needs a closure, or more memory than there is
            return False


class _Step:
    def __init__(self, torch, optimizer):
        self.torch = torch
        self.optimizer = optimizer
        self.parameters = [part for group in optimizer.param_groups for part in group["params"]]

    def __call__(self):
        self.optimizer.step()

    def devices(self):
        return list({part.device: None for part in self.parameters if part.is_cuda})

    @contextlib.contextmanager
    def unchanged(self):
        """Parameters without a gradient get a small random one, as zero_grad() may have dropped them."""
        state = self.optimizer.state
        tensors = [*self.parameters]
        for values in state.values():
            tensors += [value for value in values.values() if self.torch.is_tensor(value)]
        with self.torch.no_grad():
            before = [tensor.detach().clone() for tensor in tensors]
        plain = {key: {name: value for name, value in values.items()
                       if not self.torch.is_tensor(value)} for key, values in state.items()}
        missing = [part for part in self.parameters if part.grad is None and part.requires_grad]
        try:
            if len(missing) == len(self.parameters):
                for part in missing:
                    part.grad = self.torch.randn_like(part).mul_(1e-3)
            yield
        finally:
            for part in missing:
                part.grad = None
            with self.torch.no_grad():
                for tensor, value in zip(tensors, before):
                    tensor.copy_(value)
            for key, values in plain.items():
                state[key].update(values)
