"""The engine-neutral recorder of an inference server's steps and requests."""

from __future__ import annotations

import operator
import struct
import sys
import threading
import time
from array import array
from typing import Callable, Iterable, Mapping, NamedTuple, Protocol, Sequence

from .._errors import InvalidArgument
from .._native import StepTable, problem_of_step
from ._spool import SpoolFile, spool_folder

_NONE = 0xFFFFFFFF
_MOST = 0xFFFFFFFF
_REQUEST, _FINISH, _STEP, _DEVICE, _LOST, _VIEW = 1, 2, 3, 4, 5, 6
_STEP_HEAD = struct.Struct("<BIqqII")
_STEP_PAYLOAD = 24  # bytes before the shares
_NONE_ANEW: set[str] = set()
_NONE_REJECTED: dict[str, int] = {}
_LAST_TIME = 1 << 62
_MOST_REQUESTS = 1_000_000  # open at once
_MOST_FINISHED = 4096  # whose numbers are known: a batch that was submitted before may name them


class Share(NamedTuple):
    """One request in one step."""

    number: int  # of Recorder.request()
    tokens: int  # computed in this step, rejected and recomputed ones included
    context: int  # tokens before them, whose keys and values are read
    cached: int = 0  # of the context, taken from the prefix cache now
    rejected: int = 0  # of `tokens`: speculative, rejected afterwards
    recomputed: int = 0  # of `tokens`: computed before, and lost by a preemption
    prefill: int = 0  # 1: tokens of the prompt


class Listener(Protocol):
    """What follows a recorder. Calls come from the engine's thread."""

    def on_request(self, number: int, request: Request) -> None:
        """A request has begun."""

    def on_step(self, begin: int, end: int, shares: Sequence[int]) -> None:
        """A step of the engine, with its begin and end and each request's share of it."""

    def on_finish(self, number: int, request: Request) -> None:
        """A request has ended."""


class Request:
    """A request that was begun: what is known of it."""

    __slots__ = ("id", "number", "model", "tenant", "arrival", "finish", "tokens_in", "tokens_out")

    def __init__(self, id: str, number: int, model: str, tenant: str, arrival: int) -> None:
        self.id = id
        self.number = number
        self.model = model
        self.tenant = tenant
        self.arrival = arrival
        self.finish: int | None = None
        self.tokens_in = 0
        self.tokens_out = 0


def _checked(what: str, id: str, value: int, below: int) -> int:
    """A count or a time. Raises InvalidArgument."""
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number < below:
        raise InvalidArgument(f"{what} of request '{id}' is {value!r}; give an integer from 0, "
                              + ("as Recorder.now() returns it" if below == _LAST_TIME else "the number of tokens"))
    return number


def _text(text: str) -> bytes:
    data = text.encode(errors="replace")[:0xFFFF]
    return struct.pack("<H", len(data)) + data


def _entry(kind: int, payload: bytes) -> bytes:
    return struct.pack("<BI", kind, len(payload)) + payload


