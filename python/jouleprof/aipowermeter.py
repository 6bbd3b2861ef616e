"""For scripts that read the experiments of AIPowerMeter: its names, over recordings of jouleprof and its own folders.

    from jouleprof.aipowermeter import experiment, parsers

    driver = parsers.JsonParser("train.jprof")        # or a folder with power_metrics.json
    exp_result = experiment.ExpResults(driver)
    print(exp_result.total_("intel_power"))

The energies are those of `jouleprof report`. Memory, CPU and GPU use of processes are those of the lines that
AIPowerMeter wrote, or that `jouleprof export` writes as it does. A metric that is not there is None, never 0."""

import datetime
import json
import os
import sys
import tempfile
from typing import Any, Dict, List, Optional, Tuple, Union

from ._errors import Error, InvalidArgument, NotFound, existing, warn
from ._live.monitor import Monitor
from ._recorded import flat
from ._recorded.recording import Recording, open_recording
from ._tool import run_tool

__all__ = ["STOP_MESSAGE", "ExpResults", "Experiment", "JsonParser", "experiment", "parsers"]

STOP_MESSAGE = "Stop"
_RECORDING = "experiment.jprof"

experiment = parsers = sys.modules[__name__]  # its modules

_Figures = Union[None, float, Dict[str, Optional[float]]]
# The domains of each metric: all of a kind together, or one by one.
_SUMS = {"intel_power": "cpu", "psys_power": "platform", "uncore_power": "cpu_uncore", "total_cpu_power": "cpu_cores",
         "total_dram_power": "dram", "nvidia_draw_absolute": "gpu"}
# The domains of the metrics that are shares of the recorded processes.
_SHARES = {"per_process_cpu_power": "cpu", "per_process_dram_power": "dram", "rel_intel_power": "cpu",
           "nvidia_attributable_power": "gpu", "per_gpu_attributable_power": "gpu"}
_POWERS = (*_SUMS, "per_gpu_power_draw", *_SHARES)
# What AIPowerMeter's results call it, and its files.
_IN_FILES = {"nvidia_mem_use": "per_gpu_attributable_mem_use", "nvidia_sm_use": "per_gpu_absolute_percent_usage"}
_Series = List[Tuple[float, Dict[str, float]]]  # seconds since 1970; values by process or GPU; "" where there is one


class JsonParser:
    """A recording, or the folder or file of an experiment of AIPowerMeter; or the folder that an Experiment writes."""

    def __init__(self, location: "Union[str, os.PathLike[str]]") -> None:
        self.location = os.fspath(location)
        self._temporary: Optional[tempfile.TemporaryDirectory[str]] = None
        self._recording: Optional[Recording] = None
        self._lines: Optional[List[Dict[str, Any]]] = None

    @property
    def recording(self) -> Recording:
        """The recording that the folder has."""
        if self._recording is None:
            path = found = existing(self.location)
            own = os.path.join(path, _RECORDING)
            if os.path.exists(own):
                path = own
            elif os.path.isdir(path) or path.endswith(".json"):
                self._temporary = tempfile.TemporaryDirectory()
                path = os.path.join(self._temporary.name, _RECORDING)
                run_tool("import", found, "-o", path)
            self._recording = open_recording(path)
        return self._recording

    def lines(self) -> List[Dict[str, Any]]:
        """The lines of power_metrics.json: of AIPowerMeter, or of an export of the recording."""
        if self._lines is None:
            file = self.location
            if os.path.isdir(file):
                file = os.path.join(file, "power_metrics.json")
            elif not file.endswith(".json"):
                recording = self.recording
                self._temporary = self._temporary or tempfile.TemporaryDirectory()
                file = os.path.join(self._temporary.name, "power_metrics.json")
                run_tool("export", recording.path, "--format", "aipowermeter", "-o", file)
            with open(existing(file), encoding="utf-8") as lines:
                found = [json.loads(line) for line in lines if line.strip()]
            self._lines = [line for line in found if isinstance(line, dict) and "metrics" in line]
        return self._lines


