"""What a monitor measures, from what the user wrote and the launcher set."""

import os
import warnings
from typing import List, Optional, Sequence

from .._errors import InvalidArgument


def checked_indices(indices: Sequence[int]) -> List[int]:
    """GPUs by CUDA's numbers, for the library, which checks that they exist."""
    try:
        indices = list(indices)
    except TypeError:
        raise InvalidArgument(f"gpu_indices is a list of numbers, not {indices!r}") from None
    for index in indices:
        if not isinstance(index, int) or not 0 <= index < 2**31:
            raise InvalidArgument(f"GPU index {index!r} is not a number from 0 on")
    return indices


def rank_of_this_process(environ=os.environ) -> int:
    """This process's place on its machine, from the variables of torchrun, Slurm and MPI. Without a launcher it
    is the only process, rank 0, with a warning."""
    for name in ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"):
        value = environ.get(name, "")
        if value.isdigit():
            return int(value)
    needed = "LOCAL_RANK (torchrun), SLURM_LOCALID or OMPI_COMM_WORLD_LOCAL_RANK"
    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        if environ.get(name):
            raise InvalidArgument(f'devices="rank" needs {needed} in the environment: {name} is set, but does not '
                                  "say which process of its machine this is")
    warnings.warn(f'jouleprof: devices="rank" without a launcher: none of {needed} is set. This process is taken for '
                  "the only one, rank 0: it measures GPU 0, processors and memory", RuntimeWarning, stacklevel=4)
    return 0


def gpu_of_rank(rank: int, environ=os.environ) -> int:
    """The number of its GPU: the rank, or 0 where it was given a single GPU."""
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and len([w for w in visible.split(",") if w.strip()]) == 1:
        return 0
    return rank


def joined(devices) -> Optional[str]:
    """What the user wrote as `devices`, for the library."""
    if devices is None or isinstance(devices, str):
        return devices
    try:
        return ",".join(str(word) for word in devices)
    except TypeError:
        raise InvalidArgument(f"devices is a text or a list, not {devices!r}") from None
