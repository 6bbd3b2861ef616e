"""Callbacks of training frameworks: `jouleprof.callbacks.HuggingFaceCallback`, `LightningCallback`
and `HuggingFacePowerLimitOptimizer`.

A framework is imported when its callback is asked for, not before.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .huggingface import HuggingFaceCallback, HuggingFacePowerLimitOptimizer
    from .lightning import LightningCallback

__all__ = ["HuggingFaceCallback", "HuggingFacePowerLimitOptimizer", "LightningCallback"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'jouleprof.callbacks' has no attribute '{name}'")
    module = ".lightning" if name.startswith("Lightning") else ".huggingface"
    return getattr(importlib.import_module(module, __name__), name)
