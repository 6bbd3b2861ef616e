"""Opens the native monitor of what the user asked for and the launcher set."""

from __future__ import annotations

import os
import warnings
from typing import Sequence

from .. import _native
from .._arguments import flag, nanoseconds, path, text, whole
from .._energy import Domain
from .._errors import InvalidArgument, checked


def open_native(devices, gpu_indices, log, overwrite, shortest_window, history, own_sampler):
    """Returns (native monitor, its domains)."""
    gpus_only = False
    if devices == "rank":
        if gpu_indices is not None:
            raise InvalidArgument('devices="rank" chooses the GPU; leave out gpu_indices')
        rank = _rank_of_this_process()
        devices, gpu_indices = None, [_gpu_of_rank(rank)]
        # The first rank of a machine measures its processors, so that a sum counts them once.
        gpus_only = rank != 0
    elif gpu_indices is not None and devices is not None:
        raise InvalidArgument("give devices or gpu_indices, not both")
    native = checked(_native.open_monitor(
        _joined(devices),
        None if log is None else os.fsencode(path(log, "log")),
        flag(overwrite, "overwrite"),
        nanoseconds(shortest_window, "shortest_window"),
        nanoseconds(history, "history"),
        flag(own_sampler, "own_sampler"),
        None if gpu_indices is None else _checked_indices(gpu_indices),
        gpus_only,
    ))
    return native, [Domain.of(d) for d in checked(native.domains())]


def _checked_indices(indices: Sequence[int]) -> list[int]:
    """GPUs by CUDA's numbers, for the library, which checks that they exist."""
    try:
        indices = list(indices)
    except TypeError:
        raise InvalidArgument(f"gpu_indices is a list of numbers, not {indices!r}") from None
    return [whole(index, "a GPU index is a number from 0 on", 0, 2**31 - 1) for index in indices]


def _rank_of_this_process() -> int:
    """This process's place on its machine, from the variables of torchrun, Slurm and MPI. Without a launcher it
    is the only process, rank 0, with a warning."""
    for name in ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"):
        value = os.environ.get(name, "")
        if value.isdigit():
            return int(value)
    needed = "LOCAL_RANK (torchrun), SLURM_LOCALID or OMPI_COMM_WORLD_LOCAL_RANK"
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        if os.environ.get(name):
            raise InvalidArgument(f'devices="rank" needs {needed} in the environment: {name} is set, but does not '
                                  "say which process of its machine this is")
    warnings.warn(f'jouleprof: devices="rank" without a launcher: none of {needed} is set. This process is taken for '
                  "the only one, rank 0: it measures GPU 0, processors and memory", RuntimeWarning, stacklevel=4)
    return 0


def _gpu_of_rank(rank: int) -> int:
    """The number of its GPU: the rank, or 0 where it was given a single GPU."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and len([w for w in visible.split(",") if w.strip()]) == 1:
        return 0
    return rank


def _joined(devices) -> str | None:
    """What the user wrote as `devices`, for the library."""
    if devices is None or isinstance(devices, str):
        return devices and text(devices, "devices")
    try:
        if isinstance(devices, bytes):
            raise TypeError
        return text(",".join(str(word) for word in devices), "devices")
    except TypeError:
        raise InvalidArgument(f"devices is a text or a list, not {devices!r}") from None
