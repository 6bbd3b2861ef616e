"""The joules of requests, of a recording that is finished or still being written."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Iterable, Iterator

from .._errors import Unavailable
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
    energy_joules: float
    interval_joules: tuple[float, float]  # 95 %, calibration and regression together
    calibration_joules: float
    regression_joules: float
    marginal_joules: float
    prefill_joules: float
    decode_joules: float
    recomputed_joules: float
    rejected_joules: float
    joules_per_token: float | None
    idle_joules: float  # rest and held, apart from the energy
    tokens_in: int
    tokens_out: int
    tokens_computed: int
    tokens_cached: int
    steps: int
    shared_with: float
    prefix_of: str | None
    arrival_nanoseconds: int
    finish_nanoseconds: int | None
    # The recording was still being written: more steps may change the regression.
    provisional: bool = False
    simulated: bool = False

    def __str__(self) -> str:
        low, high = self.interval_joules
        text = f"{self.energy_joules:.1f} J [{low:.1f}, {high:.1f}]: prefill {self.prefill_joules:.1f}, " \
               f"decode {self.decode_joules:.1f}; "
        if self.joules_per_token is not None:
            text += f"{self.joules_per_token:.2g} J/token; "
        text += f"marginal {self.marginal_joules:.1f}; rest and held {self.idle_joules:.1f} apart; " \
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
        out: dict[str, float | int | str | bool] = {f"jouleprof.request.{name}": getattr(self, name) for name in names}
        out["jouleprof.request.energy_low_joules"], out["jouleprof.request.energy_high_joules"] = self.interval_joules
        out["gen_ai.usage.input_tokens"] = self.tokens_in
        out["gen_ai.usage.output_tokens"] = self.tokens_out
        return out


def read_requests(recording: str | Path) -> list[RequestEnergy]:
    """The requests of a recording, in order of their arrival. Raises Unavailable where it has none."""
    document = _report(recording)
    known = {field.name for field in fields(RequestEnergy)}
    rows = []
    for row in document["requests"]:
        values = {name: value for name, value in row.items() if name in known}
        values["interval_joules"] = tuple(row["interval_joules"])
        rows.append(RequestEnergy(**values, provisional=document["being_written"], simulated=document["simulated"]))
    return rows


def follow_requests(recording: str | Path, period: float = 5.0) -> Iterator[RequestEnergy]:
    """Each request once, after it has finished, until the recording is complete. The figures are those that a report
    has at that time. Each look analyses the recording anew: of hours, `period` should be minutes."""
    done: set[tuple[int, str, int]] = set()
    while True:
        begun = time.monotonic()
        try:
            found = read_requests(recording)
        except Unavailable:
            found = []
        for request in found:
            key = (request.pid, request.request, request.arrival_nanoseconds)
            if request.finish_nanoseconds is None or key in done:
                continue
            done.add(key)
            yield request
        if found and not found[0].provisional:
            return
        time.sleep(max(0.0, begun + period - time.monotonic()))


class RequestMetrics:
    """Prometheus metrics of requests, by model and tenant.

    `jouleprof_request_energy_joules` is a histogram of active energy; tokens are counters."""

    def __init__(self, buckets: Iterable[float] = BUCKETS) -> None:
        self._buckets = tuple(sorted(buckets))
        self._counts: dict[tuple[str, str], list[int]] = {}
        self._sums: dict[tuple[str, str], list[float]] = {}  # joules, tokens in and out, joules of idle

    def add(self, request: RequestEnergy) -> None:
        key = (request.model or "", request.tenant or "")
        counts = self._counts.setdefault(key, [0] * (len(self._buckets) + 1))
        place = sum(1 for bound in self._buckets if request.energy_joules > bound)
        counts[place] += 1
        sums = self._sums.setdefault(key, [0.0] * 4)
        for i, value in enumerate((request.energy_joules, request.tokens_in, request.tokens_out,
                                   request.idle_joules)):
            sums[i] += value

    def text(self) -> str:
        """In Prometheus' text format, as a textfile collector reads it."""
        name = "jouleprof_request_energy_joules"
        lines = [f"# HELP {name} Active energy of finished requests.", f"# TYPE {name} histogram"]
        for key, counts in self._counts.items():
            labels = self._labels(key)
            total = 0
            for bound, count in zip((*map(_number, self._buckets), "+Inf"), counts):
                total += count
                lines.append(f'{name}_bucket{{{labels},le="{bound}"}} {total}')
            lines.append(f"{name}_sum{{{labels}}} {self._sums[key][0]:.6f}")
            lines.append(f"{name}_count{{{labels}}} {total}")
        for place, direction in ((1, "input"), (2, "output")):
            name = f"jouleprof_request_{direction}_tokens_total"
            lines += [f"# HELP {name} Tokens of finished requests.", f"# TYPE {name} counter"]
            lines += [f"{name}{{{self._labels(key)}}} {sums[place]:.0f}" for key, sums in self._sums.items()]
        name = "jouleprof_request_idle_joules_total"
        lines += [f"# HELP {name} Rest and held in the steps of finished requests, apart from their energy.",
                  f"# TYPE {name} counter"]
        lines += [f"{name}{{{self._labels(key)}}} {sums[3]:.6f}" for key, sums in self._sums.items()]
        return "\n".join(lines) + "\n"

    @staticmethod
    def _labels(key: tuple[str, str]) -> str:
        def quoted(text: str) -> str:
            return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'model="{quoted(key[0])}",tenant="{quoted(key[1])}"'


def _number(value: float) -> str:
    return f"{value:g}"


def _report(recording: str | Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(run_tool("report", recording, "--by", "request", "--json"))
    return document
