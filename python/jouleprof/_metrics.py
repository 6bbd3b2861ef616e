"""Figures as a flat dictionary of numbers, as loggers take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._arguments import text
from ._energy import total_of
from ._errors import InvalidArgument
from ._measurement import Measurement
from ._snapshot import Snapshot

if TYPE_CHECKING:
    from ._live.monitor import Monitor
    from ._live.window import Window

_LOST = 10.0  # seconds without a reading; a snapshot has no power any more then


def metrics(source: Monitor | Measurement | Window | None = None, prefix: str = "energy/") -> dict[str, float]:
    """A flat dictionary {name: number} for a logger that has no callback here.

    source: a Monitor (None: the default one), whose figures count since it was opened and are there at
    once; a Measurement; or a window, which waits for its energy at the first look. Absent figures are
    not in the dictionary.
    """
    prefix = text(prefix, "prefix")
    if source is None:
        from ._live.default import monitor

        source = monitor()
    if isinstance(source, Measurement):
        return of_measurement(source, prefix)
    if hasattr(source, "snapshot"):
        return _of_snapshot(source.snapshot(), prefix)
    if not hasattr(source, "energy"):
        raise InvalidArgument(f"source is a Monitor, a Measurement or a Window, not {source!r}")
    return of_measurement(source.energy, prefix)


def of_measurement(measurement, prefix):
    found = {f"{prefix}seconds": measurement.time}
    found.update(of_energy(measurement.total, prefix))
    for part in measurement.values():
        if part.domain is not None and part.domain.is_whole and part.joules is not None:
            found[f"{prefix}{_key(part.domain)}_joules"] = part.joules
    return found


def _of_snapshot(snapshot: Snapshot, prefix):
    # A plain number can't say that it ends where a device was lost.
    lost = [state for state in snapshot.domains if state.age is not None and state.age > _LOST]
    # Those that the energies are of: the newest readings are up to 0.1 s old.
    counted = [state.energy_seconds for state in snapshot.domains
               if state.domain.is_whole and state.energy.joules is not None and state not in lost]
    found = {f"{prefix}seconds": max(counted, default=snapshot.elapsed)}
    if not any(state.domain.is_whole for state in lost):
        found.update(of_energy(total_of([d.energy for d in snapshot.domains]), prefix))
    for state in snapshot.domains:
        name = prefix + _key(state.domain)
        if state.energy.joules is not None and state not in lost:
            found[f"{name}_joules"] = state.energy.joules
        if state.power is not None:
            found[f"{name}_watts"] = state.power
        found.update({f"{name}_{gauge}": value for gauge, value in state.gauges.items()})
    return found


def of_energy(energy, prefix, count=1):
    """Of one of `count`. A plain number can't say that a device is missing in it."""
    if energy.joules is None or energy.is_partial:
        return {}
    return {
        f"{prefix}joules": energy.joules / count,
        f"{prefix}joules_low": energy.low / count,
        f"{prefix}joules_high": energy.high / count,
        # Loggers take numbers only: 0 where a part is estimated or simulated.
        f"{prefix}is_measured": float(energy.provenance == "measured"),
    }


def _key(domain):
    return domain.label.replace(" ", "_")
