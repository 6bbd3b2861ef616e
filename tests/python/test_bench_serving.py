"""jouleprof bench --steady-state: a batched serving loop, measured while its batch is full."""

import json
import os

import pytest
from conftest import CONSTANT
from test_bench import bench, row

from jouleprof.bench._serving import SteadyState
from jouleprof.bench._workload import Refused

TOOL = os.environ.get("JOULEPROF_TOOL", "")
SERVING = ("bench_workloads:server", "--device", "cuda:0", "--idle", "1s", "--steady-state", "ml.energy")
needs_tool = pytest.mark.skipif(not os.path.exists(TOOL), reason="JOULEPROF_TOOL is not built")


def test_the_steady_state_begins_with_a_full_batch_and_ends_before_it_drains():
    state = SteadyState(requests=6, batch=2)
    assert state.take([(0, 3, False)]) == (3, 0) and not state.has_begun
    assert state.take([(0, 1, True), (1, 0, False)]) == (1, 1) and not state.has_begun  # request 1: prefill only
    assert state.take([(1, 1, False)]) == (1, 0) and state.has_begun and not state.is_over
    state.take([(1, 1, True), (2, 1, False)])
    assert not state.is_over
    state.take([(2, 1, True)])
    assert state.is_over  # 3 of 6 are finished: all but batch + 1


def test_too_few_requests_have_no_steady_state():
    with pytest.raises(Refused, match="3 requests never leave a full batch of 2"):
        SteadyState(requests=3, batch=2)


@needs_tool
def test_energy_is_per_token_of_the_steady_state(machine):
    machine.gpus(CONSTANT)
    done = bench(*SERVING, "--batch", "10", "--json")
    (case,) = json.loads(done.stdout)["cases"]
    steady = case["steady_state"]
    assert steady["rule"] == "ml.energy" and steady["requests"] == 60
    # The first step fills the batch; 15 more finish all but 11 of the 60 requests, in a batch that is always full.
    assert (case["iterations"], steady["output_tokens"], steady["finished_requests"]) == (15, 150, 50)
    seconds = case["energy"]["profile"]["duration_seconds"]
    joules = seconds * CONSTANT["idle_watts"]
    token, request = row(case, "output token"), row(case, "request")
    assert token["device"]["energy_joules"] == pytest.approx(joules / steady["output_tokens"], rel=0.03)
    assert request["device"]["energy_joules"] == pytest.approx(joules / steady["finished_requests"], rel=0.03)
    assert case["warm_up"]["iterations"] == 1 and case["latency"]["median_seconds"] >= 0.02


@needs_tool
@pytest.mark.parametrize("arguments, words", [
    (("bench_workloads:short_server", "--steady-state", "ml.energy", "--batch", "2"), "ended before the batch was full"),
    (("bench_workloads:server", "--batch", "2"), "give --steady-state ml.energy"),
    (("bench_workloads:short", "--steady-state", "ml.energy", "--seed", "7"), "a serving loop"),
    (("bench_workloads:server", "--steady-state", "ml.energy", "--torch-timer"), "excludes"),
    (("bench_workloads:server", "--steady-state", "other"), "ml.energy"),
])
def test_what_is_no_serving_loop_is_refused(machine, arguments, words):
    machine.gpus(CONSTANT)
    assert words in bench(*arguments, "--idle", "0s", status=2).stderr
