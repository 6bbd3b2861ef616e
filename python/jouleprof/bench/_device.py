"""Waiting for a device, and the times at which it passed the ends of iterations."""

import time

from ._workload import Refused, import_torch


class Cpu:
    """Calls return when their work is done."""

    LEAST_MARKED_SECONDS = 200e-6  # a mark takes some 100 ns

    def synchronise(self):
        pass

    def mark(self):
        return time.perf_counter_ns()

    def seconds(self, marks):
        """Between each mark and the next."""
        return [(end - begin) * 1e-9 for begin, end in zip(marks, marks[1:])]


class Cuda:
    """Marks are events on the current stream."""

    LEAST_MARKED_SECONDS = 2e-3  # a mark takes some 2 us

    def __init__(self, torch, device):
        self._torch = torch
        self._device = torch.device(device)
        torch.cuda.set_device(self._device)

    def synchronise(self):
        self._torch.cuda.synchronize(self._device)

    def mark(self):
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def seconds(self, marks):
        """The device has passed all marks."""
        return [begin.elapsed_time(end) * 1e-3 for begin, end in zip(marks, marks[1:])]


def open_device(word, has_model=True):
    """has_model: False for a function, which need not use PyTorch: without PyTorch's CUDA it waits for
    its own work."""
    if not word.startswith("cuda"):
        return Cpu()
    try:
        torch = import_torch()
    except Refused:
        if has_model:
            raise
        return Cpu()
    if torch.cuda.is_available():
        return Cuda(torch, word)
    if has_model:
        raise Refused(f"PyTorch finds no CUDA device for --device {word}; use --device cpu")
    return Cpu()
