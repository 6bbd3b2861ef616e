"""Results as rows, text and CSV. All energies and times are of one run: the mean over the runs."""

import csv
import math
import pathlib
import shutil

from .. import _text
from .._energy import weakest
from . import _names

# Columns after those that other layer profilers have.
_OURS = ("energy_low_j", "energy_high_j", "provenance", "resolvable", "inclusive_energy_j",
         "inclusive_low_j", "inclusive_high_j", "calls", "launches", "reason")


def _per_run(value, runs):
    return None if value is None else value / runs


def _interval(row, name, runs):
    low, high = row[name] if row[name] is not None else (None, None)
    return _per_run(low, runs), _per_run(high, runs)


def _common(row, device, order, runs):
    low, high = _interval(row, "interval_joules", runs)
    inclusive_low, inclusive_high = _interval(row, "inclusive_interval_joules", runs)
    return {
        "exec_id": order,
        "duration_ms": row["busy_seconds"] * 1e3 / runs,
        "avg_power_w": row["mean_watts"],
        "energy_j": _per_run(row["energy_joules"], runs),
        "energy_low_j": low,
        "energy_high_j": high,
        "provenance": row["provenance"],
        "resolvable": row["resolvable"],
        "inclusive_energy_j": _per_run(row["inclusive_joules"], runs),
        "inclusive_low_j": inclusive_low,
        "inclusive_high_j": inclusive_high,
        "calls": _per_run(row["calls"], runs),
        "launches": row["launches"] / runs,
        "reason": row["reason"] or "",
        "device": device["device"],
        "domain": device["domain"],
    }


class Table:
    """One kind of results."""

    def __init__(self, title, name, file, columns, top):
        self.title = title
        self.file = file  # of save(), unless another is given
        self._name = name
        self.columns = columns
        self._top = top  # columns of the file of the first ten, and the results in them

    def results(self, devices, runs, macs):
        rows = []
        for device in devices:
            for order, row in enumerate(device["rows"]):
                made = {self._name: row["name"], "detail": row["detail"] or "",
                        **_common(row, device, order, runs)}
                if "parameters" in row:
                    count = row["macs"] if row["macs"] is not None else macs.get(row["name"])
                    made["parameters"] = row["parameters"]
                    made["macs"] = count
                    energy, calls = made["energy_j"], made["calls"]
                    known = energy is not None and count and calls and made["resolvable"]
                    made["energy_per_mac_j"] = energy / (count * calls) if known else None
                rows.append(made)
        return rows

    def rows(self, results):
        return self.picked(results, self.columns)

    @staticmethod
    def picked(results, names):
        return [[result.get(name) for name in names] for result in results]

    def summary_columns(self):
        """(names of results, the columns of get_summary_stats())."""
        figures = ["duration_ms", "energy_j"]
        return ([self._name, "calls", *figures, "energy_low_j", "energy_high_j"],
                [self._name, "calls", *(f"{name}_mean" for name in figures), "energy_j_low", "energy_j_high"])

    def html(self, results, count):
        """The largest as a table for notebooks."""
        rows = [(self._name, "energy", "95 %", "power", "time", "", "")]
        for result in self.top(results, count):
            rows.append((result[self._name], *_figures(result), _text.word(result["provenance"]), result["reason"]))
        return _text.html_table(f"{self.title}s with the most energy, of one run", rows)

    def top(self, results, count):
        """Of the GPUs; of CPUs where nothing ran on a GPU."""
        known = [result for result in main(results) if result["energy_j"] is not None]
        return sorted(known, key=lambda result: -result["energy_j"])[:count]

    def save(self, path, results):
        path = pathlib.Path(path)
        path = path if path.suffix == ".csv" else path.with_name(path.name + ".csv")
        write(path, self.columns, self.rows(results))
        return path, self.save_top(path, results)

    def save_top(self, path, results):
        path = pathlib.Path(path)
        stem = path.stem if path.suffix == ".csv" else path.name
        path = path.with_name(stem + "_top10_energy.csv")
        write(path, self._top, self.picked(self.top(results, 10), self._top.values()))
        return path

    def summary(self, stats, results, top, warnings):
        line = "=" * 80
        text = [line, f"{self.title.upper()} PROFILING SUMMARY", line, "",
                f"Device: {stats['device']}", "",
                f"Total Execution Time: {_text.number(stats['execution_time_s'] * 1e3)} ms",
                *_totals(stats),
                f"Per run: the mean of {stats['runs']}.", "",
                f"Top {top} Energy Consumers:", self._top_table(results, top)]
        others = [result for result in results if result not in main(results)]
        if others:
            text += ["", "In addition, CPU:", self._top_table(others, top)]
        generation = stats.get("generation")
        if generation:
            text += ["", f"Prefill: {_text.joules(generation['prefill_energy_j'])}, "
                     f"decode: {_text.joules(generation['decode_energy_j'])}, "
                     f"per decoded token: {_text.joules(generation['energy_per_token_j'])}"]
        text += [f"Warning: {warning}" for warning in warnings]
        return "\n".join([*text, line])

    def _top_table(self, results, count):
        found = self.top(results, count)
        if not found:
            return "no row has an energy: " + (results[0]["reason"] if results else "nothing ran")
        return self._lines(found)

    def _lines(self, results):
        rows = [(self._name, "exec_id", "energy", "95 %", "with parts", "power", "time", "calls", "")]
        for result in results:
            calls = result["calls"]
            with_parts = _text.joules(result["inclusive_energy_j"]) if result["resolvable"] else "-"
            energy, error, power, time = _figures(result)
            rows.append((result[self._name], str(result["exec_id"]), energy, error, with_parts, power, time,
                         "" if calls is None else _text.number(calls), _mark(result)))
        return _text.table(rows)


