"""Isolated re-runs of layers when a program ends: `jouleprof run --replay` (docs/layers.md)."""

import ast
import pathlib

import pytest
import spool
from test_torch_layers import run, torch_python  # noqa: F401: a fixture

CASES = pathlib.Path(__file__).parent / "replay_cases.py"


def replayed(folder, case, seconds="0.02"):
    """The finished program, and its trace."""
    done = run([str(CASES)], case, spool_folder=folder, check=False, JOULEPROF_REPLAY=seconds)
    (process,) = spool.read(folder).values()
    assert process.ended
    return done, process


def names(process):
    return [replay.layer for replay in process.replays if replay.layer is not None]


def test_each_kind_of_layer_is_re_run_once(tmp_path):
    done, process = replayed(tmp_path, "local_model", seconds="0.2")  # a busy machine included
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
    assert process.problem == ""
    # b1 is called with another scale than b0, and so are no others of its parts.
    assert names(process) == ["b0", "b0.fc", "b0.act", "b1", "head"]
    assert all(replay.calls > 3 for replay in process.replays if replay.layer is not None)


def test_kernels_are_re_run_before_the_layers(tmp_path):
    done, process = replayed(tmp_path, "kernels")
    assert (done.returncode, done.stderr) == (0, "")
    assert names(process) == ["Net", "b0", "b0.fc", "b0.act", "b1", "head"]
    assert [replay.calls for replay in process.replays if replay.layer == "Net"] == [0]
    assert process.problem == "replay: not re-run in isolation: kernels of Net: 0.02"


def test_a_program_whose_gpu_does_not_go_on_ends_with_its_status(tmp_path):
    done, process = replayed(tmp_path, "stuck")
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
    assert process.problem == "replay: not re-run in isolation: kernels of Net: add did not end"
    assert names(process) == [] and process.calls[("Net", "forward")] == 5


def test_the_calls_that_took_longest_get_most_of_the_time(tmp_path):
    done, _ = replayed(tmp_path, "generating")
    assert (done.stdout, done.stderr) == ("(97, True) [1, 1, 2, 97]\n", "")


def test_replays_follow_one_another_and_are_no_calls(tmp_path):
    _, process = replayed(tmp_path, "local_model")
    first, *rest = process.replays
    assert first.layer is None and rest[-1].layer is None
    for before, after in zip(process.replays, rest):
        assert before.end == after.begin
    assert process.calls[("Net", "forward")] == 5
    assert process.calls[("b0.fc", "forward")] == 5


def test_without_the_option_nothing_is_run(tmp_path):
    run(["-c", "import torch; torch.nn.Linear(2, 2)(torch.ones(1, 2))"], spool_folder=tmp_path)
    (process,) = spool.read(tmp_path).values()
    assert process.replays == [] and process.problem == ""


@pytest.mark.parametrize("case, status, words", [
    ("failed", 1, "ended with an exception"),
    ("interrupted", 0, "KeyboardInterrupt"),
    ("many_processes", 0, "destroy_process_group"),
    ("no_gpu", 0, "nothing ran on a GPU"),
])
def test_why_nothing_was_re_run(tmp_path, case, status, words):
    done, process = replayed(tmp_path, case)
    assert done.returncode == status
    assert ("ValueError: mine" in done.stderr) == (case == "failed")
    assert process.problem.startswith("replay: ") and words in process.problem
    assert names(process) == []


def test_the_model_is_unchanged(tmp_path):
    done, process = replayed(tmp_path, "training")
    assert done.stdout == "True True True False\n"
    assert {"0", "1", "2"} <= set(names(process))


def test_training_is_re_run_with_its_backward_passes_and_steps(tmp_path):
    done, process = replayed(tmp_path, "trained")
    assert (done.returncode, done.stdout) == (0, "True\nTrue True\n")
    assert process.problem == ""
    assert names(process) == ["Sequential", "0", "1", "2", "3"]  # the optimizer's steps first


def test_dropped_gradients_stay_dropped(tmp_path):
    done, process = replayed(tmp_path, "without_gradients")
    assert (done.returncode, done.stdout, process.problem) == (0, "True\n", "")
    assert names(process) == ["Sequential", "0"]


def test_without_training_only_forward_passes_are_re_run(tmp_path):
    done, process = replayed(tmp_path, "evaluated")
    assert (done.returncode, done.stdout) == (0, "0\n")
    assert names(process) == ["0", "1"]


def test_modules_that_were_not_re_run_are_named(tmp_path):
    done, process = replayed(tmp_path, "odd_inputs")
    assert (done.returncode, done.stderr) == (0, "")
    assert process.problem == "replay: not re-run in isolation: Attention, Once"
    assert names(process) == ["attention.fc"]


def test_modules_that_launch_nothing_are_not_re_run(tmp_path):
    done, process = replayed(tmp_path, "idle_modules")
    assert (done.returncode, process.problem) == (0, "")
    assert names(process) == ["2", "3"]


def test_inputs_of_each_shape_are_kept(tmp_path):
    done, process = replayed(tmp_path, "shapes")
    assert done.returncode == 0, done.stderr
    assert names(process).count("head") == 2
    assert "Block" not in names(process)


def test_a_layer_is_re_run_in_the_modes_of_its_call(tmp_path):
    done, _ = replayed(tmp_path, "states")
    assert [ast.literal_eval(text) for text in ast.literal_eval(done.stdout)] == [
        ("cuda", "torch.bfloat16"), (True, True)]
