"""What the panels of a sweep show."""

from dataclasses import dataclass, field
from typing import Dict, List, Tuple

# Columns of gpu-tune's tables, as panels.
TABLE = {"temperature": ("temperature (\N{DEGREE SIGN}C)", 1), "gpu_utilization": ("utilisation of compute (%)", 1),
          "memory_utilization": ("utilisation of memory (%)", 1), "loss": ("loss", 1)}
# Members of a run, as panels.
RUN = {"sm_megahertz": ("SM clock (MHz)", 1), "end_celsius": ("temperature at the end (\N{DEGREE SIGN}C)", 1),
        "sm_utilisation_ratio": ("utilisation of compute (%)", 100),
        "memory_utilisation_ratio": ("utilisation of memory (%)", 100), "loss": ("loss", 1)}

Points = List[Tuple[float, float]]  # setting, value


@dataclass
class Panel:
    title: str
    raw: Points  # each measurement
    means: Points  # one of each setting
    bars: Dict[float, Tuple[float, float]] = field(default_factory=dict)  # 95 % intervals, by setting


def panels_of_work(found, samples, unit, per):
    means = [(p["setting"], p["seconds"], p["energy_joules"]) for p in found["points"]]

    def panel(title, value):
        return Panel(title, *([(x, value(seconds / per, joules / per)) for x, seconds, joules in values]
                              for values in (samples, means)))

    energy = panel(f"energy per {unit} (J)", lambda seconds, joules: joules)
    time = panel(f"time per {unit} (s)", lambda seconds, joules: seconds)
    reference = next((p for p in found["points"] if p["setting"] == found["reference"]), None)
    for point in found["points"] if reference else []:
        for drawn, key, figure in ((energy, "saving", "energy_joules"),
                                   (time, "slowdown", "seconds")):
            interval = point[f"{key}_interval_ratio"]
            if interval is None or point is reference:
                continue
            sign = -1 if key == "saving" else 1
            ends = [reference[figure] / per * (1 + sign * v) for v in interval]
            # Blocks weigh the ratio, but not the mean that is drawn: the bar contains both.
            ends.append(point[figure] / per)
            drawn.bars[point["setting"]] = (min(ends), max(ends))
    return [panel(f"throughput ({unit}s/s)", lambda seconds, joules: 1 / seconds), time, energy,
            panel("mean power (W)", lambda seconds, joules: joules / seconds)]


def panels_of_state(rows, titles):
    panels = []
    for key, (title, scale) in titles.items():
        raw = [(x, scale * float(row[key])) for x, row in rows if row.get(key) not in (None, "")]
        by_setting = {}
        for x, y in raw:
            by_setting.setdefault(x, []).append(y)
        panels.append(Panel(title, raw, [(x, sum(ys) / len(ys)) for x, ys in by_setting.items()]))
    return panels
