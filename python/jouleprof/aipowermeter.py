"""For scripts that read the experiments of AIPowerMeter: its names, over recordings of jouleprof and its own folders.

    from jouleprof.aipowermeter import experiment, parsers

    driver = parsers.JsonParser("train.jprof")        # or a folder with power_metrics.json
    exp_result = experiment.ExpResults(driver)
    print(exp_result.total_("intel_power"))

The energies are those of `jouleprof report`. A metric that the recording does not have is None, never 0."""

import os
import sys
import tempfile
from typing import Any, Dict, List, Optional, Tuple, Union

from ._errors import NotFound, existing
from ._recorded import flat
from ._recorded.recording import Recording, open_recording
from ._tool import run_tool

__all__ = ["ExpResults", "JsonParser", "experiment", "parsers"]

experiment = parsers = sys.modules[__name__]  # its modules

_Figures = Union[None, float, Dict[str, Optional[float]]]
# The domains of each metric: all of a kind together, or one by one.
_SUMS = {"intel_power": "cpu", "psys_power": "platform", "uncore_power": "cpu_uncore", "total_cpu_power": "cpu_cores",
         "total_dram_power": "dram", "nvidia_draw_absolute": "gpu"}
# The domains of the metrics that are shares of the recorded processes.
_SHARES = {"per_process_cpu_power": "cpu", "per_process_dram_power": "dram", "rel_intel_power": "cpu",
           "nvidia_attributable_power": "gpu", "per_gpu_attributable_power": "gpu"}
_POWERS = (*_SUMS, "per_gpu_power_draw", *_SHARES)


class JsonParser:
    """Opens a recording, or the folder or file of an experiment of AIPowerMeter."""

    def __init__(self, location: "Union[str, os.PathLike[str]]") -> None:
        self.location = os.fspath(existing(location))
        self._temporary: Optional[tempfile.TemporaryDirectory[str]] = None
        path = self.location
        if os.path.isdir(path) or path.endswith(".json"):
            self._temporary = tempfile.TemporaryDirectory()
            path = os.path.join(self._temporary.name, "experiment.jprof")
            run_tool("import", self.location, "-o", path)
        self.recording: Recording = open_recording(path)


class ExpResults:
    """Totals in joules, means and largest in watts, and curves; what is by GPU or process is a dict."""

    def __init__(self, driver: JsonParser) -> None:
        self.recording = driver.recording
        self._domains = {flat.label(domain): domain for domain in self.recording.report()["domains"]}

    def total_(self, metric_name: str, start: Optional[float] = None, end: Optional[float] = None) -> _Figures:
        """Joules, from `start` to `end` in seconds since the beginning."""
        report = self.recording.report(start, end)
        if metric_name in _SUMS:
            return _sum(_of_kind(report["domains"], _SUMS[metric_name]).values())
        if metric_name == "per_gpu_power_draw":
            return _of_kind(report["domains"], "gpu")
        if metric_name not in _SHARES:
            raise NotFound(f"'{metric_name}' is no power with a total; there are: {', '.join(_POWERS)}")
        by_device: Dict[str, Optional[float]] = {}
        by_process: Dict[str, Optional[float]] = {}
        for process in report["processes"]:
            for share in process["energy"]:
                joules = share["energy_joules"]
                if share["domain"] == _SHARES[metric_name] and joules is not None:
                    device, pid = _number(share["device"]), str(process["pid"])
                    by_device[device] = (by_device.get(device) or 0.0) + joules
                    by_process[pid] = (by_process.get(pid) or 0.0) + joules
        if metric_name.startswith("per_process"):
            return by_process or None
        return (by_device or None) if metric_name.startswith("per_gpu") else _sum(by_device.values())

    def average_(self, metric_name: str, start: Optional[float] = None, end: Optional[float] = None) -> _Figures:
        """Watts: the total over the time."""
        seconds = self.recording.report(start, end)["duration_seconds"]
        total = self.total_(metric_name, start, end)
        if isinstance(total, dict):
            return {name: None if joules is None else joules / seconds for name, joules in total.items()}
        return None if total is None else total / seconds

    def max_(self, metric_name: str, start: Optional[float] = None, end: Optional[float] = None) -> _Figures:
        """The largest power of one device, or by GPU; None for what is of several devices or of processes."""
        kind = "gpu" if metric_name == "per_gpu_power_draw" else _SUMS.get(metric_name)
        found = _of_kind(self.recording.report(start, end)["domains"], kind, "peak_watts") if kind else {}
        if metric_name.startswith("per_gpu"):
            return found
        return next(iter(found.values())) if len(found) == 1 else None

    def get_curve(self, name: str) -> List[Dict[str, float]]:
        """[{"date": seconds since 1970, "value": watts}] of a metric of one device."""
        kind = "gpu" if name == "per_gpu_power_draw" else _SUMS.get(name)
        labels = [label for label, domain in self._domains.items() if domain["domain"] == kind]
        if len(labels) != 1:
            raise NotFound(f"'{name}' is of {len(labels)} devices; use jouleprof.open(...).curve(label), of: "
                           f"{', '.join(self._domains)}")
        begin = self.get_duration()[1]
        curve = self.recording.curve(labels[0])
        return [{"date": begin + seconds, "value": watts} for seconds, watts in zip(curve.seconds, curve.watts)]

    def get_duration(self) -> Tuple[float, float, float]:
        """(seconds, begin, end); the last two in seconds since 1970."""
        import datetime

        report = self.recording.report()
        seconds, started = report["duration_seconds"], report["start_time"]
        if started is None:
            return seconds, 0.0, seconds
        text = started.rstrip("Z").split(".")
        begin = datetime.datetime.fromisoformat(f"{text[0]}+00:00").timestamp() + float(f"0.{(text + ['0'])[1]}")
        return seconds, begin, begin + seconds

    def total_power_draw(self) -> Optional[float]:
        """Joules of all whole devices together."""
        joules: Optional[float] = self.recording.report()["total"]["energy_joules"]
        return joules

    def list_metrics(self) -> Dict[str, List[str]]:
        """The metrics that this recording has, by place."""
        report = self.recording.report()
        known = [name for name in _POWERS if self.total_(name) not in (None, {})]
        on_gpu = [name for name in known if name.startswith(("nvidia", "per_gpu"))]
        names = {"CPU": [name for name in known if name not in on_gpu], "GPU": on_gpu,
                 "Experiments": sorted({window["name"] for window in report["windows"]})}
        return {place: found for place, found in names.items() if found}

    def print(self) -> None:
        print(self)

    def __str__(self) -> str:
        return "Available metrics :\n" + "\n".join(
            f"{place}\n  {','.join(names)}" for place, names in self.list_metrics().items())


def _of_kind(domains: List[Dict[str, Any]], kind: str, figure: str = "energy_joules") -> Dict[str, Optional[float]]:
    return {_number(domain["device"]): domain[figure] for domain in domains
            if domain["domain"] == kind and domain[figure] is not None}


def _sum(values: Any) -> Optional[float]:
    found = [value for value in values if value is not None]
    return sum(found) if found else None


def _number(device: str) -> str:
    return device[len("gpu"):] if device.startswith("gpu") else device
