"""Figures of sweeps and recordings, with matplotlib: pip install '.[plot]' in a clone, or pip install matplotlib.

sweep() draws all panels of one sweep, compare_sweeps() energy and time of several on one figure, and
power() the power curves of one or more recordings with their 95 % intervals, and curves() one or two of
jouleprof.open(...).curve(...), each with an axis of its own. Each returns a matplotlib Figure, and writes it where `output` is given.
"""

from ._curves import curves, power
from ._sweeps import compare_sweeps, sweep
from ._tables import save_table

__all__ = ["compare_sweeps", "curves", "power", "save_table", "sweep"]
