"""Joules per layer and per kernel of a PyTorch model.

    from jouleprof.torch import LayerProfiler

    profiler = LayerProfiler(model)
    profiler.profile(inputs)
    profiler.print_summary()
    profiler.save_results("layers.csv")

The same without a change to the program: ``jouleprof run --kernels --layers -- python infer.py``.
"""

from ._profilers import KernelProfiler, LayerProfiler

__all__ = ["KernelPowerProfiler", "KernelProfiler", "LayerPowerProfiler", "LayerProfiler"]


class LayerPowerProfiler(LayerProfiler):
    """As GPUPP calls it: it prints what it does."""

    def _say(self, text):
        print(f"{text} (Layer Profiler)...", flush=True)


class KernelPowerProfiler(KernelProfiler):
    """As GPUPP calls it: it prints what it does."""

    def _say(self, text):
        print(f"{text} (Kernel Profiler)...", flush=True)
