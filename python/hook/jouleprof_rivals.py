"""Detects torch.profiler in a process whose kernels jouleprof traces: CUPTI serves one client, and the
report names the conflict."""

_TEXT = (b"torch.profiler was started here: CUPTI serves one tool at a time, so it gets no kernels while "
         b"jouleprof traces them (--kernels); to have both, run without --kernels and pass "
         b"torch.profiler's trace to jouleprof annotate")


def watch(torch, report):
    """`report`: is called with the text, in bytes. Costs nothing until a profiler is started."""
    profiler = torch.autograd.profiler  # torch.profiler starts its traces there, too
    start = profiler._enable_profiler
    gpu = torch.profiler.ProfilerActivity.CUDA

    def noted(config, activities, *more):
        try:
            if gpu in activities:
                report(_TEXT)
        except Exception:
            pass
        return start(config, activities, *more)

    profiler._enable_profiler = noted
