"""Continuous batching of transformers: `ContinuousBatchingManager` and `generate_batch`.

    import jouleprof.serving.transformers

    jouleprof.serving.transformers.attach()      # before the first manager is made
    model.generate_batch(inputs)                 # under: jouleprof run --serving -- python ...

A request's tenant: `with tenant("alice"): manager.add_request(...)`."""

from __future__ import annotations

import contextlib
import contextvars
import time
from typing import Any, Iterator

from ._engine import Wrapped, require_attributes, require_parameters, require_version
from ._recorder import Recorder

ENGINE = "transformers"
TESTED = ("5.17",)

_tenant: contextvars.ContextVar[str] = contextvars.ContextVar("jouleprof_tenant", default="")
_attached = Wrapped()
_recorder: Recorder | None = None


@contextlib.contextmanager
def tenant(name: str) -> Iterator[None]:
    """Requests that are added within are this tenant's."""
    token = _tenant.set(name)
    try:
        yield
    finally:
        _tenant.reset(token)


class _Batches:
    """The batches of one processor, from their submission to the end of their computation.

    With asynchronous batching the next batch is submitted before the results of the last one are fetched; the
    device computes them one after the other."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._prepared: bytes | None = None
        self._in_flight: list[tuple[int, bytes]] = []
        self._last_end = 0

    def prepare(self, requests_in_batch: list[Any]) -> None:
        states = [future.state for future in requests_in_batch]
        ids = [state.request_id for state in states]
        self._prepared = self._recorder.shares_of(
            ids, [future.query_length for future in requests_in_batch], [state.position_offset for state in states],
            prompt_of=lambda id: len(states[ids.index(id)].initial_tokens))

    def submit(self) -> None:
        if self._prepared is not None:
            self._in_flight.append((time.monotonic_ns(), self._prepared))
            self._prepared = None

    def fetched(self) -> None:
        if not self._in_flight:
            return
        end = time.monotonic_ns()
        submitted, shares = self._in_flight.pop(0)
        self._recorder.step_of(max(submitted, self._last_end), end, shares)
        self._last_end = end


def attach(recorder: Recorder | None = None, *, model: str = "") -> Recorder:
    """Records the steps of every manager that is made from now on, and returns the recorder. Without one, makes a
    Recorder of all devices that PyTorch uses. Raises Unsupported where this is not a transformers that it knows."""
    global _recorder
    import transformers
    from transformers.generation.continuous_batching import continuous_api, input_outputs, scheduler

    require_version(ENGINE, transformers.__version__, TESTED)
    processor = continuous_api.ContinuousBatchProcessor
    manager = continuous_api.ContinuousBatchingManager
    require_attributes(ENGINE, processor, ("prepare_next_batch", "update_batch", "_generation_step"))
    require_parameters(ENGINE, manager.add_request, ("input_ids", "request_id", "max_new_tokens"))
    require_parameters(ENGINE, scheduler.Scheduler.finish_request, ("request_id",))
    ios = [input_outputs.ContinuousBatchingIOs, input_outputs.ContinuousBatchingAsyncIOs]
    for kind in ios:
        require_parameters(ENGINE, kind.prepare_batch_tensors, ("requests_in_batch",))
        require_attributes(ENGINE, kind, ("prepare_batch_update",))
    if _attached:
        detach()
    _recorder = recorder or Recorder(model=model, devices=_devices())
    own = _recorder

    def batches_of(instance: Any) -> _Batches:
        known = instance.__dict__.get("_jouleprof_batches")
        if known is None:
            known = instance.__dict__["_jouleprof_batches"] = _Batches(own)
        return known  # type: ignore[no-any-return]

    def prepare_next_batch(self: Any) -> None:
        self.inputs_and_outputs.__dict__["_jouleprof_batches"] = batches_of(self)

    def prepare_batch_tensors(self: Any, requests_in_batch: Any, *_: Any, **__: Any) -> None:
        batches = self.__dict__.get("_jouleprof_batches")
        if batches is not None:
            batches.prepare(requests_in_batch)

    def generation_step(self: Any, *_: Any, **__: Any) -> None:
        batches_of(self).submit()

    def prepare_batch_update(_: Any, self: Any) -> None:
        batches = self.__dict__.get("_jouleprof_batches")
        if batches is not None:
            batches.fetched()

    def with_id(before: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        """The request is known before the engine's thread has it."""
        if kwargs.get("request_id") is None and len(args) < 2:
            with self._request_lock:
                kwargs["request_id"] = f"req_{self._request_counter}"
                self._request_counter += 1
        return before(self, *args, **kwargs)

    def add_request(self: Any, *args: Any, **kwargs: Any) -> None:
        own.request(kwargs["request_id"] if "request_id" in kwargs else args[1], tenant=_tenant.get(), model=model)

    def finish_request(self: Any, request_id: str) -> None:
        state = self.active_requests.get(request_id)
        if state is not None:
            prompt = state._true_initial_tokens or len(state.initial_tokens)
            produced = len(state.initial_tokens) - prompt + state.generated_len()
            own.finish(request_id, tokens_in=prompt, tokens_out=produced)

    _attached.on_failure = own.fail  # type: ignore[method-assign]
    _attached.observe(processor, "prepare_next_batch", before=prepare_next_batch)
    _attached.observe(processor, "_generation_step", before=generation_step)
    _attached.observe(manager, "add_request", before=add_request)
    _attached.wrap(manager, "add_request", with_id)
    _attached.observe(scheduler.Scheduler, "finish_request", before=finish_request)
    for kind in ios:
        if "prepare_batch_tensors" in kind.__dict__:
            _attached.observe(kind, "prepare_batch_tensors", before=prepare_batch_tensors)
        if "prepare_batch_update" in kind.__dict__:
            _attached.observe(kind, "prepare_batch_update", after=prepare_batch_update)
    return own


def detach() -> None:
    """Leaves transformers as it was. The recorder stays open."""
    _attached.restore()


def _devices() -> list[str]:
    """The UUID of the current GPU; none without CUDA."""
    import torch

    if not torch.cuda.is_available():
        return []
    uuid = str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid)
    return [uuid if uuid.startswith("GPU-") else f"GPU-{uuid}"]
