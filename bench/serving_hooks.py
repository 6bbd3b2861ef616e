#!/usr/bin/env python3
"""Microseconds that jouleprof.serving takes of an engine's thread for a step of 8, 64 and 256 decoding requests, with the
recording's file: the least of 20 medians of 100 steps. Needs jouleprof, and no engine: its objects are stand-ins.

    python bench/serving_hooks.py"""

import os
import statistics
import sys
import tempfile
import time
from types import SimpleNamespace

import jouleprof.serving.sglang as sglang
import jouleprof.serving.transformers as transformers
import jouleprof.serving.vllm as vllm
from jouleprof.serving import Recorder

def time_of(step):
    """Of step(), in microseconds."""
    medians = []
    for _ in range(20):
        times = []
        for _ in range(100):
            begin = time.perf_counter_ns()
            step()
            times.append(time.perf_counter_ns() - begin)
        medians.append(statistics.median(times))
        time.sleep(0.05)  # engines wait for the GPU: the writing thread has its time
    return min(medians) / 1e3


def of_recorder(recorder, ids):
    shares = [value for id in ids for value in (recorder.request(id), 1, 500, 0, 0, 0, 0)]
    return lambda: recorder.step_of(1, 2, list(shares))


def of_transformers(recorder, ids):
    batches = transformers._Batches(recorder)
    futures = []
    for id in ids:
        recorder.request(id)
        state = SimpleNamespace(request_id=id, position_offset=500, initial_tokens=[0] * 100)
        futures.append(SimpleNamespace(state=state, query_length=1))

    def step():
        batches.prepare(futures)
        batches.submit()
        batches.fetched()
    return step


def of_vllm(recorder, ids):
    steps = vllm._Steps(recorder)
    for id in ids:
        recorder.request(id)
    request = SimpleNamespace(num_prompt_tokens=100, is_finished=lambda: False)
    scheduler = SimpleNamespace(num_sampled_tokens_per_step=1, requests=dict.fromkeys(ids, request))
    cached = SimpleNamespace(req_ids=ids, resumed_req_ids=set(), num_computed_tokens=[500] * len(ids))
    output = SimpleNamespace(num_scheduled_tokens=dict.fromkeys(ids, 1), scheduled_new_reqs=[],
                             scheduled_cached_reqs=cached, scheduled_spec_decode_tokens={})
    result = SimpleNamespace(req_id_to_index={}, sampled_token_ids=[])

    def step():
        steps.scheduled(scheduler, output)
        steps.finished(scheduler, output, result)
    return step


def main():
    made = {"step_of() alone": of_recorder, "transformers": of_transformers, "vLLM": of_vllm}
    print(f"{'requests in a step':20}" + "".join(f"{n:>10}" for n in (8, 64, 256)))
    for name, make in made.items():
        row = []
        for n in (8, 64, 256):
            with tempfile.TemporaryDirectory() as folder:
                os.environ.update(JOULEPROF_TRACE=folder, JOULEPROF_TRACE_WHAT="serving")
                with Recorder(model="llama") as recorder:
                    row.append(time_of(make(recorder, [f"request-{i}" for i in range(n)])))
                    if recorder.lost != (0, 0):
                        sys.exit(f"{recorder.lost} steps and requests were lost")
        print(f"{name:20}" + "".join(f"{us:>7.1f} us" for us in row))


if __name__ == "__main__":
    main()