class KernelTable(Table):
    """A kernel's name has a line of its own, below its figures, with grid and block."""

    def _lines(self, results):
        rows = [("#", "energy", "95 %", "power", "time", "launches", "")]
        for rank, result in enumerate(results, 1):
            rows.append((str(rank), *_figures(result), _text.number(result["launches"]), _mark(result)))
        first, *figures = _text.table(rows).split("\n")
        room = shutil.get_terminal_size().columns - len(_INDENT)
        details = ["  " + result["detail"] if result["detail"] else "" for result in results]
        names = _names.shortened([result[self._name] for result in results],
                                 [max(room - len(detail), _LEAST_NAME) for detail in details])
        lines = [first]
        for figure, name, detail in zip(figures, names, details):
            lines += [figure, _INDENT + name + detail]
        return "\n".join(lines)


_INDENT = "   "
_LEAST_NAME = 24  # columns


def main(results):
    """Those of the GPUs; without any, all."""
    return [result for result in results if result["domain"] == "gpu"] or results


def _totals(stats):
    idle = [] if stats["idle_j"] is None else [
        f"  including idle: {_text.joules(stats['idle_j'])}; the figures below exclude it"]
    remark = "" if idle else "; includes idle energy: idle power is not known"
    return [f"Total Energy Consumed: {_text.joules(stats['energy_j'])} ({_text.word(stats['provenance'])}{remark})",
            *idle, f"Average Power Draw: {_watts(stats['avg_power_w'])}"]


def _mark(result):
    """ESTIMATED or SIMULATED: in each row, because rows are copied one by one."""
    word = _text.word(result["provenance"])
    return word if word.isupper() else ""


def _figures(result):
    """Energy, interval, power and time."""
    time = f"{_text.number(result['duration_ms'])} ms"
    if not result["resolvable"]:
        return "not resolvable", "-", "-", time
    error = (result["energy_high_j"] - result["energy_low_j"]) / 2
    return (_text.joules(result["energy_j"]), _text.interval(result["energy_j"], error),
            _watts(result["avg_power_w"]), time)


