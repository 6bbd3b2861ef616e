"""SGLang's scheduler, as a plugin of the entry point `sglang.srt.plugins`: installing jouleprof is enough.

    jouleprof run --serving -- python -m sglang.launch_server --model-path MODEL

A step is a batch of the scheduler: from its submission, or the end of the one before, to the end of its processing.
With several GPUs JOULEPROF_SERVING_DEVICES names those of the engine. `SGLANG_PLUGINS` may leave the plugin out."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import Any

from .._errors import Unsupported
from ._engine import Wrapped, chosen_devices, require_attributes, require_parameters, require_version
from ._recorder import Recorder
from ._spool import spool_folder

ENGINE = "SGLang"
TESTED = ("0.5.23",)
_METHODS = ("run_batch", "process_batch_result", "handle_generate_request")
_BATCH = ("reqs", "forward_mode", "spec_algorithm")
_REQUEST = ("rid", "origin_input_ids", "output_ids", "retraction_count", "finished")

_attached = Wrapped()


class _Steps:
    """The batches of one scheduler, which processes their results in the order of their submission."""

    def __init__(self, recorder: Recorder, model: str) -> None:
        self._recorder = recorder
        self._model = model
        self._submitted: deque[tuple[int, list[str], bytes]] = deque()
        self._position: dict[str, int] = {}  # tokens that have keys and values once the submitted batches have run
        self._retracted: dict[str, int] = {}  # how often
        self._last_end = 0

    def submit(self, batch: Any) -> None:
        require_attributes(ENGINE, batch, _BATCH)
        mode = batch.forward_mode
        if not batch.spec_algorithm.is_none():
            raise Unsupported("speculative decoding of SGLang is not known: its drafts would be of no request")
        if mode.is_extend():
            if mode.is_split_prefill() or mode.is_dllm_extend():
                raise Unsupported("a batch of SGLang for split prefill or a diffusion model is not known")
            tokens, contexts = ([int(n) for n in numbers] for numbers in (batch.extend_lens, batch.prefix_lens))
        elif mode.is_decode():
            # Its own count lags by the batches that were submitted, and not processed.
            tokens = [1] * len(batch.reqs)
            contexts = [self._position.get(req.rid, len(req.origin_input_ids) + len(req.output_ids) - 1)
                        for req in batch.reqs]
        else:
            tokens = contexts = []
        names = [req.rid for req in batch.reqs]
        self._submitted.append((time.monotonic_ns(), names, self._shares(batch.reqs, names, tokens, contexts)))

    def _shares(self, reqs: list[Any], names: list[str], tokens: list[int], contexts: list[int]) -> bytes:
        anew = set()
        for req in reqs if tokens else ():
            if self._retracted.get(req.rid, 0) != req.retraction_count:
                self._retracted[req.rid] = req.retraction_count
                anew.add(req.rid)
        self._position.update((name, n + before) for name, n, before in zip(names, tokens, contexts))

        def prompt_of(name: str) -> int:
            req = reqs[names.index(name)]
            require_attributes(ENGINE, req, _REQUEST)
            return len(req.origin_input_ids)

        return self._recorder.shares_of(names, tokens, contexts, prompt_of=prompt_of, model=self._model, anew=anew)

    def processed(self, batch: Any) -> None:
        end = time.monotonic_ns()
        if not self._submitted:
            return  # attached within a batch
        begin, names, shares = self._submitted.popleft()
        if names != [req.rid for req in batch.reqs]:
            raise Unsupported("SGLang did not process its batches in the order of their submission")
        if shares:
            self._recorder.step_of(max(begin, self._last_end), end, shares)
            self._last_end = end
        for req in batch.reqs:
            if req.finished() and req.rid in self._position:
                del self._position[req.rid]
                self._retracted.pop(req.rid, None)
                self._recorder.finish(req.rid, tokens_in=len(req.origin_input_ids), tokens_out=len(req.output_ids))


def attach(recorder: Recorder | None = None) -> Recorder:
    """Records the batches of the scheduler of this process: that of the first rank. Raises Unsupported where this is
    not an SGLang that it knows."""
    from sglang import version
    from sglang.srt.managers import scheduler as module

    require_version(ENGINE, version.__version__, TESTED)
    require_attributes(ENGINE, module, ("Scheduler", "get_parallel"))
    scheduler = module.Scheduler
    require_attributes(ENGINE, scheduler, _METHODS)
    require_parameters(ENGINE, scheduler.run_batch, ("batch",))
    require_parameters(ENGINE, scheduler.process_batch_result, ("batch", "result"))
    require_parameters(ENGINE, scheduler.handle_generate_request, ("recv_req",))
    if _attached:
        detach()
    own = recorder or Recorder(devices=chosen_devices())

    def steps_of(instance: Any) -> _Steps | None:
        """Absent: another rank records the same batches."""
        if "_jouleprof_steps" not in instance.__dict__:
            parallel = module.get_parallel()
            if parallel.pp_size > 1 or parallel.num_dp_ranks > 1:
                raise Unsupported("pipeline-parallel and data-parallel schedulers of SGLang are not known")
            model = getattr(getattr(instance, "server_args", None), "served_model_name", None) or ""
            instance.__dict__["_jouleprof_steps"] = _Steps(own, model) if parallel.tp_rank == 0 else None
        return instance.__dict__["_jouleprof_steps"]  # type: ignore[no-any-return]

    def handle_generate_request(self: Any, recv_req: Any, *_: Any, **__: Any) -> None:
        steps = steps_of(self)
        if steps is not None:
            own.request(recv_req.rid, model=steps._model)

    def run_batch(self: Any, batch: Any, *_: Any, **__: Any) -> None:
        steps = steps_of(self)
        if steps is not None:
            steps.submit(batch)

    def process_batch_result(_: None, self: Any, batch: Any, *__: Any, **___: Any) -> None:
        steps = steps_of(self)
        if steps is not None:
            steps.processed(batch)

    _attached.on_failure = own.fail  # type: ignore[method-assign]
    _attached.observe(scheduler, "handle_generate_request", before=handle_generate_request)
    _attached.observe(scheduler, "run_batch", before=run_batch)
    _attached.observe(scheduler, "process_batch_result", after=process_batch_result)
    return own


def detach() -> None:
    """Leaves SGLang as it was. The recorder stays open."""
    _attached.restore()


def plugin() -> None:
    """Of `sglang.srt.plugins`, in each of SGLang's processes: only under `jouleprof run --serving`."""
    if spool_folder() is None or _attached or "sglang.srt.managers.scheduler" not in sys.modules:
        return
    try:
        attach()
    except (ImportError, Unsupported) as error:
        print(f"jouleprof: steps of SGLang are not recorded: {error}", file=sys.stderr)
