"""Figures of sweeps."""

import datetime
import math
from typing import TYPE_CHECKING, Any, Optional

from .._errors import InvalidArgument, Unavailable
from ._curves import Path
from ._data import read_sweep
from ._figure import COLOURS, FAINT, MARK, finish, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = 3


def sweep(path: Path, output: Optional[Path] = None, **asked: Any) -> "Figure":
    """All panels of one sweep against its setting. Dots are single measurements, bars 95 % intervals
    of the difference from the reference; the curve through the means is monotone between them.

    asked: unit="token", per=tokens of a measured unit, objective, max_slowdown="5%"."""
    data = read_sweep(path, **asked)
    rows = math.ceil((len(data.panels) + 1) / _COLUMNS)
    figure, axes = new_figure(rows, _COLUMNS)
    figure.suptitle(_dated(_title(data)), fontsize=12, fontweight="bold", x=0.012, ha="left")
    for axis, panel in zip(axes, data.panels):
        _draw(axis, panel, data, COLOURS[0])
        _widen(axis)
        axis.set_title(panel.title, fontsize=9.5, loc="left", fontweight="bold")
        axis.set_xlabel(f"{data.knob} ({data.knob_unit})", fontsize=8)
    _summary(axes[len(data.panels)], data)
    for axis in axes[len(data.panels) + 1:]:
        axis.set_visible(False)
    return finish(figure, output)


def compare_sweeps(*paths: Path, output: Optional[Path] = None, **asked: Any) -> "Figure":
    """Energy and time of several sweeps on one figure, with 95 % intervals."""
    all_data = [read_sweep(path, **asked) for path in paths]
    if not all_data:
        raise InvalidArgument("plot.compare_sweeps takes the paths of two or more sweeps")
    for data in all_data:
        if data.panel("energy") is None:
            raise Unavailable(f"{data.name} has no setting whose energy can be drawn; "
                              f"`jouleprof recommend {data.name}` says why")
    figure, axes = new_figure(1, 3, width=4.6, height=3.6)
    summary = axes.pop()
    figure.suptitle(_dated("; ".join(_title(data) for data in all_data)), fontsize=10, fontweight="bold", x=0.012,
                    ha="left")
    summary.set_axis_off()
    summary.set_title("summary", fontsize=9.5, loc="left", fontweight="bold", color=FAINT)
    words = [line for data in all_data for line in [_name(data), *_advice(data), ""]]
    summary.text(0, 1, "\n".join(_wrapped(words, 50)), transform=summary.transAxes, va="top", fontsize=8,
                 family="monospace", color="#222222")
    for axis, start in zip(axes, ("energy", "time")):
        for data, colour in zip(all_data, COLOURS * len(all_data)):
            _draw(axis, data.panel(start), data, colour, label=_name(data))
        panel = all_data[0].panel(start)
        same = len({data.panel(start).title for data in all_data}) == 1
        axis.set_title(panel.title if same else {"energy": "energy (J)", "time": "time (s)"}[start],
                       fontsize=9.5, loc="left", fontweight="bold")
        knobs = sorted({f"{data.knob} ({data.knob_unit})" for data in all_data})
        axis.set_xlabel(" / ".join(knobs), fontsize=8)
        axis.set_ylim(bottom=0)
    axes[0].legend(fontsize=8, frameon=False, loc="best")
    return finish(figure, output)


def _draw(axis, panel, data, colour, label=None):
    means = sorted(panel.means)
    axis.plot(*monotone(means), color=colour, linewidth=1.5, zorder=2, label=label)
    axis.plot([x for x, _ in panel.raw], [y for _, y in panel.raw], linestyle="", marker="o", markersize=3.5,
              color=colour, alpha=0.45, markeredgewidth=0, zorder=3, gid="raw")
    for x, y in means:
        if x in panel.bars:
            low, high = panel.bars[x]
            axis.plot([x, x], [low, high], color=colour, linewidth=2.2, alpha=0.8, solid_capstyle="butt", zorder=2)
        if x == data.recommended:
            axis.plot([x], [y], linestyle="", marker="o", markersize=9, markerfacecolor="none",
                      markeredgecolor=MARK if label is None else colour, markeredgewidth=1.8, zorder=4,
                      gid="recommended")
    if data.recommended is not None and label is None:
        axis.axvline(data.recommended, color=MARK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)


