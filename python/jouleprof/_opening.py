"""Opens the native monitor for what the user asked for."""

import os

from . import _devices, _native
from ._energy import Domain
from ._errors import InvalidArgument, checked


def open_native(devices, gpu_indices, options):
    """Returns (native monitor, its domains, which of them are wanted: a list of places)."""
    kinds = ["cpu", "dram"]
    if devices == "rank":
        if gpu_indices is not None:
            raise InvalidArgument('devices="rank" chooses the GPU; leave out gpu_indices')
        rank = _devices.rank_of_this_process()
        gpu_indices = [_devices.gpu_of_rank(rank)]
        # The first rank of a machine tells of its processors, so that a sum counts them once.
        kinds = kinds if rank == 0 else []
    elif gpu_indices is not None and devices is not None:
        raise InvalidArgument("give devices or gpu_indices, not both")
    if gpu_indices is None:
        native = _open(_devices.joined(devices), options)
        domains = _domains(native)
        return native, domains, list(range(len(domains)))
    return _open_gpus(list(gpu_indices), kinds, options)


def _open_gpus(indices, kinds, options):
    gpus = _devices.words_of_gpus(indices)
    native = None
    while native is None:
        words = gpus + kinds
        try:
            native = _open(",".join(words) if words else None, options)
        except InvalidArgument:
            if not kinds:
                raise
            kinds = kinds[:-1]  # this machine has none of that kind
    domains = _domains(native)
    if not set(indices) <= {d.index for d in domains}:
        # CUDA counts the boards otherwise (by speed): take all and leave out the others.
        native.close()
        native = _open(None, {**options, "overwrite": True})  # of the log just begun
        domains = _domains(native)
        missing = set(indices) - {d.index for d in domains}
        if missing:
            native.close()
            raise InvalidArgument(f"GPU {sorted(missing)} is not among those that CUDA shows here")
    boards = {d.device for d in domains if d.index in indices}
    wanted = [i for i, d in enumerate(domains) if d.device in boards or d.kind in kinds]
    return native, domains, wanted


def _open(words, options):
    log = options["log"]
    return checked(_native.open_monitor(
        words,
        None if log is None else os.fspath(log),
        options["overwrite"],
        _nanoseconds(options["shortest_window"], "shortest_window"),
        _nanoseconds(options["history"], "history"),
        options["own_sampler"],
    ))


def _nanoseconds(seconds, name):
    if not seconds > 0:
        raise InvalidArgument(f"{name} has to be more than 0 seconds")
    return round(seconds * 1e9)


def _domains(native):
    return [Domain.of(d) for d in checked(native.domains())]
