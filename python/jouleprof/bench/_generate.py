"""Greedy generation: prefill and decode in windows of their own, each token awaited as a server does."""

import contextlib
import dataclasses
import time
from typing import List

from . import _blocks
from ._blocks import quantile
from ._latency import repeat


@dataclasses.dataclass
class Request:
    begin: int  # CLOCK_MONOTONIC, nanoseconds
    first: int  # the first token is there
    end: int
    gaps: List[float]  # seconds between two tokens

    @property
    def seconds(self):
        return (self.end - self.begin) * 1e-9


class Generator:
    """One request: `tokens` prompts go in, `new_tokens` come out of each."""

    def __init__(self, workload, settings, device):
        import torch

        self._torch = torch
        self._model = workload.model.eval()
        self._prompt = workload.kwargs["input_ids"]
        self._new_tokens = settings.new_tokens
        self._device = device

    def request(self, windows=None):
        """windows: functions that make the windows of prefill and decode."""
        torch = self._torch
        with torch.inference_mode():
            begin = time.monotonic_ns()
            with windows[0]() if windows else contextlib.nullcontext():
                token, cache = self._forward(self._prompt, None)
                first = time.monotonic_ns()
            gaps, last = [], first
            with windows[1]() if windows else contextlib.nullcontext():
                for _ in range(self._new_tokens - 1):
                    token, cache = self._forward(token, cache)
                    now = time.monotonic_ns()
                    gaps.append((now - last) * 1e-9)
                    last = now
        return Request(begin, first, last, gaps)

    def _forward(self, tokens, cache):
        output = self._model(input_ids=tokens, past_key_values=cache, use_cache=True)
        token = output.logits[:, -1:].argmax(-1)
        self._device.synchronise()
        return token, output.past_key_values


def measure(generator, observer, monitor, name, limits):
    """Requests in one window `name`, with windows `name, prefill` and `name, decode`."""
    def make(phase):
        return lambda: monitor.window(f"{name}, {phase}", sync_execution=False)

    windows = make("prefill"), make("decode")
    steady = repeat(lambda: generator.request(windows), lambda request: request.seconds, observer,
                    monitor.window(name, sync_execution=False), limits)
    return steady.blocks, steady.spread, steady.reached_target


def latency_of(requests, spread):
    whole = [r.seconds for r in requests]
    first = sorted((r.first - r.begin) * 1e-9 for r in requests)
    gaps = sorted(gap for r in requests for gap in r.gaps)

    def quantiles(values, name):
        return {f"{name}_p{p}_seconds": quantile(values, p / 100) if values else None for p in (50, 90, 99)}

    return {**_blocks.latency_of(whole, whole, sum(whole) / len(whole), spread),
            **quantiles(first, "first_token"), **quantiles(gaps, "inter_token")}
