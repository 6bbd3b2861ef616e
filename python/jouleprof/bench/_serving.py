"""A batched serving loop, measured while its batch is full."""

import time

from ._blocks import latency_of, relative_half_width
from ._workload import Refused

RULES = ("ml.energy",)


class SteadyState:
    """The rule of the ML.ENERGY benchmark: from the moment at which `batch` requests have sent their
    first token, to the one at which all but batch + 1 are finished."""

    def __init__(self, requests, batch):
        if requests < batch + 2:
            raise Refused(f"--steady-state ml.energy: {requests} requests never leave a full batch of {batch}; "
                          f"let the function serve more, such as {10 * batch}")
        self._batch, self._last = batch, requests - batch - 1
        self._begun, self._finished = set(), set()

    def take(self, step):
        """step: (request, new tokens, is finished) of each request that it served. Returns its tokens
        and how many requests it finished."""
        before, sum_of_tokens = len(self._finished), 0
        for request, tokens, is_finished in step:
            if tokens > 0:
                self._begun.add(request)
            if is_finished:
                self._finished.add(request)
            sum_of_tokens += tokens
        return sum_of_tokens, len(self._finished) - before

    @property
    def has_begun(self):
        return len(self._begun) >= self._batch

    @property
    def is_over(self):
        return len(self._finished) >= self._last


def measure(workload, settings, device, monitor, name):
    """Members of the result. The steady state is the window `name`; the loop is left when it is over."""
    state = SteadyState(workload.requests, settings.batch)
    loop = iter(workload.call)
    start, steps = time.monotonic_ns(), 0
    while not state.has_begun:
        state.take(_next(loop, "before the batch was full"))
        steps += 1
    device.synchronise()
    if state.is_over:
        raise Refused(f"--steady-state ml.energy: all but {settings.batch + 1} of {workload.requests} requests were "
                      "finished when the batch was full; let the function serve more requests")
    warm_up = {"seconds": (time.monotonic_ns() - start) * 1e-9, "iterations": steps, "steady": True, "remark": "",
               "compared": ["full batch"]}
    times, tokens, finished = [], 0, 0
    with monitor.window(name, sync_execution=False):
        last = time.monotonic_ns()
        while not state.is_over:
            new_tokens, newly_finished = state.take(_next(loop, "before the steady state was over"))
            tokens, finished = tokens + new_tokens, finished + newly_finished
            if state.is_over:
                device.synchronise()
            now = time.monotonic_ns()
            times.append((now - last) * 1e-9)
            last = now
    if tokens == 0:
        raise Refused("--steady-state ml.energy: no token came out while the batch was full")
    units = [{"name": "output token", "per_iteration": tokens / len(times)}]
    if finished > 0:
        units.append({"name": "request", "per_iteration": finished / len(times)})
    latency = latency_of(times, times, sum(times) / len(times), relative_half_width(times))
    return {"warm_up": warm_up, "iterations": len(times), "latency": latency, "reached_target": None,
            "units": units, "phases": [], "steady_state": {
                "rule": "ml.energy", "requests": workload.requests, "finished_requests": finished,
                "output_tokens": tokens}}


def _next(loop, when):
    try:
        return next(loop)
    except StopIteration:
        raise Refused(f"the serving loop ended {when}; it has to serve all requests, and to yield a list of "
                      "(request, new tokens, is finished) after each step") from None
