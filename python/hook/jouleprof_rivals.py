"""Notices that torch.profiler asks for the GPU's kernels in a process in which jouleprof traces them:
CUPTI serves one client, and the report says what came of it."""

_TEXT = (b"torch.profiler was started here: CUPTI serves one tool at a time, so it gets no kernels while "
         b"jouleprof traces them (--kernels); to have both, run without --kernels, and put the energies "
         b"into torch.profiler's trace with jouleprof annotate")


def watch(torch, say):
    """`say`: is given the text, in bytes. Costs nothing until a profiler is started."""
    profiler = torch.autograd.profiler  # torch.profiler starts its traces there, too
    start = profiler._enable_profiler
    gpu = torch.profiler.ProfilerActivity.CUDA

    def noted(config, activities, *more):
        try:
            if gpu in activities:
                say(_TEXT)
        except Exception:
            pass
        return start(config, activities, *more)

    profiler._enable_profiler = noted
