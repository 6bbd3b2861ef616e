"""For scripts written for CodeCarbon 3: change `codecarbon` to `jouleprof.codecarbon` in the imports.

The arguments, the configuration (`.codecarbon.config`, `CODECARBON_...`) and the columns of emissions.csv are the same.
No carbon intensity is built in: force_carbon_intensity_g_co2e_kwh gives it, or carbon_file, which CodeCarbon does not
have, and a country's code. Nothing is looked up in the network, and nothing is sent.
"""

import configparser
import contextlib
import csv
import dataclasses
import datetime
import enum
import inspect
import json
import logging
import os
import pathlib
import platform
import re
import uuid
from typing import Any, Callable, Dict, Iterator, List, Optional

from . import _files, _text
from ._arguments import number
from ._energy import Energy
from ._errors import Corrupt, Error, InvalidArgument, NotFound, existing
from ._live import default, measuring
from ._live.monitor import Monitor
from ._measurement import Measurement

__all__ = ["EmissionsData", "EmissionsTracker", "OfflineEmissionsTracker", "OutputMethod", "TaskEmissionsTracker",
           "track_emissions", "track_task_emissions"]

logger = logging.getLogger(__name__)

_COMMON = """project_name measure_power_secs api_call_interval api_endpoint api_key output_dir output_file output_methods
    save_to_file save_to_api save_to_logger logging_logger save_to_prometheus save_to_logfire prometheus_url
    output_handlers gpu_ids emissions_endpoint experiment_id experiment_name electricitymaps_api_token
    co2_signal_api_token tracking_mode log_level on_csv_write logger_preamble""".split()
_LAST = """force_cpu_power force_ram_power pue wue force_carbon_intensity_g_co2e_kwh""".split()
_RUNS = "allow_multiple_runs rapl_include_dram rapl_prefer_psys".split()
_PLACE = "country_iso_code region cloud_provider cloud_region country_2letter_iso_code".split()
_ONLINE = [*_COMMON, *_LAST, "force_mode_cpu_load", *_RUNS, "metadata"]
_DECORATOR = [*_COMMON, "offline", *_PLACE, *_LAST, *_RUNS]
# What cannot be done here; the rest of the arguments without a use changes no figure.
_REFUSED = {"save_to_api", "save_to_prometheus", "save_to_logfire", "emissions_endpoint", "force_cpu_power",
            "force_ram_power"}


class OutputMethod(str, enum.Enum):
    CSV = "csv"
    API = "api"
    LOGGER = "logger"
    PROMETHEUS = "prometheus"
    LOGFIRE = "logfire"
    BOAMPS = "boamps"


@dataclasses.dataclass
class EmissionsData:
    """A row of emissions.csv: seconds, kg, kg/s, watts, kWh, litres. An absent figure is None."""

    timestamp: str
    project_name: str
    run_id: str
    experiment_id: str
    duration: float
    emissions: Optional[float]
    emissions_rate: Optional[float]
    cpu_power: Optional[float]
    gpu_power: Optional[float]
    ram_power: Optional[float]
    cpu_energy: Optional[float]
    gpu_energy: Optional[float]
    ram_energy: Optional[float]
    energy_consumed: Optional[float]
    water_consumed: Optional[float]
    country_name: Optional[str]
    country_iso_code: Optional[str]
    region: Optional[str]
    cloud_provider: Optional[str]
    cloud_region: Optional[str]
    os: str
    python_version: str
    codecarbon_version: str  # jouleprof's, with ESTIMATED or SIMULATED
    cpu_count: Optional[int]
    cpu_model: Optional[str]
    gpu_count: Optional[int]
    gpu_model: Optional[str]
    longitude: Optional[float]
    latitude: Optional[float]
    ram_total_size: float
    tracking_mode: str
    cpu_utilization_percent: Optional[float] = None
    gpu_utilization_percent: Optional[float] = None
    ram_utilization_percent: Optional[float] = None
    ram_used_gb: Optional[float] = None
    on_cloud: str = "N"
    pue: float = 1.0
    wue: float = 0.0

    @property
    def values(self) -> Dict[str, Any]:
        """The columns of a row of emissions.csv, by name."""
        return dict(self.__dict__)

    def toJSON(self) -> str:
        """The columns as an object of JSON."""
        return json.dumps(self.__dict__, sort_keys=True, indent=4)


