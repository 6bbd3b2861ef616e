"""Power curves of recordings."""

import os
from typing import TYPE_CHECKING, Optional, Sequence, Union

from .._errors import InvalidArgument, NotFound
from .._recorded.curves import Curve, read_curves
from ._figure import COLOURS, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Path = Union[str, "os.PathLike[str]"]


def power(*paths: Path, output: Optional[Path] = None, domains: Optional[Sequence[str]] = None) -> "Figure":
    """Power over the time since each command began, with 95 % intervals without the calibration error.

    Several recordings are drawn over one another. domains: labels such as "gpu0"; None: of one
    recording all whole GPUs, else the first domain."""
    if not paths:
        raise InvalidArgument("plot.power takes the paths of one or more recordings")
    recordings = [(os.path.basename(str(path)), _chosen(path, domains)) for path in paths]
    figure, (axis,) = new_figure(1, 1, width=9, height=3.6)
    drawn = [(name, curve) for name, curves in recordings for curve in curves]
    for (name, curve), colour in zip(drawn, COLOURS * len(drawn)):
        label = curve.label if len(recordings) == 1 else f"{name}: {curve.label}"
        _draw(axis, curve, colour, label)
    axis.set_ylim(bottom=0)
    axis.set_xlabel("time since the command began (s)", fontsize=8)
    axis.set_title(_title([curve for _, curve in drawn]), fontsize=9.5, loc="left", fontweight="bold")
    axis.legend(fontsize=8, frameon=False, loc="upper right", ncols=min(3, len(drawn)))
    return finish(figure, output)


def curves(first: Curve, second: Optional[Curve] = None, *, labels: Optional[Sequence[str]] = None,
           output: Optional[Path] = None) -> "Figure":
    """One or two curves of Recording.curve() on one figure, with 95 % intervals without the calibration error.

    Two domains have an axis each, the second's on the right: a CPU and a GPU differ by ten times. Those of one
    name, from two recordings, share one, and the legend names the files. Axes begin at 0."""
    drawn = [first] if second is None else [first, second]
    for curve in drawn:
        if not isinstance(curve, Curve):
            raise InvalidArgument("plot.curves takes curves, such as jouleprof.open('train.jprof').curve('gpu0'), "
                                  f"not {curve!r}")
    alike = second is not None and first.name == second.name
    if labels is None:
        labels = [f"{curve.recording}: {curve.label}" if alike else curve.label for curve in drawn]
    else:
        if isinstance(labels, str) or len(labels) != len(drawn):
            raise InvalidArgument(f"labels is a list with one text for each of the {len(drawn)} curves, not {labels!r}")
        labels = [label if curve.provenance == "measured" else f"{label} {curve.provenance.upper()}"
                  for label, curve in zip(labels, drawn)]
    figure, (axis,) = new_figure(1, 1, width=9, height=3.6)
    axes = [axis, axis if alike or second is None else axis.twinx()]
    lines = []
    for place, curve, colour, label in zip(axes, drawn, COLOURS, labels):
        lines += _draw(place, curve, colour, label)
        colour = "black" if alike else colour
        place.set_ylabel(f"{curve.name if alike else label} (W)", fontsize=8, color=colour)
        place.tick_params(axis="y", labelsize=8, colors=colour)
    for place in axes:  # once both are drawn: it ends the scaling
        place.set_ylim(bottom=0)
    axis.set_xlabel("time since the command began (s)", fontsize=8)
    axis.set_title(_title(drawn), fontsize=9.5, loc="left", fontweight="bold")
    axis.legend(handles=lines, fontsize=8, frameon=False, loc="upper right", ncols=len(lines))
    return finish(figure, output)


_BINS = 400  # of a curve with more steps than a figure has places
_JOINED = 8  # bins of one mean: the means of short bins would beat with a load of about their own period


def _draw(axis, curve, colour, label):
    """A line with its band. More steps than there are places would be one block: these are the least and the
    greatest of each bin, and the mean of some bins."""
    count = len(curve.watts)
    if count <= 2 * _BINS:
        axis.fill_between(curve.seconds, curve.low, curve.high, step="post", color=colour, alpha=0.22, linewidth=0)
        return axis.step(curve.seconds, curve.watts, where="post", color=colour, linewidth=1, label=label)
    bins = _parts(count, _BINS)
    axis.fill_between([curve.seconds[b] for b, _ in bins], [_of(min, curve.low[b:e]) for b, e in bins],
                      [_of(max, curve.high[b:e]) for b, e in bins], step="post", color=colour, alpha=0.25, linewidth=0)
    means = _parts(count, _BINS // _JOINED)
    return axis.step([curve.seconds[b] for b, _ in means], [_of(_mean, curve.watts[b:e]) for b, e in means],
                     where="post", color=colour, linewidth=1.4, label=label)


def _title(curves):
    if all(len(curve.watts) <= 2 * _BINS for curve in curves):
        return "power (W), with 95 % intervals"
    length = max(curve.seconds[-1] - curve.seconds[0] for curve in curves)
    return (f"power (W): means of {length * _JOINED / _BINS:.3g} s; band: least and greatest 95 % interval "
            f"of each {length / _BINS:.2g} s")


def _parts(count, parts):
    edges = [count * i // parts for i in range(parts + 1)]
    return list(zip(edges, edges[1:]))


def _mean(values):
    return sum(values) / len(values)


def _of(what, values):
    """Of the steps that are known; NaN, which is not drawn, where there are none."""
    known = [value for value in values if value is not None and value == value]
    return what(known) if known else float("nan")


def _chosen(path, domains):
    curves = read_curves(path)
    if domains is not None:
        labels = [domains] if isinstance(domains, str) else list(domains)
        known = [curve.name for curve in curves]
        for label in labels:
            if label not in known:
                raise NotFound(f"{os.fspath(path)} has no curve of '{label}'; it has: {', '.join(known)}")
        return [curve for curve in curves if curve.name in labels]
    gpus = [curve for curve in curves if curve.name.startswith("gpu") and " " not in curve.name]
    return gpus or curves[:1]
