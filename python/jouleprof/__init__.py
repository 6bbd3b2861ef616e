"""jouleprof: an energy profiler for deep-learning jobs.

Importing this package needs no GPU, no driver and no privileges. The command-line tool comes with
it: ``python -m jouleprof run -- python train.py``.
"""

from importlib.metadata import PackageNotFoundError, version

__all__ = ["__version__"]

try:
    __version__ = version("jouleprof")
except PackageNotFoundError:  # imported from a source tree
    __version__ = "0+unknown"