@contextlib.contextmanager
def _without_harm(result: str) -> Iterator[None]:
    """What fails here is a warning: as in CodeCarbon it must not end the program, or hide its own exception."""
    try:
        yield
    except Exception as error:
        logger.warning("%s: %s: %s", result, type(error).__name__, error)


class EmissionsTracker:
    """start() and stop(), a `with`, or start_task() and stop_task(): measures with jouleprof what lies between.

    stop() returns kg of CO2 equivalent, None without a figure; `final_emissions_data` is the row of emissions.csv,
    `measurement` the energies with intervals and provenance. carbon_file: a CSV or JSON file of grams of CO2
    equivalent for a kilowatt-hour by country code."""

    _names = [*_ONLINE, "country_iso_code", "carbon_file"]

    def __init__(self, *arguments: Any, **options: Any) -> None:
        given = _arguments(type(self).__name__, self._names, arguments, options)
        for name, value in _configured().items():
            given.setdefault(name, value)
        self._given = given
        refused = sorted(_REFUSED & {name for name, value in given.items() if _is_true(value)})
        refused += [f"output_methods {method.value}" for method in _methods(given.get("output_methods")) or ()
                    if method not in (OutputMethod.CSV, OutputMethod.LOGGER)]
        if refused:
            logger.warning("without effect here: %s; nothing is sent, and power is measured", ", ".join(refused))
        if given.get("tracking_mode", "machine") != "machine":
            logger.warning("tracking_mode: the energy is the machine's; `jouleprof run` divides it by process")
        if isinstance(given.get("log_level"), (str, int)):
            level = given["log_level"]
            logger.setLevel(level.upper() if isinstance(level, str) else level)
        self._pue = number(_as_number(given.get("pue", 1)), "pue", least=1)
        self._wue = None if given.get("wue") is None else number(_as_number(given["wue"]), "wue", least=0)
        self._grams, self._country = _intensity(given)
        self._files = _Files(given)
        self.run_id = str(uuid.uuid4())
        self.final_emissions: Optional[float] = None
        self.final_emissions_data: Optional[EmissionsData] = None
        self.measurement: Optional[Measurement] = None
        self._devices = _devices(given.get("gpu_ids"))
        self._monitor: Any = None
        self._window: Any = None
        self._task: Any = None  # (name, as it was asked for, window)
        self._tasks: List[Dict[str, Any]] = []

    def start(self) -> None:
        """Begins to measure."""
        if self._window is not None:
            logger.warning("the tracker was started before")
            return
        self._monitor = default.monitor() if self._devices is None else Monitor(self._devices)
        self._window = self._monitor.window(self._name()).__enter__()

    def stop(self) -> Optional[float]:
        """Ends it, and writes the row. Gives kg of CO2-equivalent; None where the energy can't be had."""
        if self._window is None:
            logger.warning("the tracker was stopped before, or not started")
            return self.final_emissions
        if self._task is not None:
            self.stop_task()
        window, self._window = self._window, None
        window.__exit__(None, None, None)
        self.measurement = self.final_emissions_data = self.final_emissions = None
        with _without_harm("no emissions are known, and none are written"):
            self.measurement = window.energy
            self.final_emissions_data = data = self._data(self.measurement)
            self.final_emissions = data.emissions
            grams = "" if data.emissions is None else f", {_text.number(1e3 * data.emissions)} g of CO2 equivalent"
            unmeasured = self.measurement.total.provenance != "measured"
            logger.log(logging.WARNING if unmeasured else logging.INFO, "%r%s", self.measurement, grams)
            self._files.write(data, self._tasks)
        if self._devices is not None:
            self._monitor.close()
        return self.final_emissions

    def flush(self) -> Optional[float]:
        """Writes what was used so far."""
        if self._window is None:
            logger.error("start the tracker first")
            return None
        with _without_harm("no emissions are known, and none are written"):
            data = self._data(self._monitor.between(self._window._host_begin(), self._monitor.now(), self._name()))
            self._files.write(data, [])
            return data.emissions
        return None

    def start_task(self, task_name: Optional[str] = None) -> None:
        """Begins a task within the measurement, which begins if it has not."""
        if self._task is not None:
            logger.warning("a task is being measured: '%s'", self._task[0])
            return
        if self._window is None:
            self.start()
        name = asked = task_name or str(uuid.uuid4())
        if any(task["task_name"] == name for task in self._tasks):
            name += f"_{uuid.uuid4()}"
        self._task = (name, asked, self._monitor.window(name).__enter__())

    def stop_task(self, task_name: Optional[str] = None) -> Optional[EmissionsData]:
        """Ends the task; None where none of this name is measured."""
        if self._task is None or task_name not in (None, "", *self._task[:2]):
            logger.warning("no such task is being measured")
            return None
        (name, _, window), self._task = self._task, None
        window.__exit__(None, None, None)
        with _without_harm(f"no emissions of the task '{name}' are known"):
            data = self._data(window.energy)
            left_out = ("experiment_id", "pue", "wue")
            self._tasks.append({"task_name": name, **{k: v for k, v in data.values.items() if k not in left_out}})
            return data
        return None

    def service_shutdown(self, signum: int, frame: Any) -> None:
        """For signal.signal."""
        self.stop()

    def __enter__(self) -> "EmissionsTracker":
        self.start()
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.stop()

    def _name(self) -> str:
        return str(self._given.get("project_name") or "codecarbon")

    def _data(self, measured: Measurement) -> EmissionsData:
        from . import __version__

        total = self._kwh(measured.total)
        parts = {kind: self._kwh(measured[kind]) if kind in measured else None for kind in ("cpu", "gpu", "dram")}
        gpus = [e.domain.name for e in measured.values()
                if e.domain.kind == "gpu" and e.domain.is_whole and e.domain.name]
        kg = None if total is None else total * self._grams / 1e3

        def rate(value: Optional[float], scale: float = 1.0) -> Optional[float]:
            return None if value is None or not measured.time > 0 else scale * value / measured.time

        def watts(kind: str) -> Optional[float]:
            """Of the device: CodeCarbon multiplies energies by the PUE, and no powers."""
            return rate(_of_all(measured[kind]).joules) if kind in measured else None

        mark = measured.total.provenance
        provider = self._given.get("cloud_provider")
        return EmissionsData(
            datetime.datetime.now().strftime("%Y-%m-%dT%H:%M:%S"), self._name(), self.run_id,
            str(self._given.get("experiment_id") or ""), measured.time, kg, rate(kg),
            watts("cpu"), watts("gpu"), watts("dram"),
            parts["cpu"], parts["gpu"], parts["dram"], total,
            None if total is None or self._wue is None else total * self._wue,
            self._country, self._given.get("country_iso_code"), self._given.get("region"), provider,
            self._given.get("cloud_region"), platform.platform(), platform.python_version(),
            f"jouleprof {__version__}" + ("" if mark == "measured" else f" {_text.word(mark)}"),
            os.cpu_count(), _cpu_model(), len(gpus) or None,
            " + ".join(f"{gpus.count(name)} x {name}" for name in dict.fromkeys(gpus)) or None, None, None,
            os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, "machine",
            on_cloud="Y" if provider else "N", pue=self._pue, wue=self._wue or 0.0)

    def _kwh(self, energy: Energy) -> Optional[float]:
        kwh: Optional[float] = _of_all(energy).kwh
        return None if kwh is None else kwh * self._pue


