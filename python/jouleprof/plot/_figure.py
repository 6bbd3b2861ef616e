"""The look of all figures."""

import os

from .._arguments import path
from .._errors import InvalidArgument, MissingFile, Unavailable

COLOURS = ["#1f77b4", "#e07b00", "#2a9d4a", "#8e4fbf", "#8c564b", "#17a2b8"]
MARK = "#c8102e"
FAINT = "#8a8a8a"


def new_figure(rows, columns, width=4.2, height=2.9):
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Unavailable("matplotlib is missing; install it with: pip install matplotlib") from error
    figure = Figure(figsize=(width * columns, height * rows + 0.6), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)  # needs no display
    axes = [figure.add_subplot(rows, columns, i + 1) for i in range(rows * columns)]
    for axis in axes:
        axis.grid(True, color="#e4e4e4", linewidth=0.8)
        axis.set_axisbelow(True)
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    return figure, axes


def finish(figure, output):
    if output is not None:
        output = path(output, "output")
        if not os.path.isdir(os.path.dirname(output) or "."):
            raise MissingFile(f"cannot write {output}: there is no folder {os.path.dirname(output)}; create it first")
        try:
            figure.savefig(output)
        except ValueError as error:  # of the ending
            raise InvalidArgument(f"cannot write {output}: {error}") from error
    return figure
