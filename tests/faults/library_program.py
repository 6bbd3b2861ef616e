"""A Python program that measures a part of its work, with a log if an argument names one. It ends with status 5,
whatever happens to its measurement."""

import ctypes
import json
import sys
import time

import jouleprof

FAULTS = getattr(ctypes.CDLL(None), "jouleprof_faults", lambda on: None)


def energies_of(measurement):
    """The GPU's energy and the half of its interval in microjoules, where it is there."""
    return [[e.microjoules, e.error_microjoules] for e in measurement.values()
            if e.domain is not None and e.domain.kind == "gpu" and e.microjoules is not None]


def measure(found):
    log = sys.argv[1] if len(sys.argv) > 1 else None
    with jouleprof.Monitor(log=log, overwrite=True) as monitor:
        with monitor.window("work") as window:
            end = time.monotonic() + 0.3
            while time.monotonic() < end:
                found["sum"] += 1
        found["seconds"] = window.time
        found["window"] = energies_of(window.energy)
        found["total"] = energies_of(monitor.total("work"))


def main():
    found = {"sum": 0, "seconds": 0, "window": [], "total": []}
    FAULTS(1)
    try:
        measure(found)
    except (jouleprof.Error, MemoryError, OSError, RuntimeError) as error:
        FAULTS(0)
        found["error"] = repr(error)
    FAULTS(0)
    print(json.dumps(found))
    return 5


if __name__ == "__main__":
    sys.exit(main())
