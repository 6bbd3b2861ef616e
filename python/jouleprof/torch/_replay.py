"""Runs each kind of module alone on its real inputs, so that its kernels can be told apart.

A forward pass that is repeated shows the sensors one mixture of kernels, which nothing can separate.
Kernels of the same class run in these loops alone or nearly so; the attribution learns their watts
here, and takes their times from the forward pass.
"""

import time

import torch

_PAUSE_SECONDS = 0.15  # between two modules: idle, with the GPU as warm as it is
_AHEAD = 64            # calls between two waits for the GPU


def _shape(value):
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), tuple(value.stride()), value.dtype, value.requires_grad)
    if isinstance(value, (list, tuple)):
        return tuple(_shape(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, _shape(v)) for k, v in sorted(value.items()))
    return repr(value) if isinstance(value, (int, float, bool, str, type(None))) else type(value)


def _kind(module, args, kwargs):
    """The same for modules that run the same kernels on the same shapes."""
    parameters = tuple(_shape(p) for p in module.parameters())
    return (type(module), repr(module), module.training, parameters, _shape(args), _shape(kwargs))


def find(model, run):
    """Calls `run` once; one (module, args, kwargs) of each kind that it called, in order."""
    found = {}
    hooks = []

    def keep(module, args, kwargs):
        found.setdefault(_kind(module, args, kwargs), (module, args, kwargs))

    try:
        for module in model.modules():
            if module is not model:
                hooks.append(module.register_forward_pre_hook(keep, with_kwargs=True))
        run()
    finally:
        for hook in hooks:
            hook.remove()
    return list(found.values())


def loop(module, args, kwargs, seconds):
    """Runs one module over and over. One that cannot be run again is left out: False."""
    try:
        module(*args, **kwargs)
        torch.cuda.synchronize()
    except Exception:  # it changed its inputs, or needs what its caller set up
        return False
    time.sleep(_PAUSE_SECONDS)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(_AHEAD):
            module(*args, **kwargs)
        torch.cuda.synchronize()
    return True


def replay(modules, seconds):
    """Loops over all; the names of the kinds that could not be run alone."""
    failed = []
    for module, args, kwargs in modules:
        if not loop(module, args, kwargs, seconds):
            failed.append(type(module).__name__)
    time.sleep(_PAUSE_SECONDS)
    return failed