def _of_all(energy: Energy) -> Energy:
    """Without a figure where a device was lost: a cell can't say that it is missing in it."""
    return Energy.unavailable(energy.domain, energy.reason) if energy.is_partial else energy


class OfflineEmissionsTracker(EmissionsTracker):
    """The same, with a place. The names are those of CodeCarbon."""

    _names = [*_ONLINE, *_PLACE, "carbon_file"]


class TaskEmissionsTracker:
    """`with TaskEmissionsTracker("load", tracker=tracker): ...`"""

    def __init__(self, task_name: str, tracker: Optional[EmissionsTracker] = None) -> None:
        self.tracker = tracker if tracker is not None else EmissionsTracker()
        self._stops = tracker is None
        self._task_name = task_name

    def __enter__(self) -> "TaskEmissionsTracker":
        self.tracker.start_task(self._task_name)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.tracker.stop_task()
        if self._stops:
            self.tracker.stop()


def track_emissions(fn: Optional[Callable[..., Any]] = None, *arguments: Any, **options: Any) -> Any:
    """A decorator, bare or with the arguments of the trackers: each call is a row of emissions.csv."""
    given = _arguments("track_emissions", [*_DECORATOR, "carbon_file"], arguments, options)
    offline = _is_true(given.pop("offline", False))
    if offline and not (given.get("country_iso_code") or given.get("cloud_provider")):
        raise InvalidArgument("track_emissions(offline=True) needs country_iso_code")
    return measuring.around(lambda: OfflineEmissionsTracker(**given) if offline or set(given) & set(_PLACE)
                            else EmissionsTracker(**given), fn)


