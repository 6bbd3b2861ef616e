"""Steps of a server that shows no batches: spans of time, with the tokens of the requests in flight."""

from __future__ import annotations

import functools
import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from .._errors import Unsupported
from ._recorder import Recorder

SPAN = 50_000_000  # nanoseconds, at most, of a step
MOST_HELD = 120_000_000_000  # nanoseconds that a request which goes on holds back the steps of others


@dataclass
class Counts:
    """What a response says of its request. Times are milliseconds; absent: it does not say."""

    tokens_in: int | None = None
    cached: int = 0
    tokens_out: int | None = None
    rejected: int = 0
    prefill_ms: float | None = None
    decode_ms: float | None = None

    def plus(self, other: Counts) -> Counts:
        """Of two answers that were computed at the same time."""
        return Counts(_sum(self.tokens_in, other.tokens_in), self.cached + other.cached,
                      _sum(self.tokens_out, other.tokens_out), self.rejected + other.rejected,
                      _most(self.prefill_ms, other.prefill_ms), _most(self.decode_ms, other.decode_ms))


def _sum(a: int | None, b: int | None) -> int | None:
    return a if b is None else b if a is None else a + b


def _most(a: float | None, b: float | None) -> float | None:
    return a if b is None else b if a is None else max(a, b)


def _number(engine: str, of: dict[str, Any], name: str) -> float:
    value = of.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e15:
        raise Unsupported(f"{engine}: the response has no number {name}: this {engine} was changed, and what the "
                          "request used cannot be known")
    return value


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31 else None


def _about(body: dict[str, Any]) -> dict[str, Any]:
    """Where an event of OpenAI's responses or of Anthropic's messages has the response so far; else the body itself."""
    for name in ("response", "message"):
        if isinstance(body.get(name), dict):
            return body[name]  # type: ignore[no-any-return]
    return body


def counts_of(body: dict[str, Any]) -> Counts:
    """Of a response, or an event of a stream: `usage` as OpenAI and Anthropic have it, `timings` of llama.cpp's server,
    `meta_info` of SGLang. Raises Unsupported where one of the two engines' lacks a field."""
    out = Counts()
    usage = _about(body).get("usage")
    if isinstance(usage, dict):
        out.tokens_in = _count(usage.get("prompt_tokens", usage.get("input_tokens")))
        out.tokens_out = _count(usage.get("completion_tokens", usage.get("output_tokens")))
        details = usage.get("prompt_tokens_details", usage.get("input_tokens_details"))
        if isinstance(details, dict):
            out.cached = _count(details.get("cached_tokens")) or 0
        elif out.tokens_in is not None:  # Anthropic's input tokens are those that are not from the cache
            out.cached = _count(usage.get("cache_read_input_tokens")) or 0
            out.tokens_in += out.cached + (_count(usage.get("cache_creation_input_tokens")) or 0)
    timings = body.get("timings")
    if isinstance(timings, dict):
        engine = "llama.cpp"
        new = int(_number(engine, timings, "prompt_n"))  # of the prompt, those from the cache not included
        out.cached = int(_number(engine, timings, "cache_n"))
        out.tokens_in = new + out.cached
        out.tokens_out = int(_number(engine, timings, "predicted_n"))
        out.prefill_ms = _number(engine, timings, "prompt_ms")
        out.decode_ms = _number(engine, timings, "predicted_ms")
        if "draft_n" in timings:
            out.rejected = int(_number(engine, timings, "draft_n") - _number(engine, timings, "draft_n_accepted"))
    about = body.get("meta_info")
    if isinstance(about, dict):
        engine = "SGLang"
        out.tokens_in = int(_number(engine, about, "prompt_tokens"))
        out.tokens_out = int(_number(engine, about, "completion_tokens"))
        out.cached = int(_number(engine, about, "cached_tokens"))
    if out.tokens_in is not None:
        out.cached = min(out.cached, out.tokens_in)
    return out


