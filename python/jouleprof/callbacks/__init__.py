"""Callbacks of training frameworks: `jouleprof.callbacks.HuggingFaceCallback`, `LightningCallback`
and `HuggingFacePowerLimitOptimizer`.

A framework is imported when its callback is asked for, not before.
"""

__all__ = ["HuggingFaceCallback", "HuggingFacePowerLimitOptimizer", "LightningCallback"]


def __getattr__(name):
    if name == "HuggingFaceCallback":
        from .huggingface import HuggingFaceCallback

        return HuggingFaceCallback
    if name == "HuggingFacePowerLimitOptimizer":
        from .huggingface import HuggingFacePowerLimitOptimizer

        return HuggingFacePowerLimitOptimizer
    if name == "LightningCallback":
        from .lightning import LightningCallback

        return LightningCallback
    raise AttributeError(f"module 'jouleprof.callbacks' has no attribute '{name}'")