def track_task_emissions(fn: Optional[Callable[..., Any]] = None, tracker: Optional[EmissionsTracker] = None,
                         task_name: str = "") -> Any:
    """A decorator: each call is a task of the tracker."""
    return measuring.around(lambda: TaskEmissionsTracker(task_name, tracker), fn)


class _Log:
    """Where save_to_logger names no logger: a line of JSON in Python's log, at level INFO."""

    def out(self, total: EmissionsData, delta: EmissionsData) -> None:
        logger.info("%s", json.dumps(dataclasses.asdict(total)))


class _Files:
    """emissions.csv, the files of tasks, and the user's own outputs."""

    def __init__(self, given: Dict[str, Any]) -> None:
        methods = _methods(given.get("output_methods"))
        self._writes = _is_true(given.get("save_to_file", True)) if methods is None else OutputMethod.CSV in methods
        logs = _is_true(given.get("save_to_logger")) if methods is None else OutputMethod.LOGGER in methods
        self._outputs = [*(given.get("output_handlers") or ()), *([given.get("logging_logger") or _Log()] if logs else ())]
        self._folder = pathlib.Path(given.get("output_dir") or ".")
        self._path = self._folder / str(given.get("output_file") or "emissions.csv")
        self._updates = given.get("on_csv_write", "append") == "update"
        self._experiment = str(given.get("experiment_name") or "base")
        if given.get("on_csv_write", "append") not in ("append", "update"):
            raise InvalidArgument(f"on_csv_write is append or update, not {given['on_csv_write']!r}")
        if self._writes:
            existing(self._folder)

    def write(self, data: EmissionsData, tasks: List[Dict[str, Any]]) -> None:
        if self._writes:
            with _without_harm(f"{self._path} lacks a row; final_emissions_data has it"), _files.alone_in(self._folder):
                self._write(data)
            if tasks:
                path = self._folder / f"emissions_{self._experiment}_{data.run_id}.csv"
                with _without_harm(f"{path} is not written"):
                    _write_rows(path, tasks)
        for output in self._outputs:
            with _without_harm(f"{output!r} has not taken the figures"):
                output.out(data, data)

    def _write(self, data: EmissionsData) -> None:
        rows: List[Dict[str, Any]] = []
        if self._path.exists():
            with open(self._path, newline="", encoding="utf-8-sig") as file:
                table = csv.DictReader(file)
                rows = list(table)
                names = table.fieldnames or []
            if names and set(names) != set(data.values):
                os.replace(self._path, kept := _unused(self._path))
                logger.warning("%s has other columns and was kept as %s", self._path, kept)
                rows = []
            elif names and not self._updates:
                with open(self._path, "a", newline="", encoding="utf-8") as file:
                    csv.DictWriter(file, names).writerow(_cells(data.values))
                return
        _write_rows(self._path, [*(row for row in rows if row["run_id"] != data.run_id), data.values])


def _write_rows(path: pathlib.Path, rows: List[Dict[str, Any]]) -> None:
    with _files.replacing(path) as file:
        writer = csv.DictWriter(file, list(rows[-1]))
        writer.writeheader()
        writer.writerows(map(_cells, rows))


def _cells(row: Dict[str, Any]) -> Dict[str, Any]:
    return {name: _text.csv_cell(value) for name, value in row.items()}


def _unused(path: pathlib.Path) -> pathlib.Path:
    kept, number_of_it = path.with_name(f"{path.name}.bak"), 0
    while kept.exists():
        kept, number_of_it = path.with_name(f"{path.name}_{number_of_it}.bak"), number_of_it + 1
    return kept


def _arguments(who: str, names: List[str], arguments: Any, options: Dict[str, Any]) -> Dict[str, Any]:
    """By name; unknown ones are a TypeError as Python's own."""
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for name in names]
    try:
        return dict(inspect.Signature(parameters).bind(*arguments, **options).arguments)
    except TypeError as error:
        raise TypeError(f"{who}: {error}") from None


