"""The joules of requests, of a recording that is finished or still being written."""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Iterable, Iterator, NamedTuple

from .._errors import Error, Unavailable, named
from .._prometheus import Family, Histogram
from .._text import joules
from .._tool import run_tool

# Upper bounds of the histogram, in joules.
BUCKETS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)


@dataclass(frozen=True)
class RequestEnergy:
    """A row of `jouleprof report --by request` (docs/serving.md); energies are active, above rest and held."""

    request: str
    model: str | None
    tenant: str | None
    pid: int
    energy_joules: float | None  # absent, with the other joules: `reason` has why
    interval_joules: tuple[float, float] | None  # 95 %, calibration and regression together
    calibration_joules: float | None
    regression_joules: float | None
    marginal_joules: float | None  # absent: a proxy saw no batches
    prefill_joules: float | None
    decode_joules: float | None
    recomputed_joules: float | None
    rejected_joules: float | None
    joules_per_token: float | None
    idle_joules: float | None  # rest and held, apart from the energy
    tokens_in: int
    tokens_out: int
    tokens_computed: int
    tokens_cached: int
    steps: int
    shared_with: float
    prefix_of: str | None
    arrival_nanoseconds: int
    finish_nanoseconds: int | None
    arrival_unix_nanoseconds: int | None = None
    reason: str | None = None  # why its energy is not known
    # The recording was still being written: more steps may change the regression.
    provisional: bool = False
    simulated: bool = False

    def __str__(self) -> str:
        if self.energy_joules is None or self.interval_joules is None:
            return (f"no energy: {self.reason}" + ("; provisional" if self.provisional else "")
                    + ("; SIMULATED" if self.simulated else ""))
        low, high = self.interval_joules
        text = f"{joules(self.energy_joules)} [{joules(low)}, {joules(high)}]: prefill {joules(self.prefill_joules)}, " \
               f"decode {joules(self.decode_joules)}; "
        if self.joules_per_token is not None:
            text += f"{joules(self.joules_per_token)} per token; "
        if self.marginal_joules is not None:
            text += f"marginal {joules(self.marginal_joules)}; "
        text += f"rest and held {joules(self.idle_joules)} apart; " \
                f"shared with {self.shared_with:.0f} requests on average"
        if self.provisional:
            text += "; provisional"
        return text + ("; SIMULATED" if self.simulated else "")

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it: a line of a log."""
        return asdict(self)

    def span_attributes(self) -> dict[str, float | int | str | bool]:
        """For `span.set_attributes()` of OpenTelemetry."""
        names = ("energy_joules", "calibration_joules", "regression_joules", "marginal_joules", "prefill_joules",
                 "decode_joules", "idle_joules", "shared_with", "provisional", "simulated")
        out: dict[str, float | int | str | bool] = {
            f"jouleprof.request.{name}": getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.interval_joules is None:
            out["jouleprof.request.without_energy"] = self.reason or ""
        else:
            out["jouleprof.request.energy_low_joules"], out["jouleprof.request.energy_high_joules"] = self.interval_joules
        out["gen_ai.response.id"] = self.request
        if self.model:
            out["gen_ai.request.model"] = self.model
        if self.tenant:
            out["jouleprof.request.tenant"] = self.tenant
        out["gen_ai.usage.input_tokens"] = self.tokens_in
        out["gen_ai.usage.output_tokens"] = self.tokens_out
        return out


def read_requests(recording: str | Path) -> list[RequestEnergy]:
    """The requests of a recording, in order of their arrival. Raises Unavailable where it has none."""
    return _requests_of(_report(recording))


def _requests_of(document: dict[str, Any]) -> list[RequestEnergy]:
    known = {field.name for field in fields(RequestEnergy)}
    rows = []
    for row in document["requests"]:
        values = {name: value for name, value in row.items() if name in known}
        values["interval_joules"] = row["interval_joules"] and tuple(row["interval_joules"])
        rows.append(RequestEnergy(**values, provisional=document["being_written"], simulated=document["simulated"]))
    return rows


def looks(recording: str | Path, period: float) -> Iterator[tuple[list[RequestEnergy], list[dict[str, Any]]]]:
    """Of each look: the requests that have finished since the one before, and the GPUs with their parts."""
    done: set[tuple[int, str, int]] = set()
    while True:
        begun = time.monotonic()
        try:
            document = _report(recording)
        except Unavailable:
            document = {"requests": [], "boards": [], "being_written": True, "simulated": False}
        new = []
        for request in _requests_of(document):
            if request.energy_joules is None and request.provisional:
                continue  # the readings of its last steps may be still to come
            key = (request.pid, request.request, request.arrival_nanoseconds)
            if request.finish_nanoseconds is not None and key not in done:
                done.add(key)
                new.append(request)
        yield new, document["boards"]
        if document["requests"] and not document["being_written"]:
            return
        time.sleep(max(0.0, begun + period - time.monotonic()))


def follow_requests(recording: str | Path, period: float = 5.0) -> Iterator[RequestEnergy]:
    """Each request once, after it has finished, until the recording is complete. The figures are those that a report
    has at that time. Each look analyses the recording anew: of hours, `period` should be minutes."""
    for new, _ in looks(recording, period):
        yield from new


class ProvisionalEnergies:
    """What a request will have used, before its figures are known: from its tokens and those of finished requests.

    The energy of finished requests is fitted by joules for a token in and one out. The interval holds 95 % of the
    ratios of their energies to the fit, and their own intervals. Absent with fewer than 39 finished requests."""

    FEWEST = 39  # so many leave 2.5 % outside on either side of their extremes
    MOST = 2000

    def __init__(self, recording: str | Path, period: float = 5.0) -> None:
        self._recording = recording
        self._period = period
        self._rates: tuple[float, float] | None = None
        self._ratios: tuple[float, float] = (0.0, 0.0)
        self._simulated = False
        self._final: dict[str, RequestEnergy] = {}
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jouleprof-requests", daemon=True)

    def start(self) -> None:
        """Looks into the recording every `period` seconds from now on, in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread; what it has learnt stays."""
        self._ended.set()

    def learn(self, found: Iterable[RequestEnergy]) -> None:
        """Fits joules by token to the newest requests that have ended."""
        done = [r for r in found if r.finish_nanoseconds is not None][-self.MOST:]
        used = [_Used(r.tokens_in, r.tokens_out, r.energy_joules, r.interval_joules[1]) for r in done
                if r.energy_joules and r.energy_joules > 0 and r.interval_joules and r.tokens_in + r.tokens_out > 0]
        with self._changed:
            self._final = {r.request: r for r in done if r.energy_joules is not None}
            if len(used) >= self.FEWEST:
                self._rates = _rates(used)
                fits = [self._rates[0] * r.tokens_in + self._rates[1] * r.tokens_out for r in used]
                own = sorted(max(r.high - r.joules, 0.0) / r.joules for r in used)
                ratios = sorted(r.joules / fit for r, fit in zip(used, fits) if fit > 0)
                out = int(0.025 * (len(ratios) + 1)) - 1
                widest = own[len(own) // 2]
                self._ratios = (ratios[out] * max(1 - widest, 0.0), ratios[-1 - out] * (1 + widest))
                self._simulated = done[-1].simulated
            self._changed.notify_all()

    def of(self, tokens_in: int, tokens_out: int) -> dict[str, Any] | None:
        """Active energy and its 95 % interval."""
        with self._changed:
            if self._rates is None:
                return None
            fit = self._rates[0] * tokens_in + self._rates[1] * tokens_out
            low, high = (round(ratio * fit, 6) for ratio in self._ratios)
            out = {"energy_joules": round(fit, 6), "interval_joules": [min(low, round(fit, 6)), max(high, round(fit, 6))],
                   "provisional": True, "method": "from the tokens of finished requests"}
            return {**out, "simulated": True} if self._simulated else out

    def wait(self, request: str, seconds: float) -> RequestEnergy | None:
        """The figures that a report has, once it has them: of this id, or with what vLLM adds to a response's id."""
        longer = re.compile(re.escape(request) + r"(-\d+)?-[0-9a-f]{8}")

        def found() -> RequestEnergy | None:
            return self._final.get(request) or next(
                (r for name, r in self._final.items() if longer.fullmatch(name)), None)

        with self._changed:
            self._changed.wait_for(lambda: found() is not None, seconds)
            return found()

    def _run(self) -> None:
        pause = self._period
        while not self._ended.wait(pause):
            begun = time.monotonic()
            try:
                self.learn(read_requests(self._recording))
            except Error:  # it has no request yet
                continue
            # After hours a look takes long: it is to use at most a twentieth of a core.
            pause = max(self._period, 20 * (time.monotonic() - begun))