class Experiment:
    """Measures this program from measure_yourself() until STOP_MESSAGE, into the driver's folder: experiment.jprof, for
    `jouleprof report` too, and power_metrics.json. `model` and `input_size` have no effect: `jouleprof run --layers`
    counts parameters and multiply-adds."""

    def __init__(self, driver: JsonParser, model: Any = None, input_size: Any = None, **_: Any) -> None:
        self.driver = driver

    def measure_yourself(self, period: float = 1.0) -> "Tuple[_Measuring, _Measuring]":
        """(process, queue), as AIPowerMeter: put(STOP_MESSAGE) ends the measurement. `period` has no effect: each
        sensor is read as often as it changes."""
        measuring = _Measuring(self.driver.location)
        return measuring, measuring


class _Measuring:
    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        self._folder = folder
        log = os.path.join(folder, _RECORDING)
        if os.path.exists(log):
            raise InvalidArgument(f"{log} is of an earlier experiment; delete it, or give JsonParser another folder")
        self._monitor = Monitor(log=log)

    def put(self, message: Any) -> None:
        if message != STOP_MESSAGE:
            return
        self.join()

    def join(self, timeout: Optional[float] = None) -> None:
        if self._monitor.closed:
            return
        self._monitor.close()
        log, lines = (os.path.join(self._folder, name) for name in (_RECORDING, "power_metrics.json"))
        try:
            run_tool("export", log, "--format", "aipowermeter", "-o", lines)
        except (Error, OSError) as error:  # the work is done, and its recording is there
            warn(f"{lines} is not written: {error}; `jouleprof export {log} -o {lines}` makes it")

    def is_alive(self) -> bool:
        return not self._monitor.closed