def _configured() -> Dict[str, Any]:
    """CodeCarbon's configuration: in the home folder, in the current one, in the environment; the last one counts."""
    found: Dict[str, Any] = {}
    for folder in (pathlib.Path.home(), pathlib.Path.cwd()):
        parser = configparser.ConfigParser(interpolation=None)
        try:
            parser.read(folder / ".codecarbon.config", encoding="utf-8")
        except configparser.Error as error:
            raise Corrupt(f"{folder / '.codecarbon.config'}: {error}") from None
        if parser.has_section("codecarbon"):
            found.update(parser.items("codecarbon"))
    found.update({name[len("CODECARBON_"):].lower(): value for name, value in os.environ.items()
                  if name.startswith("CODECARBON_")})
    return found


def _intensity(given: Dict[str, Any]) -> Any:
    """(grams for a kWh, name of the country or None)."""
    value = given.get("force_carbon_intensity_g_co2e_kwh")
    code = given.get("country_iso_code")
    if value is not None:
        return number(_as_number(value), "force_carbon_intensity_g_co2e_kwh", least=0), None
    if given.get("carbon_file") is None:
        raise InvalidArgument(
            "no carbon intensity is known, and none is built in: give force_carbon_intensity_g_co2e_kwh, grams of CO2 "
            "equivalent for a kilowatt-hour, or carbon_file, a table by country, with country_iso_code. Both may be in "
            ".codecarbon.config, or in the environment as CODECARBON_FORCE_CARBON_INTENSITY_G_CO2E_KWH")
    if not code:
        raise InvalidArgument("carbon_file needs country_iso_code, such as FRA")
    path = existing(given["carbon_file"])
    known = _countries(path)
    if str(code).upper() not in known:
        raise NotFound(f"{path} has no carbon intensity of '{code}'; it has {len(known)} countries, such as "
                       f"{', '.join(sorted(known)[:5])}")
    return known[str(code).upper()]


def _countries(path: Any) -> Dict[str, Any]:
    """{code: (grams, name)}: of JSON {"FRA": {"carbon_intensity": 56}} or {"FRA": 56}, or of CSV with a column of codes
    and one of carbon intensities; the last of several rows of a country counts, by its year where there is one."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            if str(path).endswith(".json"):
                items = json.load(file).items()
                found = {code: (v.get("carbon_intensity"), v.get("country_name")) if isinstance(v, dict) else (v, None)
                         for code, v in items}
            else:
                table = csv.DictReader(file)
                names = {word: next((n for n in table.fieldnames or () if re.search(word, n, re.IGNORECASE)), None)
                         for word in ("code|iso", "carbon.?intensity|gco2", "year", "entity|country.?name|^country$")}
                code, grams, year, label = names.values()
                if code is None or grams is None:
                    raise ValueError("there is no column of country codes, or none of carbon intensities")
                rows = sorted(table, key=lambda row: float(row[year]) if year else 0)
                found = {row[code]: (row[grams], row[label] if label else None) for row in rows if row[code]}
        return {code.upper(): (number(float(grams), f"the carbon intensity of {code}", least=0), label)
                for code, (grams, label) in found.items() if grams not in (None, "")}
    except (ValueError, TypeError, AttributeError) as error:
        raise Corrupt(f"{path} is no table of carbon intensities by country: {error}") from None


def _devices(gpu_ids: Any) -> Optional[List[str]]:
    """None: all that this process sees."""
    if gpu_ids is None:
        return None
    words = [str(word).strip(" []") for word in (str(gpu_ids).split(",") if isinstance(gpu_ids, (str, int)) else gpu_ids)]
    return [*(f"gpu{word}" if word.isdigit() else word for word in words), "cpu", "dram"]


def _methods(given: Any) -> Optional[List[OutputMethod]]:
    """None: not given."""
    if given is None:
        return None
    try:
        words = given.split(",") if isinstance(given, str) else given
        return [OutputMethod(word.strip().lower()) for word in words if word.strip()]
    except (TypeError, ValueError, AttributeError):
        raise InvalidArgument(f"output_methods has {', '.join(m.value for m in OutputMethod)}; not {given!r}") from None


def _cpu_model() -> Optional[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), None)
    except OSError:
        return None


def _as_number(value: Any) -> Any:
    """Of a configuration, where all is text."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _is_true(value: Any) -> bool:
    return value.strip().lower() in ("true", "yes", "1") if isinstance(value, str) and value.lower() in (
        "true", "yes", "1", "false", "no", "0", "") else bool(value)


for _class, _listed in ((EmissionsTracker, EmissionsTracker._names), (OfflineEmissionsTracker, OfflineEmissionsTracker._names)):
    _class.__signature__ = inspect.Signature([  # type: ignore[attr-defined]
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None) for name in _listed])
