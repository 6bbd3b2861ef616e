"""jouleprof: an energy profiler for deep-learning jobs.

    with jouleprof.window("epoch") as epoch:
        train()
    print(epoch.energy)

Importing this package needs no GPU, no driver and no privileges. The command-line tool comes with
it: ``python -m jouleprof run -- python train.py``.
"""

import importlib
import sysconfig
from importlib import metadata as _metadata

if sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise ImportError(
        "jouleprof does not support free-threaded Python: the package relies on the GIL. "
        "Use the default build of this Python version.")

from ._energy import Domain, Energy, Power
from ._errors import (
    Corrupt,
    Error,
    Internal,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Timeout,
    Unavailable,
    Unsupported,
)
from ._factors import Cost, Factors
from ._live.default import measure, monitor, steps, tagged, total, window
from ._live.monitor import Monitor
from ._live.replay import replay
from ._live.window import Window
from ._measurement import Measurement, Total
from ._metrics import metrics
from ._native import now
from ._native import version as _native_version
from ._power_limit import (
    MaxSlowdownConstraint,
    PowerLimitMeasurement,
    PowerLimitOptimizer,
    ZeusCost,
)
from ._recorded.recording import Recording
from ._recorded.recording import open_recording as _open
from ._recorded.recordings import Recordings, open_all
from ._recorded.reports import Report, report
from ._snapshot import DomainSnapshot, Snapshot

__all__ = [
    "Corrupt", "Cost", "Domain", "DomainSnapshot", "Energy", "Error", "Factors", "Internal", "InvalidArgument",
    "MaxSlowdownConstraint", "Measurement", "Monitor", "NotFound", "PermissionDenied", "Power",
    "PowerLimitMeasurement", "PowerLimitOptimizer", "Recording", "Recordings", "Report", "Snapshot", "Timeout", "Total",
    "Unavailable", "Unsupported", "Window", "ZeusCost", "__version__", "measure", "metrics", "monitor", "now",
    "open_all", "replay", "report", "steps", "tagged", "total", "window",
]


def __getattr__(name: str) -> object:
    """Parts that are imported when they are used: `jouleprof.plot.power("train.jprof")`."""
    if name in ("aipowermeter", "bench", "callbacks", "codecarbon", "plot", "serving", "torch", "zeus"):
        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


open = _open  # not in __all__: a star import would hide Python's own

try:
    __version__ = _metadata.version("jouleprof")
except _metadata.PackageNotFoundError:  # imported from a build tree
    __version__ = _native_version()
