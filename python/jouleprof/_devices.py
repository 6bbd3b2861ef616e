"""The words by which a monitor is told what to sample."""

import os
from typing import List, Optional, Sequence

from ._errors import InvalidArgument


def words_of_gpus(indices: Sequence[int], environ=os.environ) -> List[str]:
    """GPUs by CUDA's numbers, as words for the library.

    Right where CUDA counts the boards as NVML does, which a caller has to check.
    """
    for index in indices:
        if not isinstance(index, int) or index < 0:
            raise InvalidArgument(f"GPU index {index!r} is not a number from 0 on")
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return [f"gpu{index}" for index in indices]
    places = [word.strip() for word in visible.split(",") if word.strip()]
    for index in indices:
        if index >= len(places):
            raise InvalidArgument(
                f"GPU index {index} is not there: CUDA_VISIBLE_DEVICES={visible} shows "
                f"{len(places)} of them")
    return [f"gpu{places[i]}" if places[i].isdigit() else places[i] for i in indices]


def rank_of_this_process(environ=os.environ) -> int:
    """This process's place on its machine, as torchrun, Slurm and MPI tell."""
    for name in ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"):
        value = environ.get(name, "")
        if value.isdigit():
            return int(value)
    raise InvalidArgument('devices="rank" needs LOCAL_RANK (torchrun), SLURM_LOCALID or '
                          "OMPI_COMM_WORLD_LOCAL_RANK in the environment")


def gpu_of_rank(rank: int, environ=os.environ) -> int:
    """Its GPU's number: the rank, or the only GPU that it was given."""
    visible = environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and len([w for w in visible.split(",") if w.strip()]) == 1:
        return 0
    return rank


def joined(devices) -> Optional[str]:
    """What the user wrote as `devices`, for the library."""
    if devices is None or isinstance(devices, str):
        return devices
    return ",".join(str(word) for word in devices)
