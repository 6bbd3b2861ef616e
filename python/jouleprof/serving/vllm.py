"""vLLM's v1 engine, as a plugin of the entry point `vllm.general_plugins`: installing jouleprof is enough.

    jouleprof run --serving -- vllm serve MODEL

Steps are those of the scheduler: from the submission of a batch, or the end of the one before, to the processing of
its output. With several GPUs JOULEPROF_SERVING_DEVICES names those of the engine: "gpu0,gpu1" or UUIDs.
`VLLM_PLUGINS` may leave the plugin out."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, Callable

from .._errors import Unsupported
from ._engine import Wrapped, require_attributes, require_parameters, require_version
from ._recorder import Recorder
from ._spool import spool_folder

ENGINE = "vLLM"
TESTED = ("0.32",)
_DEVICES = "JOULEPROF_SERVING_DEVICES"
_OUTPUT_FIELDS = ("scheduled_new_reqs", "scheduled_cached_reqs", "num_scheduled_tokens", "scheduled_spec_decode_tokens")
_CACHED_FIELDS = ("req_ids", "num_computed_tokens")
_NEW_FIELDS = ("req_id", "num_computed_tokens")

_attached = Wrapped()


class _Steps:
    """The batches of one engine, between their scheduling and the processing of their output."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._submitted: dict[int, tuple[int, list[tuple[str, int, int]]]] = {}
        self._computed: dict[str, int] = {}  # of each request: the most tokens that had keys and values
        self._last_end = 0

    def scheduled(self, output: Any) -> None:
        counts = output.num_scheduled_tokens
        if not counts:
            return
        cached = output.scheduled_cached_reqs
        parts = [(new.req_id, counts[new.req_id], new.num_computed_tokens) for new in output.scheduled_new_reqs]
        parts += [(name, counts[name], before) for name, before in zip(cached.req_ids, cached.num_computed_tokens)
                  if name in counts]
        self._submitted[id(output)] = (time.monotonic_ns(), parts)

    def finished(self, requests: Any, output: Any, sampled: Any) -> None:
        end = time.monotonic_ns()
        found = self._submitted.pop(id(output), None)
        if found is None:
            return
        begin, parts = found
        drafts = output.scheduled_spec_decode_tokens
        shares: list[int] = []
        for name, tokens, context in parts:
            number = self._recorder.number(name)
            if number is None:
                number = self._recorder.request(name)
            known = self._computed.get(name)
            highest = known or 0
            cached = context if known is None else 0
            recomputed = max(0, min(highest, context + tokens) - context)
            request = requests.get(name)
            prompt = request.num_prompt_tokens if request is not None else 0
            rejected = 0
            if name in drafts:
                rejected = min(max(len(drafts[name]) + 1 - sampled(name), 0), tokens - 1)
            self._computed[name] = max(highest, context + tokens - rejected)
            shares += (number, tokens, context, cached, rejected, recomputed,
                       int(context < prompt or recomputed > 0))
        self._recorder.step_of(max(begin, self._last_end), end, shares)
        self._last_end = end

    def forget(self, name: str) -> None:
        self._computed.pop(name, None)


def attach(recorder: Recorder | None = None, *, tenant_of: Callable[[Any], str] | None = None) -> Recorder:
    """Records the steps of every scheduler of this process. tenant_of: the tenant of a `vllm.v1.request.Request`.
    Raises Unsupported where this is not a vLLM that it knows."""
    import vllm
    from vllm.v1.core.sched import output as outputs
    from vllm.v1.core.sched.scheduler import Scheduler

    require_version(ENGINE, vllm.__version__, TESTED)
    require_attributes(ENGINE, Scheduler, ("schedule", "update_from_output", "add_request", "_free_request"))
    require_parameters(ENGINE, Scheduler.update_from_output, ("scheduler_output", "model_runner_output"))
    for kind, names in ((outputs.SchedulerOutput, _OUTPUT_FIELDS), (outputs.CachedRequestData, _CACHED_FIELDS),
                        (outputs.NewRequestData, _NEW_FIELDS)):
        require_parameters(ENGINE, kind, names)
    if _attached:
        detach()
    devices = [name for name in os.environ.get(_DEVICES, "").split(",") if name]
    own = recorder or Recorder(devices=devices)

    def steps_of(scheduler: Any) -> _Steps:
        known = scheduler.__dict__.get("_jouleprof_steps")
        if known is None:
            known = scheduler.__dict__["_jouleprof_steps"] = _Steps(own)
        return known  # type: ignore[no-any-return]

    def add_request(before: Any, self: Any, request: Any) -> Any:
        lora = getattr(request, "lora_request", None)
        model = lora.lora_name if lora is not None else str(self.vllm_config.model_config.served_model_name)
        own.request(request.request_id, tenant=tenant_of(request) if tenant_of is not None else "", model=model)
        return before(self, request)

    def schedule(before: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        output = before(self, *args, **kwargs)
        steps_of(self).scheduled(output)
        return output

    def update_from_output(before: Any, self: Any, scheduler_output: Any, model_runner_output: Any) -> Any:
        tokens = model_runner_output.sampled_token_ids
        places = model_runner_output.req_id_to_index

        def sampled(name: str) -> int:
            place = places.get(name)
            return len(tokens[place]) if place is not None and tokens else 0

        steps_of(self).finished(self.requests, scheduler_output, sampled)
        return before(self, scheduler_output, model_runner_output)

    def free_request(before: Any, self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        steps_of(self).forget(request.request_id)
        own.finish(request.request_id, tokens_in=request.num_prompt_tokens, tokens_out=request.num_output_tokens)
        return before(self, request, *args, **kwargs)

    def shutdown(before: Any, self: Any, *args: Any, **kwargs: Any) -> Any:
        own.close()
        return before(self, *args, **kwargs)

    for name, wrapper in (("add_request", add_request), ("schedule", schedule), ("shutdown", shutdown),
                          ("update_from_output", update_from_output), ("_free_request", free_request)):
        _attached.wrap(Scheduler, name, wrapper)
    return own


def detach() -> None:
    _attached.restore()


def plugin() -> None:
    """Of `vllm.general_plugins`, in each of vLLM's processes: only under `jouleprof run --serving`."""
    if spool_folder() is None or _attached:
        return
    try:
        attach()
    except (ImportError, Unsupported) as error:
        print(f"jouleprof: steps of vLLM are not recorded: {error}", file=sys.stderr)
