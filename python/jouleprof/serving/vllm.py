"""vLLM's v1 engine, as a plugin of the entry point `vllm.general_plugins`: installing jouleprof is enough.

    jouleprof run --serving -- vllm serve MODEL

Steps are those of the scheduler: from the submission of a batch, or the end of the one before, to the processing of
its output. With several GPUs JOULEPROF_SERVING_DEVICES names those of the engine: "gpu0,gpu1" or UUIDs.
`VLLM_PLUGINS` may leave the plugin out."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable

from .._errors import Unsupported
from ._engine import Wrapped, chosen_devices, require_attributes, require_parameters, require_version
from ._recorder import Recorder
from ._requests import ProvisionalEnergies
from ._spool import recording_of_run, spool_folder

ENGINE = "vLLM"
TESTED = ("0.32",)
_OUTPUT_FIELDS = ("scheduled_new_reqs", "scheduled_cached_reqs", "num_scheduled_tokens", "scheduled_spec_decode_tokens")
_CACHED_FIELDS = ("req_ids", "resumed_req_ids", "num_computed_tokens")
_RUNNER_FIELDS = ("req_id_to_index", "sampled_token_ids")
_METHODS = ("schedule", "update_from_output", "add_request", "_free_request", "shutdown")
_OF_SCHEDULER = ("requests", "vllm_config", "num_sampled_tokens_per_step", "hash_block_size")
_MOST_BLOCKS = 1 << 17  # of the prefix cache whose filler is known: the newest
_NEW_FIELDS = ("req_id", "num_computed_tokens")

_attached = Wrapped()
_answers = Wrapped()
_answers_started: list[ProvisionalEnergies] = []


class _Steps:
    """The batches of one engine, between their scheduling and the processing of their output."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._submitted: dict[int, tuple[int, list[str], list[int], set[str]]] = {}
        self._fillers: dict[bytes, str] = {}  # of blocks of the prefix cache, by their hashes
        self._last_end = 0

    def scheduled(self, scheduler: Any, output: Any) -> None:
        if not output.num_scheduled_tokens:
            return
        new = output.scheduled_new_reqs
        for request in new:
            self._name_filler(scheduler.requests.get(request.req_id), request.num_computed_tokens,
                              scheduler.hash_block_size)
        cached = output.scheduled_cached_reqs
        names, contexts, anew = cached.req_ids, cached.num_computed_tokens, cached.resumed_req_ids
        if new:
            names = [request.req_id for request in new] + names
            contexts = [request.num_computed_tokens for request in new] + contexts
        self._submitted[id(output)] = (time.monotonic_ns(), names, contexts, anew)

    def _name_filler(self, request: Any, cached: int, block: int) -> None:
        """Who computed the last of the blocks that the request has from the prefix cache; it computes those after."""
        if request is None or not request.block_hashes:
            return
        blocks = cached // block
        filler = self._fillers.get(request.block_hashes[blocks - 1]) if blocks > 0 else None
        if filler is not None:
            self._recorder.prefix_of(request.request_id, filler)
        self.fills(request, blocks)

    def fills(self, request: Any, first: int) -> None:
        """The request computes its blocks from `first` on."""
        for key in request.block_hashes[first:]:
            self._fillers.pop(key, None)
            self._fillers[key] = request.request_id
        while len(self._fillers) > _MOST_BLOCKS:
            del self._fillers[next(iter(self._fillers))]

    def finished(self, scheduler: Any, output: Any, result: Any) -> None:
        end = time.monotonic_ns()
        found = self._submitted.pop(id(output), None)
        if found is None:
            return
        begin, names, contexts, anew = found
        counts = output.num_scheduled_tokens
        try:
            tokens = [counts[name] for name in names]
        except KeyError:  # some are known, and not scheduled
            contexts = [before for name, before in zip(names, contexts) if name in counts]
            names = [name for name in names if name in counts]
            tokens = [counts[name] for name in names]
        per_step = scheduler.num_sampled_tokens_per_step
        rejected: dict[str, int] = {}
        for name, drafts in output.scheduled_spec_decode_tokens.items():
            place = result.req_id_to_index.get(name)
            sampled = len(result.sampled_token_ids[place]) if place is not None and result.sampled_token_ids else 0
            if sampled > 0 or per_step == 0:  # otherwise nothing was sampled, and nothing rejected
                rejected[name] = len(drafts) - max(sampled - per_step, 0)

        def prompt_of(name: str) -> int:
            request = scheduler.requests.get(name)
            return request.num_prompt_tokens if request is not None else 0

        self._recorder.step_of(max(begin, self._last_end), end, self._recorder.shares_of(
            names, tokens, contexts, prompt_of=prompt_of, anew=anew, rejected=rejected))
        self._last_end = end


