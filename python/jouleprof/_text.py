"""Numbers as text for people: about four significant digits, never a figure that is not there."""

import html
import math

_JOULES = ((1e6, "MJ"), (1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "uJ"))


def number(value):
    """Four significant digits without an exponent: 3.086, 148.0, 12345."""
    if value == 0:
        return "0"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(digits, 9)}f}"


def joules(value):
    """"12.34 kJ"; "-" for None."""
    if value is None:
        return "-"
    for scale, unit in _JOULES:
        if abs(value) >= scale:
            return f"{number(value / scale)} {unit}"
    return "0 J"


def seconds(value):
    """"831.2 ms", "83.42 s"."""
    if value is None:
        return "-"
    if abs(value) >= 1:
        return f"{number(value)} s"
    if abs(value) >= 1e-3:
        return f"{number(value * 1e3)} ms"
    return f"{number(value * 1e6)} us"


def csv_cell(value):
    """As csv_field of the tool has it: spreadsheets take a text that begins so for a formula, and run it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value


def of_csv_cell(cell):
    """The text that csv_cell was given."""
    return cell[1:] if cell.startswith("'") and csv_cell(cell[1:]) == cell else cell


def word(provenance):
    """The provenance, in capitals unless it is "measured": nothing else may be taken for that."""
    return provenance if provenance in ("measured", "unavailable") else provenance.upper()


def interval(value, error):
    """"±5.0 %", or in joules where it is wider than the figure."""
    if value is None or error is None:
        return "-"
    if value <= 0 or error > value:
        return f"±{joules(error)}"
    percent = 100 * error / value
    return f"±{percent:.2g} %" if percent < 0.995 else f"±{percent:.1f} %"


def bounds(value, low, high, amount=joules):
    """The same of an interval with two bounds: "±5.0 %", "-5.0 % +12.0 %", or "at most 772 J" where the lower one is 0
    and the upper one far. `amount`: the text of a value."""
    if value is None or low is None or high is None:
        return "-"
    below, above = value - low, high - value
    if above >= below and above <= 1.05 * below + 1e-6:
        return interval(value, above) if value > 0 and above <= value else f"±{amount(above)}"
    if low <= 0:
        return f"at most {amount(high)}"
    percents = [f"{100 * part / value:+.{1 if abs(part) >= 0.00995 * value else 2}f} %" for part in (-below, above)]
    return f"±{percents[1][1:]}" if percents[0][1:] == percents[1][1:] and above >= 0 else " ".join(percents)


def shortened(text, length=60):
    """At most so long; what is cut off is marked."""
    return text if len(text) <= length else text[:length - 3].rstrip() + "..."


def table(rows):
    """Rows of cells, columns lined up; the first and the last two to the left."""
    columns = len(rows[0])
    widths = [max(len(row[i]) for row in rows) for i in range(columns)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if 0 < i < columns - 2 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def html_table(title, rows):
    """The same rows for a notebook, whose colours they take; the first row has the titles."""
    columns = len(rows[0])

    def cell(tag, i, text):
        side = "right" if 0 < i < columns - 2 else "left"
        return f'<{tag} style="text-align: {side}">{html.escape(text)}</{tag}>'

    lines = [f"<tr>{''.join(cell('td', i, text) for i, text in enumerate(row))}</tr>" for row in rows[1:]]
    head = "".join(cell("th", i, text) for i, text in enumerate(rows[0]))
    return (f"<table><caption style=\"text-align: left\">{html.escape(title)}</caption>"
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>")
