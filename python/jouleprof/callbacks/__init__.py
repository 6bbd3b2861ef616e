"""Callbacks of training frameworks: `jouleprof.callbacks.HuggingFaceCallback` and `LightningCallback`.

A framework is imported when its callback is asked for, not before.
"""

__all__ = ["HuggingFaceCallback", "LightningCallback"]


def __getattr__(name):
    if name == "HuggingFaceCallback":
        from .huggingface import HuggingFaceCallback

        return HuggingFaceCallback
    if name == "LightningCallback":
        from .lightning import LightningCallback

        return LightningCallback
    raise AttributeError(f"module 'jouleprof.callbacks' has no attribute '{name}'")
