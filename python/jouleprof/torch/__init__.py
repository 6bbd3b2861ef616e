"""Joules per layer and per kernel of a PyTorch model.

    from jouleprof.torch import LayerProfiler

    profiler = LayerProfiler(model)
    profiler.profile(inputs, num_runs=100)
    profiler.print_summary()
    profiler.save_results("layers.csv")

Without a change to the program: ``jouleprof run --kernels --layers -- python infer.py``.
"""

from ._profilers import KernelProfiler, LayerProfiler

__all__ = ["KernelProfiler", "LayerProfiler"]