@dataclass
class Flight:
    """A request between its arrival at a proxy and the end of its response."""

    id: str
    model: str
    tenant: str
    begin: int
    first: int | None = None  # its first token
    end: int | None = None
    chunks: int = 0  # with text
    asked: str = ""  # the model, as the client names it
    answers: int = 1
    is_partial: bool = False  # the server counted one of several answers
    counts: Counts = field(default_factory=Counts)
    number: int | None = None
    started: bool = False  # its cached tokens were recorded
    prefilled: int = 0  # tokens in spans that were recorded
    decoded: int = 0

    def tokens_out(self) -> int:
        return self.counts.tokens_out if self.counts.tokens_out is not None else self.chunks

    def answer(self) -> int:
        """Tokens of decoding: the first token of an answer comes from the prefill."""
        return max(self.tokens_out() - self.answers, 0) + self.counts.rejected

    def edges(self, now: int) -> tuple[int, int, int]:
        """Begin of prefill, begin of decoding, end. A response in one piece, that has no times, shows no begin of
        decoding: all of its prefill is taken for the first span then, or for half of its time."""
        end = now if self.end is None else self.end
        if self.counts.decode_ms is not None and self.counts.prefill_ms is not None:
            decoding = max(self.begin, end - round(1e6 * self.counts.decode_ms))
            return max(self.begin, decoding - round(1e6 * self.counts.prefill_ms)), decoding, end
        if self.first is not None and self.first < end:
            return self.begin, self.first, end
        return self.begin, min(self.begin + SPAN, (self.begin + end) // 2) if self.end is not None else end, end

    def until(self, now: int, t: int) -> tuple[int, int]:
        """Tokens of the prompt and of the answer that were computed before t."""
        begin, decoding, end = self.edges(now)
        prompt = max((self.counts.tokens_in or 0) - self.counts.cached, 0)
        return _part(prompt, begin, decoding, t), _part(self.answer(), decoding, end, t)


def _part(tokens: int, begin: int, end: int, t: int) -> int:
    if t >= end:
        return tokens
    return 0 if t <= begin else tokens * (t - begin) // (end - begin)


class TokensInFlight:
    """Records requests of a server that shows no batches. A step is a span of at most 50 ms in which the same requests
    are in flight; its tokens are each request's, spread evenly over its prefill and over its decoding.

    What a request used is known at its end. So spans are recorded once the requests in them have ended, or two minutes
    after."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._lock = threading.Lock()
        self._flights: list[Flight] = []
        self._done = 0  # spans up to here are recorded

    def begin(self, id: str, *, model: str = "", tenant: str = "") -> Flight:
        flight = Flight(id, model, tenant, time.monotonic_ns(), asked=model)
        with self._lock:
            self._flights.append(flight)
        return flight

    def abandon(self, flight: Flight) -> None:
        """It was refused, and computed nothing. One of which spans are recorded already ends now."""
        with self._lock:
            if flight.number is None:
                self._flights.remove(flight)
            else:
                flight.end = time.monotonic_ns()

    def end(self, flight: Flight) -> None:
        """Its id is the one in the recording then. The first end counts: a response may wait for its figures."""
        with self._lock:
            if flight.end is None:
                flight.end = time.monotonic_ns()
                self._number_of(flight)

    def flush(self, *, all: bool = False) -> None:
        """Records what is known. all: what is not, too, as far as it was seen."""
        with self._lock:
            now = time.monotonic_ns()
            open_begins = [f.begin for f in self._flights if f.end is None]
            until = now if all else max(min(open_begins, default=now), now - MOST_HELD)
            self._record(until, now)
            for flight in [f for f in self._flights if f.end is not None and f.end <= until]:
                self._flights.remove(flight)
                self._number_of(flight)
                self._recorder.finish(flight.id, tokens_in=flight.counts.tokens_in or 0,
                                      tokens_out=flight.tokens_out(), at=flight.end)

    def _record(self, until: int, now: int) -> None:
        edges = {until}
        for flight in self._flights:
            edges.update(edge for edge in (flight.begin, *flight.edges(now)) if self._done < edge < until)
        begin = max(self._done, min((f.begin for f in self._flights), default=until))
        for edge in sorted(edges):
            while begin < edge:
                end = min(begin + SPAN, edge)
                self._span(begin, end, now)
                begin = end
        self._done = max(self._done, until)

    def _span(self, begin: int, end: int, now: int) -> None:
        shares: list[int] = []
        for flight in self._flights:
            if flight.begin >= end or (flight.end is not None and flight.end <= begin):
                continue
            prompt, answer = flight.until(now, end)
            cached = flight.counts.cached
            number = self._number_of(flight)
            if prompt > flight.prefilled or end <= flight.edges(now)[1]:
                new = max(prompt - flight.prefilled, 0)
                begins = new > 0 and not flight.started
                shares += (number, new, cached + flight.prefilled, cached if begins else 0, 0, 0, 1)
                flight.prefilled += new
                flight.started = flight.started or begins
            else:
                new = max(answer - flight.decoded, 0)
                total = max(flight.answer(), 1)
                rejected = min(new * flight.counts.rejected // total, new)
                shares += (number, new, (flight.counts.tokens_in or 0) + flight.decoded, 0, rejected, 0, 0)
                flight.decoded += new
        if shares:
            self._recorder.step_of(begin, end, shares)

    def _number_of(self, flight: Flight) -> int:
        if flight.number is None:
            if self._recorder.number(flight.id) is not None:  # a client used the id twice
                flight.id += f"-{flight.begin}"
            flight.number = self._recorder.request(flight.id, tenant=flight.tenant, model=flight.model,
                                                   arrival=flight.begin)
        return flight.number


class ResponseReader:
    """Reads the counts of a response as it passes: a JSON object, or a stream of server-sent events.
    Its methods raise Unsupported as counts_of() does."""

    def __init__(self, flight: Flight) -> None:
        self._flight = flight
        self._timed: dict[int, Counts] = {}  # of each answer of llama.cpp's server, the newest
        self._ended: list[Counts] = []  # the same where `usage` is asked for: an event of each, which names no answer

    def object(self, body: dict[str, Any]) -> None:
        flight = self._flight
        counts = counts_of(body)
        if body.get("type") == "message_start":
            counts.tokens_out = None  # so far: the chunks count until the end says more
        choices = body.get("choices")
        choices = [c for c in choices if isinstance(c, dict)] if isinstance(choices, list) else []
        # Of Anthropic's events `index` is a part of one answer.
        named = choices[0] if choices else {} if "type" in body else body
        index = _count(named.get("index")) or 0
        flight.answers = max(flight.answers, index + 1, len(choices))
        if "timings" in body:
            flight.is_partial = flight.is_partial or len(choices) > 1
            if body.get("choices") == []:
                self._ended.append(counts)
            else:
                self._timed[index] = counts
            counts = _total(self._ended or list(self._timed.values()))
        if counts.tokens_in is not None:
            flight.counts = counts
        elif counts.tokens_out is not None:  # Anthropic's streams count the prompt first, and the answer at the end
            flight.counts.tokens_out = counts.tokens_out
        about = _about(body)
        for name in ("id", "model"):
            if flight.number is None and isinstance(about.get(name), str) and about[name]:
                setattr(flight, name, about[name])

    def objects(self, bodies: list[Any]) -> None:
        """Of several answers in one piece, as llama.cpp's server gives them."""
        found = [counts_of(body) for body in bodies if isinstance(body, dict)]
        if found:
            self._flight.counts = _total(found)
            self._flight.answers = len(found)

    def event(self, data: bytes) -> dict[str, Any] | None:
        """One event of a stream; the object that it holds."""
        try:
            body = json.loads(data)
        except ValueError:
            return None
        if not isinstance(body, dict):
            return None
        if _has_text(body):
            self._flight.chunks += 1
            if self._flight.first is None:
                self._flight.first = time.monotonic_ns()
        self.object(body)
        return body


def _total(parts: list[Counts]) -> Counts:
    return functools.reduce(Counts.plus, parts)


def _has_text(body: dict[str, Any]) -> bool:
    if str(body.get("type")).endswith("delta") and body.get("delta") and "usage" not in body:
        return True  # OpenAI's responses and Anthropic's messages
    if "meta_info" in body and (body.get("text") or body.get("output_ids")):  # SGLang's own
        return True
    if body.get("content"):  # llama.cpp's own
        return True
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if not isinstance(choice, dict):
            continue
        delta = choice.get("delta")
        if choice.get("text") or (isinstance(delta, dict) and any(
                delta.get(name) for name in ("content", "reasoning_content", "reasoning", "tool_calls"))):
            return True
    return False
