"""Opens the native monitor for what the user asked for."""

from .. import _native
from .._arguments import nanoseconds, path
from .._energy import Domain
from .._errors import InvalidArgument, checked
from .devices import checked_indices, gpu_of_rank, joined, rank_of_this_process


def open_native(devices, gpu_indices, options):
    """Returns (native monitor, its domains)."""
    gpus_only = False
    if devices == "rank":
        if gpu_indices is not None:
            raise InvalidArgument('devices="rank" chooses the GPU; leave out gpu_indices')
        rank = rank_of_this_process()
        devices, gpu_indices = None, [gpu_of_rank(rank)]
        # The first rank of a machine measures its processors, so that a sum counts them once.
        gpus_only = rank != 0
    elif gpu_indices is not None and devices is not None:
        raise InvalidArgument("give devices or gpu_indices, not both")
    log = options["log"]
    native = checked(_native.open_monitor(
        joined(devices),
        None if log is None else path(log, "log"),
        bool(options["overwrite"]),
        nanoseconds(options["shortest_window"], "shortest_window"),
        nanoseconds(options["history"], "history"),
        bool(options["own_sampler"]),
        None if gpu_indices is None else checked_indices(gpu_indices),
        gpus_only,
    ))
    return native, [Domain.of(d) for d in checked(native.domains())]
