"""The energy of a window that the sensors have not reported in full yet: at once, with a wide interval."""

from .._energy import Energy, microjoules
from .._errors import Error
from .._measurement import Measurement
from .._native import now

# The sensors of a GPU report an interval up to 0.12 s after it; a service or a run that shares its sensors sends
# what they reported some time later.
_LAG = 150_000_000
_LAGS = (_LAG, 400_000_000, 1_200_000_000)
_SILENT = 4.0  # s; a sensor that has not answered for so long may be lost, and its power with it
_MOST_RISE = 10  # of a package from idle to full load
METHOD = "provisional"


def measurement(monitor, name, begin, end):
    """What the sensors have reported, and the latest power for the rest of the window.

    The interval allows for any power up to the power limit during that rest; without a known limit, for ten
    times the latest power. Never waits."""
    reported, known = begin, ()
    for lag in _LAGS:
        if min(end, now() - lag) <= begin:
            break
        reported = min(end, now() - lag)
        known = monitor.between(begin, reported, name, timeout=0).values()
        if all(e.microjoules is not None or e.domain.reason for e in known):
            break
    rest = (end - reported) * 1e-9
    states = monitor.snapshot().domains
    energies = [_with_rest(state, known[i] if known else None, rest, (end - begin) * 1e-9)
                for i, state in enumerate(states)]
    return Measurement(name=name, time=(end - begin) * 1e-9, edges="host", _energies=tuple(energies), begin=begin,
                       end=end)


def _with_rest(state, known, rest, whole):
    domain, watts = state.domain, state.power
    if domain.reason:
        return Energy.unavailable(domain, domain.reason)
    if watts is None or state.age is not None and state.age > _SILENT:
        return Energy.unavailable(domain, "the sensors have not reported the end of the window yet")
    if known is not None and known.microjoules is not None:
        joules, error, repeatability = known.joules, known.error, known.repeatability
    else:
        joules = error = repeatability = 0.0
        rest = whole
    limit = state.gauges.get("power_limit_watts") if domain.kind == "gpu" else None
    open_joules = rest * max(watts, (limit or _MOST_RISE * watts) - watts)
    provenance = "estimated" if state.provenance == "measured" else state.provenance
    method = state.energy.method if state.provenance == "estimated" else METHOD  # an estimate also when it is final
    return Energy(domain, microjoules(joules + watts * rest), microjoules(error + open_joules),
                  microjoules(repeatability + open_joules), provenance, state.energy.sensor, method)


def between_now(monitor, begin, end):
    """(measurement of an interval that is over, whether it is final). Never waits."""
    if now() - end > _LAG:
        found = monitor.between(begin, end, timeout=0)
        if all(e.microjoules is not None or e.domain.reason for e in found.values()):
            return found, True
    return measurement(monitor, "", begin, end), False


def energy_now(window):
    """(measurement of a window that has ended, whether it is final). Never waits."""
    found = window.poll()
    if found is not None:
        return found, True
    try:
        return measurement(window._monitor, window.name, *window._host_edges()), False
    except Error:
        return window.energy, True  # the monitor was closed: this raises what there is to say