class ExpResults:
    """Totals in joules, means and largest in watts, and curves; what is by GPU or process is a dict."""

    def __init__(self, driver: JsonParser) -> None:
        self.recording = driver.recording
        self._driver = driver
        self._domains = {flat.label(domain): domain for domain in self.recording.report()["domains"]}

    def total_(self, metric_name: str, start: Optional[float] = None, end: Optional[float] = None) -> _Figures:
        """Joules, from `start` to `end` in seconds since the beginning."""
        report = self.recording.report(start, end)
        if metric_name in _SUMS:
            return _sum(_of_kind(report["domains"], _SUMS[metric_name]).values())
        if metric_name == "per_gpu_power_draw":
            return _of_kind(report["domains"], "gpu")
        if metric_name not in _SHARES:
            raise NotFound(f"'{metric_name}' is no power with a total; there are: {', '.join(_POWERS)}. average_, max_ "
                           "and get_curve have the others")
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
            return by_process or self._charged(metric_name, start, end)
        if not by_device and metric_name.endswith("attributable_power"):
            by_device = {**(self._charged("per_gpu_attributable_power", start, end) or {})}
        return (by_device or None) if metric_name.startswith("per_gpu") else _sum(by_device.values())

    def _charged(self, name: str, start: Optional[float], end: Optional[float]) -> Optional[Dict[str, float]]:
        """Joules that AIPowerMeter charged to each process: a line's watts are those since the line before."""
        series, begin = self._series(name), self.get_duration()[1]
        found: Dict[str, float] = {}
        for (before, _), (now, values) in zip(series, series[1:]):
            first, last = max(before, begin + (start or 0.0)), now if end is None else min(now, begin + end)
            for process, watts in values.items():
                found[process] = found.get(process, 0.0) + watts * max(last - first, 0.0)
        return found or None

    def _series(self, name: str, start: Optional[float] = None, end: Optional[float] = None) -> _Series:
        """A metric of the lines; empty where they do not have it."""
        found: _Series = []
        begin = self.get_duration()[1]
        for line in self._driver.lines():
            moment = _moment(line["date"])
            metrics = {**(line["metrics"].get("cpu") or {}), **(line["metrics"].get("gpu") or {})}
            values = _values(metrics.get(name, metrics.get(_IN_FILES.get(name, ""))))
            if values and moment >= begin + (start or 0.0) and (end is None or moment <= begin + end):
                found.append((moment, values))
        return found

    def _of_lines(self, name: str, start: Optional[float], end: Optional[float], figure: Any) -> _Figures:
        columns: Dict[str, List[float]] = {}
        for _, values in self._series(name, start, end):
            for key, value in values.items():
                columns.setdefault(key, []).append(value)
        made = {key: figure(values) for key, values in columns.items()}
        return made.get("") if list(made) == [""] else made or None

    def average_(self, metric_name: str, start: Optional[float] = None, end: Optional[float] = None) -> _Figures:
        """Watts: the total over the time. Of what is no power, the mean of the lines."""
        if metric_name not in _POWERS:
            return self._of_lines(metric_name, start, end, lambda values: sum(values) / len(values))
        seconds = self.recording.report(start, end)["duration_seconds"]
        total = self.total_(metric_name, start, end)
        if isinstance(total, dict):
            return {name: None if joules is None else joules / seconds for name, joules in total.items()}
        return None if total is None else total / seconds

    def max_(self, metric_name: str, start: Optional[float] = None, end: Optional[float] = None) -> _Figures:
        """The largest power of one device, or by GPU; None for the sum of several devices. Of what is no power of
        devices, the largest of the lines."""
        if metric_name not in _SUMS and metric_name != "per_gpu_power_draw":
            return self._of_lines(metric_name, start, end, max)
        kind = "gpu" if metric_name == "per_gpu_power_draw" else _SUMS.get(metric_name)
        found = _of_kind(self.recording.report(start, end)["domains"], kind, "peak_watts") if kind else {}
        if metric_name.startswith("per_gpu"):
            return found
        return next(iter(found.values())) if len(found) == 1 else None

    def get_curve(self, name: str) -> List[Dict[str, Any]]:
        """[{"date": seconds since 1970, "value": watts}] of a metric of one device; of what is no power of devices,
        the values of the lines, with `value` a dict by process or GPU."""
        if name not in _SUMS and name != "per_gpu_power_draw":
            return [{"date": moment, "value": values.get("", values)} for moment, values in self._series(name)]
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
        report = self.recording.report()
        seconds, started = report["duration_seconds"], report["start_time"]
        if started is None:
            return seconds, 0.0, seconds
        begin = flat.nanoseconds(started) / 10**9
        return seconds, begin, begin + seconds

    def total_power_draw(self) -> Optional[float]:
        """Joules of all whole devices together."""
        joules: Optional[float] = self.recording.report()["total"]["energy_joules"]
        return joules

    def list_metrics(self) -> Dict[str, List[str]]:
        """The metrics that this recording has, by place."""
        report = self.recording.report()
        known = [name for name in _POWERS if self.total_(name) not in (None, {})]
        for line in self._driver.lines():
            for place in ("cpu", "gpu"):
                known += [name for name, value in (line["metrics"].get(place) or {}).items()
                          if name not in known and _values(value)]
        on_gpu = [name for name in known if name.startswith(("nvidia", "per_gpu"))]
        charges = {f"process {process}" for name in known if name.startswith("per_process")
                   for _, values in self._series(name) for process in values}
        names = {"CPU": [name for name in known if name not in on_gpu], "GPU": on_gpu,
                 "Experiments": sorted({window["name"] for window in report["windows"]} - charges)}
        return {place: found for place, found in names.items() if found}

    def print(self) -> None:
        """Prints the metrics that there are, and of which figures."""
        print(self)

    def __str__(self) -> str:
        return "Available metrics :\n" + "\n".join(
            f"{place}\n  {','.join(names)}" for place, names in self.list_metrics().items())


def _moment(date: str) -> float:
    """Seconds since 1970. AIPowerMeter's dates are local time."""
    return datetime.datetime.fromisoformat(date).timestamp()


def _values(value: Any, prefix: str = "") -> Dict[str, float]:
    """By process or GPU, of both as "0/4242"; -1 and null are how AIPowerMeter writes what is absent."""
    if isinstance(value, dict):
        found: Dict[str, float] = {}
        for key, inner in value.items():
            if key == "all" and len(value) > 1:
                continue  # the sum of the others
            found.update(_values(inner, f"{prefix}/{key}" if prefix else key))
        return found
    if isinstance(value, list):
        value = sum(value) if value else None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return {prefix: float(value)} if is_number and value >= 0 else {}


def _of_kind(domains: List[Dict[str, Any]], kind: str, figure: str = "energy_joules") -> Dict[str, Optional[float]]:
    return {_number(domain["device"]): domain[figure] for domain in domains
            if domain["domain"] == kind and domain[figure] is not None}


def _sum(values: Any) -> Optional[float]:
    found = [value for value in values if value is not None]
    return sum(found) if found else None


def _number(device: str) -> str:
    return device[len("gpu"):] if device.startswith("gpu") else device
