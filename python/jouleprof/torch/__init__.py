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

# As GPUPP calls them.
LayerPowerProfiler = LayerProfiler
KernelPowerProfiler = KernelProfiler
