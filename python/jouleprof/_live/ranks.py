"""Measurements of several processes as one."""

import dataclasses
import socket
import sys

from .._energy import total_of_ranks
from .._errors import Unavailable
from .._measurement import Measurement


def initialised():
    """torch.distributed where the program has initialised it, else None."""
    found = getattr(sys.modules.get("torch"), "distributed", None)
    return found if found is not None and found.is_available() and found.is_initialized() else None


def sum_over_ranks(measurement, group=None):
    """Gathers every rank's measurement of a torch.distributed group and adds them up."""
    if initialised() is None:
        raise Unavailable("sum_over_ranks needs torch.distributed to be initialised")
    if not isinstance(measurement, Measurement):
        measurement = measurement.energy  # a window
    return combined(gathered(measurement, group))


def gathered(value, group=None):
    """(host, value) of every rank of an initialised torch.distributed."""
    distributed = initialised()
    found = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(found, (socket.gethostname(), value), group=group)
    return found


def combined(gathered):
    """One measurement of a list of (host, measurement)."""
    energies, seen = [], set()
    hosts = len({host for host, _ in gathered})
    for host, measurement in gathered:
        for energy in measurement.values():
            domain = energy.domain
            identity = (host, domain.kind, domain.uuid or domain.device)
            if identity in seen:
                continue
            seen.add(identity)
            if hosts > 1:
                domain = dataclasses.replace(domain, device=f"{host}:{domain.device}")
            energies.append(dataclasses.replace(energy, domain=domain))
    measurements = [m for _, m in gathered]
    edges = {m.edges for m in measurements}
    return Measurement(
        name=measurements[0].name,
        time=max(m.time for m in measurements),
        edges=edges.pop() if len(edges) == 1 else "mixed",
        _energies=tuple(energies),
        fixed_total=total_of_ranks(energies),
    )