def _widen(axis, least=0.1):
    """Noise shall not look like an effect: the axis spans at least a tenth of what it shows."""
    low, high = axis.get_ylim()
    missing = least * abs(low + high) / 2 - (high - low)
    if missing > 0:
        axis.set_ylim(low - missing / 2, high + missing / 2)


def _name(data):
    return f"{data.name} SIMULATED" if data.advice.get("simulated") else data.name


def _title(data):
    if data.recommended is None:
        return f"{_name(data)}: sweep of the {data.knob}"
    return f"{_name(data)}: {data.recommended:g} {data.knob_unit} is the recommended {data.knob}"


def _percent(ratio, interval):
    text = f"{100 * ratio:+.1f} %"
    # Of equal rows there is no spread, and no interval.
    return text if interval is None or interval[0] == interval[1] else f"{text}  ({100 * interval[0]:+.1f} to {100 * interval[1]:+.1f})"


def _summary(axis, data):
    """The recommendation in words."""
    axis.set_axis_off()
    lines = [*_advice(data), "", "dots: measurements; bars: 95 %", "curve: monotone between means"]
    axis.text(0, 1, "\n".join(_wrapped(lines)), transform=axis.transAxes, va="top", fontsize=8, family="monospace",
              color="#222222")
    axis.set_title("summary", fontsize=9.5, loc="left", fontweight="bold", color=FAINT)


def _advice(data):
    advice = data.advice
    lines = []
    if data.recommended is None:
        lines.append(f"no recommendation: {advice['reason']}")
    else:
        best = next(p for p in advice["points"] if p["setting"] == data.recommended)
        saving = best["saving_interval_ratio"]
        lines += [f"recommended   {data.recommended:g} {data.knob_unit}",
                  f"reference     {data.reference:g} {data.knob_unit}",
                  f"energy        {_percent(-best['saving_ratio'], saving and [-saving[1], -saving[0]])}",
                  f"time          {_percent(best['slowdown_ratio'], best['slowdown_interval_ratio'])}"]
        if saving is None:
            lines.append("measured once: no interval")
    for setting, reason in sorted(data.unranked.items(), reverse=True):
        lines.append(f"not ranked    {setting:g} {data.knob_unit}: {reason}")
    return [*lines, *data.left_out]


def _dated(title):
    """With the time at which the figure was made."""
    return f"{title}  ({datetime.datetime.now():%Y-%m-%d %H:%M})"


def _wrapped(lines, width=44):
    import textwrap

    for line in lines:
        yield from textwrap.wrap(line, width, subsequent_indent=" " * 14) or [""]


def _slopes(xs, ys):
    """The slopes at the points, of a cubic between each two."""
    steps = [x1 - x0 for x0, x1 in zip(xs, xs[1:])]
    secants = [(y1 - y0) / h for y0, y1, h in zip(ys, ys[1:], steps)]
    if len(xs) < 3:
        return [secants[0]] * len(xs)
    slopes = [secants[0]]
    for h0, h1, d0, d1 in zip(steps, steps[1:], secants, secants[1:]):
        if d0 * d1 <= 0:
            slopes.append(0.0)
            continue
        # The weighted harmonic mean.
        w0, w1 = 2 * h1 + h0, h1 + 2 * h0
        slopes.append((w0 + w1) / (w0 / d0 + w1 / d1))
    slopes.append(secants[-1])
    return slopes


def monotone(points, steps=40):
    """(xs, ys) of a curve through `points`, pairs with distinct x, that rises and falls only where they do (Fritsch and
    Carlson 1980). Empty for fewer than two."""
    points = sorted(points)
    if len(points) < 2:
        return [], []
    xs, ys = [x for x, _ in points], [y for _, y in points]
    slopes = _slopes(xs, ys)
    out_x, out_y = [], []
    for i in range(len(xs) - 1):
        h = xs[i + 1] - xs[i]
        for k in range(steps):
            t = k / steps
            out_x.append(xs[i] + t * h)
            out_y.append((1 + 2 * t) * (1 - t)**2 * ys[i] + t * (1 - t)**2 * h * slopes[i]
                         + t * t * (3 - 2 * t) * ys[i + 1] + t * t * (t - 1) * h * slopes[i + 1])
    return out_x + [xs[-1]], out_y + [ys[-1]]