class _Used(NamedTuple):
    tokens_in: int
    tokens_out: int
    joules: float
    high: float  # upper bound


def _rates(used: list[_Used]) -> tuple[float, float]:
    """Joules for a token in and one out, neither negative, by least squares of relative errors."""
    a = b = c = d = e = 0.0
    for r in used:
        x, y = r.tokens_in / r.joules, r.tokens_out / r.joules
        a, b, c, d, e = a + x * x, b + x * y, c + y * y, d + x, e + y
    det = a * c - b * b
    if det > 1e-9 * a * c:
        rates = (d * c - b * e) / det, (a * e - b * d) / det
        if min(rates) >= 0:
            return rates
    only_in, only_out = (d / a if a > 0 else 0.0), (e / c if c > 0 else 0.0)
    return (only_in, 0.0) if a > 0 and d * d * c > e * e * a else (0.0, only_out)


class RequestMetrics:
    """Prometheus metrics of requests, by model and tenant, and of the GPUs' energy by its parts.

    `jouleprof_request_energy_joules` is a histogram of active energy; tokens are counters. The parts are gauges: more
    steps improve the regression that divides the energy."""

    def __init__(self, buckets: Iterable[float] = BUCKETS) -> None:
        labels = "model", "tenant"
        self._energy = Histogram("jouleprof_request_energy_joules", "Active energy of finished requests.", labels, buckets,
                                 "{:g}".format)
        self._counters = [Family(f"jouleprof_request_{name}_total", "counter", text, labels) for name, text in (
            ("input_tokens", "Tokens of finished requests."), ("output_tokens", "Tokens of finished requests."),
            ("idle_joules", "Rest and held in the steps of finished requests, apart from their energy."),
            ("without_energy", "Finished requests whose energy is not known; they are not in the histogram."))]
        self._parts = Family("jouleprof_serving_joules", "gauge", "Energy of the recording so far, by part of it.",
                             ("device", "part"))

    def set_boards(self, boards: Iterable[dict[str, Any]]) -> None:
        """`boards` of `report --by request --json`."""
        for board in boards:
            for part in ("idle", "between", "requests", "unattributed"):
                if board[part + "_joules"] is None:  # it is unattributed
                    self._parts.values.pop((board["device"], part), None)
                else:
                    self._parts.values[board["device"], part] = board[part + "_joules"]

    def add(self, request: RequestEnergy) -> None:
        """Counts a request; without a figure, its joules are not observed."""
        key = request.model or "", request.tenant or ""
        known = request.energy_joules is not None
        if request.energy_joules is not None:
            self._energy.observe(key, request.energy_joules)
        for counter, value in zip(self._counters, (request.tokens_in, request.tokens_out, request.idle_joules,
                                                   int(not known))):
            if value is not None:
                counter.add(key, value)

    def text(self) -> str:
        """In Prometheus' text format, as a textfile collector reads it."""
        return "".join(f"{line}\n" for family in (self._energy, *self._counters, self._parts)
                       for line in family.lines())


def _report(recording: str | Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run_tool("report", named(recording), "--by", "request", "--json"))
    return document