class Recorder:
    """Records the steps of one engine, for `jouleprof run --serving` and for listeners.

        recorder = jouleprof.serving.Recorder(model="llama")
        request = recorder.request("chat-1", tenant="alice")
        begin = recorder.now()
        ...                                       # the engine computes a batch
        recorder.step(begin, recorder.now(), [Share(request, tokens=512, context=0, prefill=1)])
        recorder.finish("chat-1", tokens_in=512, tokens_out=1)

    model: of requests that name none. devices: of the steps: UUIDs ("GPU-...") or names ("gpu0"); without them the
    recording's only GPU. A step on several devices counts once for each, with the energy of each.
    batches: False where a step is no batch of the engine but a span of time, as a proxy sees it; the report says so.
    Outside of `jouleprof run --serving` nothing is recorded; listeners hear of everything all the same."""

    def __init__(self, *, model: str = "", devices: Iterable[str] = (), batches: bool = True) -> None:
        self._folder = spool_folder()
        self._spool = SpoolFile(self._folder) if self._folder is not None else None
        self._model = model
        self._devices: list[int] = []
        self._requests: dict[str, Request] = {}
        self._finished: dict[str, int] = {}  # in order of their end
        self._table = StepTable()
        self._next = 0
        self._lock = threading.Lock()
        self._listeners: list[Listener] = []
        self._lost_steps = 0
        self._lost_requests = 0
        self._wrong_steps = 0
        self._wrong_step = ""
        self._head = [] if batches else [_entry(_VIEW, struct.pack("<I", 0))]
        for number, name in enumerate(devices):
            self._head.append(_entry(_DEVICE, struct.pack("<I", number) + _text(name)))
            self._devices.append(number)
        self._add(b"".join(self._head))

    now = staticmethod(time.monotonic_ns)

    @property
    def is_recorded(self) -> bool:
        """Whether a `jouleprof run --serving` around this process takes the steps."""
        return self._spool is not None

    @property
    def lost(self) -> tuple[int, int]:
        """Steps and requests for which there was no room; the report says so, too."""
        return self._lost_steps, self._lost_requests

    def listen(self, listener: Listener) -> None:
        """Calls it from now on."""
        self._listeners.append(listener)

    @property
    def begun(self) -> Mapping[str, Request]:
        """Requests that have not finished, by id."""
        return self._requests

    def number(self, id: str) -> int | None:
        """Of a request that was begun, and has not finished long ago."""
        known = self._requests.get(id)
        return self._finished.get(id) if known is None else known.number

    def number_of(self, id: str, *, model: str = "") -> int:
        """The same; one that was not begun, because it arrived before the adapter did, begins now."""
        number = self.number(id)
        return self.request(id, model=model) if number is None else number

    def request(self, id: str, *, tenant: str = "", model: str = "", arrival: int | None = None,
                prefix_of: str | None = None) -> int:
        """A request has arrived; returns its number. prefix_of: the request that filled the prefix cache for it."""
        for what, value in (("id", id), ("tenant", tenant), ("model", model)):
            if not isinstance(value, str):
                raise InvalidArgument(f"the {what} of a request is a text, not {value!r}")
        at = self.now() if arrival is None else _checked("the arrival", id, arrival, _LAST_TIME)
        with self._lock:
            known = self._requests.get(id)
            if known is not None:
                return known.number
            self._reopen()
            number = self._next
            self._next += 1
            request = Request(id, number, model or self._model, tenant, at)
            if len(self._requests) < _MOST_REQUESTS:
                self._requests[id] = request
            self._table.forget(id)
        self._write(request, prefix_of)
        for listener in self._listeners:
            listener.on_request(number, request)
        return number

    def prefix_of(self, id: str, filler: str) -> None:
        """Names the request that filled the prefix cache for `id`, once this is known."""
        request = self._requests.get(id)
        if request is not None:
            self._write(request, filler)

    def _write(self, request: Request, prefix_of: str | None) -> None:
        filler = self.number(prefix_of) if prefix_of is not None else None
        payload = (struct.pack("<Iq", request.number, request.arrival) + _text(request.id) + _text(request.model)
                   + _text(request.tenant) + struct.pack("<I", _NONE if filler is None else filler))
        if not self._add(_entry(_REQUEST, payload)):
            self._lost_requests += 1

    def step(self, begin: int, end: int, shares: Iterable[Share]) -> None:
        """A step that has ended; times as now() returns them. One that cannot be, as with more tokens rejected than
        computed, is left out, and the report says so: an engine goes on."""
        try:
            values = [value for share in shares for value in share]
        except TypeError as error:
            self._leave_out(None, f"its shares are none: {error}")
            return
        self.step_of(begin, end, values)

    def shares_of(self, ids: list[str], tokens: list[int], contexts: list[int], *, prompt_of: Callable[[str], int],
                  model: str = "", anew: set[str] = _NONE_ANEW, rejected: dict[str, int] = _NONE_REJECTED) -> bytes:
        """For step_of(): of a batch in which ids[i] has tokens[i] computed after contexts[i]. What is recomputed, and
        what is prefill, follows from the steps before. prompt_of: the tokens of a request's prompt, asked once. anew:
        ids that begin again, and may find what the prefix cache has of them. rejected: of the tokens."""
        return self._table.shares(ids, tokens, contexts, lambda id: (self.number_of(id, model=model), prompt_of(id)),
                                  anew, rejected)

    def step_of(self, begin: int, end: int, shares: list[int] | bytes) -> None:
        """As step(), with the seven numbers of each Share one after the other, or what shares_of() returns."""
        try:
            data = shares if isinstance(shares, bytes) else array("I", shares).tobytes()
            problem = problem_of_step(begin, end, data)
        except (OverflowError, TypeError, ValueError) as error:
            problem = None, f"a time or a number in it is none: {str(error).splitlines()[0]}"
        if problem is not None:
            self._leave_out(*problem)
            return
        count = len(data) // 28
        size = _STEP_PAYLOAD + len(data)
        kept = True
        if self._spool is not None:
            for device in self._devices or (_NONE,):
                kept = self._add(_STEP_HEAD.pack(_STEP, size, begin, end, device, count) + data) and kept
        if not kept:
            self._lost_steps += 1
        for listener in self._listeners:
            listener.on_step(begin, end, array("I", data).tolist() if isinstance(shares, bytes) else shares)

    def _leave_out(self, number: int | None, reason: str) -> None:
        self._wrong_steps += 1
        if self._wrong_steps > 1:
            return
        name = next((f"request {r.id}: " for r in list(self._requests.values()) if r.number == number),
                    f"request number {number}: " if number is not None else "")
        self._wrong_step = f"{name}{reason}"
        print(f"jouleprof: a step cannot be, and is left out: {self._wrong_step}; further ones are counted for the "
              "report", file=sys.stderr)

    def finish(self, id: str, *, tokens_in: int = 0, tokens_out: int = 0, at: int | None = None) -> None:
        """A request has finished, failed or was cancelled. Raises InvalidArgument for a negative count; the request is
        open then as before."""
        tokens_in = min(_checked("tokens_in", id, tokens_in, 1 << 64), _MOST)
        tokens_out = min(_checked("tokens_out", id, tokens_out, 1 << 64), _MOST)
        finish = self.now() if at is None else _checked("the end", id, at, _LAST_TIME)
        with self._lock:
            request = self._requests.pop(id, None)
            if request is None:
                return
            self._finished[id] = request.number
            if len(self._finished) > _MOST_FINISHED:
                oldest = next(iter(self._finished))
                del self._finished[oldest]
                if oldest not in self._requests:
                    self._table.forget(oldest)
        request.finish = finish
        request.tokens_in = tokens_in
        request.tokens_out = tokens_out
        payload = struct.pack("<IqII", request.number, finish, request.tokens_in, request.tokens_out)
        if not self._add(_entry(_FINISH, payload)):
            self._lost_requests += 1
        if self._spool is not None and not self._requests:
            self._spool.hurry()
        for listener in self._listeners:
            listener.on_finish(request.number, request)

    def fail(self, reason: str) -> None:
        """Steps from now on are missing: the report says so, with the reason."""
        print(f"jouleprof: steps are not recorded any more: {reason}", file=sys.stderr)
        if self._spool is not None:
            self._spool.problem = self._spool.problem or f"steps were recorded in part: {reason}"
            self.close()
            self._folder = None

    def close(self) -> None:
        """Writes what is left. Requests that have not finished stay so in the recording. A request that begins later
        is recorded again."""
        if self._spool is not None:
            if self._wrong_steps > 0 and not self._spool.problem:
                self._spool.problem = (f"{self._wrong_steps} steps cannot be, and were left out; the first: "
                                       f"{self._wrong_step}")
            if self.lost != (0, 0):
                self._spool.flush()
                self._add(_entry(_LOST, struct.pack("<QQ", *self.lost)))
            self._spool.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _reopen(self) -> None:
        """A forked process, and an engine that is started again after close(), write a file of their own."""
        if self._folder is not None and self._spool is not None and not self._spool.is_open:
            self._spool = SpoolFile(self._folder)
            self._lost_steps = self._lost_requests = self._wrong_steps = 0
            self._add(b"".join(self._head))

    def _add(self, entry: bytes) -> bool:
        return self._spool is None or self._spool.add(entry)


