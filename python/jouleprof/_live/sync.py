"""Waiting until the devices have done their work, with whatever framework gave it to them."""

import importlib
import sys

from .._errors import InvalidArgument, Unavailable
from .marks import torch_with_cuda


def synchronise(devices):
    """Waits for the GPUs `devices` (CUDA's numbers) with those frameworks that use them here.
    False: there is none."""
    frameworks = [(torch_with_cuda(), with_torch), (sys.modules.get("jax"), with_jax),
                  (sys.modules.get("cupy"), with_cupy)]
    waits = [(module, wait) for module, wait in frameworks if module is not None and devices]
    for module, wait in waits:
        wait(module, devices)
    return bool(waits)


def with_torch(torch, devices):
    for device in devices:
        torch.cuda.synchronize(device)


def with_jax(jax, devices):
    """JAX has no call for it: a small sum on each device is done when all before it is."""
    try:
        gpus = jax.devices("gpu")
    except RuntimeError:
        gpus = []
    places = [gpus[i] for i in devices if i < len(gpus)] + [jax.devices("cpu")[0]]
    jax.block_until_ready([jax.device_put(0.0, device=place) + 0 for place in places])


def with_cupy(cupy, devices):
    for device in devices:
        cupy.cuda.Device(device).synchronize()


_TITLES = {"torch": "PyTorch", "jax": "JAX", "cupy": "CuPy"}
_WAITS = {"torch": with_torch, "jax": with_jax, "cupy": with_cupy}


def function_of(framework):
    """What waits for a list of devices with "torch", "jax" or "cupy"; imports it when called."""
    if framework not in _WAITS:
        raise InvalidArgument(f"'{framework}' is none of: {', '.join(_WAITS)}")

    def wait(devices):
        try:
            module = importlib.import_module(framework)
        except ImportError as error:
            raise Unavailable(f"{_TITLES[framework]} is missing; pass sync_execution=False, or choose one of "
                              f"{', '.join(_WAITS)} with sync_execution_with") from error
        if framework == "torch" and not module.cuda.is_available():
            raise Unavailable("this PyTorch has no CUDA device; pass sync_execution=False")
        _WAITS[framework](module, devices)

    return wait