def _watts(value):
    return "-" if value is None else f"{_text.number(value)} W"


def write(path, columns, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_text.csv_cell(cell) for cell in row] for row in rows)


def _summed(devices, name):
    known = [device[name] for device in devices if device[name] is not None]
    return sum(known) if known else None


def stats(devices, runs, seconds, began, rows):
    """Of one run, on the GPUs; on the CPUs where nothing ran on a GPU. The energy is active energy
    (kernels, idle between launches, unattributed) and idle energy while the runs took place."""
    devices = main(devices)
    rows = main(rows)
    parts = [_summed(devices, name)
             for name in ("kernels_joules", "idle_between_launches_joules", "unattributed_joules")]
    active = sum(part for part in parts if part is not None) / runs
    idle_watts = _summed(devices, "idle_watts")
    time = seconds / runs
    idle = None if idle_watts is None else idle_watts * time
    error = _error(devices, runs)
    if any(device["domain"] == "cpu" for device in devices):
        # Energy of no layer may be other programs'. Errors add up: all come from one power.
        own = [row for row in rows if row["energy_j"] is not None and not _is_outside(row)]
        active = sum(row["energy_j"] for row in own)
        error = sum(row["energy_high_j"] - row["energy_low_j"] for row in own) / 2
    energy = active if idle is None else active + idle
    return {
        "device": ", ".join(device["name"] or device["device"] for device in devices),
        "runs": runs,
        "began": began,
        "execution_time_s": time,
        "energy_j": energy,
        "active_j": active,
        "idle_j": idle,
        "avg_power_w": None if energy is None else energy / time,
        "provenance": weakest(d["provenance"] for d in devices),
        "count": len(rows),
        "active_error_j": error,
        "method": devices[0]["method"],
    }


def _is_outside(row):
    return row.get("layer_name", "").startswith("(")


def _error(devices, runs):
    total = 0.0
    for device in devices:
        if device["measured_interval_joules"] is None:
            return None
        low, high = device["measured_interval_joules"]
        total += ((high - low) / 2) ** 2
    return math.sqrt(total) / runs


def generation(prefill, whole, tokens):
    """Joules of prefill and of the tokens after the first one, each with half of its interval."""
    decode = error = None
    if prefill["energy_j"] is not None and whole["energy_j"] is not None:
        decode = whole["energy_j"] - prefill["energy_j"]
    errors = prefill["active_error_j"], whole["active_error_j"]
    if decode is not None and None not in errors:
        error = math.hypot(*errors)
    rest = tokens - 1
    return {
        "prefill_energy_j": prefill["energy_j"],
        "prefill_error_j": errors[0],
        "prefill_time_s": prefill["execution_time_s"],
        "decode_energy_j": decode,
        "decode_error_j": error,
        "decode_time_s": whole["execution_time_s"] - prefill["execution_time_s"],
        "tokens": tokens,
        "energy_per_token_j": _per_run(decode, rest),
        "energy_per_token_error_j": _per_run(error, rest),
    }


LAYERS = Table(
    "Layer", "layer_name", "layer_power_profile.csv",
    ["layer_name", "exec_id", "start_time", "end_time", "duration_ms", "start_power_w",
     "end_power_w", "avg_power_w", "energy_j", *_OURS, "detail", "parameters", "macs",
     "energy_per_mac_j", "device"],
    {name: name for name in ("layer_name", "exec_id", "avg_power_w", "duration_ms", "energy_j", "provenance")})

KERNELS = KernelTable(
    "Kernel", "kernel_name", "kernel_power_profile.csv",
    ["kernel_name", "exec_id", "duration_ms", "avg_power_w", "energy_j", *_OURS, "detail",
     "device"],
    {"kernel_name": "kernel_name", "total_duration_ms": "duration_ms", "avg_power_w": "avg_power_w",
     "total_energy_j": "energy_j", "provenance": "provenance"})