def attach(recorder: Recorder | None = None, *, tenant_of: Callable[[Any], str] | None = None) -> Recorder:
    """Records the steps of the scheduler of this process. tenant_of: the tenant of a `vllm.v1.request.Request`.
    Raises Unsupported where this is not a vLLM that it knows."""
    import vllm
    from vllm.v1 import outputs as results
    from vllm.v1.core.sched import output as outputs
    from vllm.v1.core.sched.scheduler import Scheduler

    require_version(ENGINE, vllm.__version__, TESTED)
    require_attributes(ENGINE, Scheduler, _METHODS)
    require_parameters(ENGINE, Scheduler.update_from_output, ("scheduler_output", "model_runner_output"))
    for kind, names in ((outputs.SchedulerOutput, _OUTPUT_FIELDS), (outputs.CachedRequestData, _CACHED_FIELDS),
                        (outputs.NewRequestData, _NEW_FIELDS), (results.ModelRunnerOutput, _RUNNER_FIELDS)):
        require_parameters(ENGINE, kind, names)
    if _attached:
        detach()
    own = recorder or Recorder(devices=chosen_devices())

    def steps_of(scheduler: Any) -> _Steps:
        known = scheduler.__dict__.get("_jouleprof_steps")
        if known is None:
            require_attributes(ENGINE, scheduler, _OF_SCHEDULER)
            engines = scheduler.vllm_config.parallel_config.data_parallel_size
            if engines > 1:
                raise Unsupported(f"this vLLM has {engines} data-parallel engines, and which GPUs each has is not "
                                  "known: start an engine for each, with its own CUDA_VISIBLE_DEVICES")
            known = scheduler.__dict__["_jouleprof_steps"] = _Steps(own)
        return known  # type: ignore[no-any-return]

    def add_request(self: Any, request: Any) -> None:
        steps_of(self)
        lora = request.lora_request
        served = self.vllm_config.model_config.served_model_name
        model = lora.lora_name if lora is not None else served if isinstance(served, str) else served[0]
        own.request(request.request_id, tenant=tenant_of(request) if tenant_of is not None else "", model=model)

    def schedule(output: Any, self: Any, *_: Any, **__: Any) -> None:
        steps_of(self).scheduled(self, output)

    def update_from_output(self: Any, scheduler_output: Any, model_runner_output: Any) -> None:
        steps_of(self).finished(self, scheduler_output, model_runner_output)

    def free_request(self: Any, request: Any, *_: Any, **__: Any) -> None:
        steps_of(self).fills(request, request.num_prompt_tokens // self.hash_block_size)  # answers may be prefixes
        own.finish(request.request_id, tokens_in=request.num_prompt_tokens, tokens_out=request.num_output_tokens)

    _attached.on_failure = own.fail  # type: ignore[method-assign]
    _attached.observe(Scheduler, "add_request", before=add_request)
    _attached.observe(Scheduler, "schedule", after=schedule)
    _attached.observe(Scheduler, "update_from_output", before=update_from_output)
    _attached.observe(Scheduler, "_free_request", before=free_request)
    _attached.observe(Scheduler, "shutdown", before=lambda self: own.close())
    return own


def detach() -> None:
    """Leaves vLLM as it was. The recorder stays open."""
    _attached.restore()
    _answers.restore()


def attach_answers(energies: ProvisionalEnergies) -> None:
    """With `--enable-per-request-metrics`, `metrics` of a response has the request's provisional energy as `jouleprof`.
    Raises Unsupported as attach() does."""
    import vllm
    from vllm.entrypoints.openai.chat_completion import protocol as chat
    from vllm.entrypoints.openai.completion import protocol as completion

    require_version(ENGINE, vllm.__version__, TESTED)

    def made(_: None, self: Any, *__: Any, **___: Any) -> None:
        if self.metrics is not None and self.usage is not None:
            if not _answers_started:
                _answers_started.append(energies)
                energies.start()
            energy = energies.of(self.usage.prompt_tokens, self.usage.completion_tokens or 0)
            if energy is not None:
                self.metrics.jouleprof = energy

    _answers.on_failure = lambda reason: print(  # type: ignore[method-assign]
        f"jouleprof: responses of vLLM have no energy any more: {reason}", file=sys.stderr)
    for kind in (chat.ChatCompletionResponse, chat.ChatCompletionStreamResponse, completion.CompletionResponse,
                 completion.CompletionStreamResponse):
        for name in ("metrics", "usage"):
            if name not in kind.model_fields:
                raise Unsupported(f"{ENGINE}: {kind.__name__} has no {name}: this {ENGINE} was changed")
        _answers.observe(kind, "__init__", after=made)


def plugin() -> None:
    """Of `vllm.general_plugins`, in each of vLLM's processes: only under `jouleprof run --serving`."""
    if spool_folder() is None or _attached:
        return
    try:
        attach()
        recording = recording_of_run()
        if recording is not None and not _answers and "vllm.entrypoints.openai.completion.protocol" in sys.modules:
            attach_answers(ProvisionalEnergies(recording))
    except (ImportError, Unsupported) as error:
        print(f"jouleprof: steps of vLLM are not recorded: {error}", file=sys.stderr)
