"""Layers of real PyTorch programs, observed without a change to them (docs/layers.md).

Needs an interpreter with PyTorch: this one, or the one that JOULEPROF_TORCH_PYTHON names; and the
library for traced programs, JOULEPROF_INJECT. Skipped where one is missing.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest
import spool

HERE = pathlib.Path(__file__).parent
HOOK = HERE.parent.parent / "python" / "hook"
PYTHON = os.environ.get("JOULEPROF_TORCH_PYTHON", sys.executable)


def run(script, *args, spool_folder=None, path=(), check=True, **variables):
    """Runs a script; `spool_folder`: observes layers, with the spool there. The finished process."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("PYTHONPATH", "JOULEPROF_INJECT")}
    paths = [str(p) for p in path]
    if spool_folder is not None:
        environment.update(JOULEPROF_TRACE=str(spool_folder), JOULEPROF_TRACE_WHAT="layers",
                           JOULEPROF_INJECT=os.environ["JOULEPROF_INJECT"])
        paths.insert(0, str(HOOK))
    if paths:
        environment["PYTHONPATH"] = os.pathsep.join(paths)
    environment.update(variables)
    return subprocess.run([PYTHON, *script, *args], env=environment, capture_output=True, text=True,
                          check=check, timeout=600)


@pytest.fixture(scope="module", autouse=True)
def torch_python():
    if "JOULEPROF_INJECT" not in os.environ:
        pytest.skip("JOULEPROF_INJECT is not set")
    if run(["-c", "import torch"], check=False).returncode != 0:
        pytest.skip(f"{PYTHON} has no PyTorch; JOULEPROF_TORCH_PYTHON may name one that has")


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """The output of torch_cases.py without and with observed layers, and the trace."""
    folder = tmp_path_factory.mktemp("spool")
    script = [str(HERE / "torch_cases.py")]
    without = json.loads(run(script).stdout.splitlines()[-1])
    observed = run(script, spool_folder=folder)
    (process,) = spool.read(folder).values()
    return without, json.loads(observed.stdout.splitlines()[-1]), process


@pytest.mark.parametrize("case", [
    "plain", "copies", "user_hooks", "overridden_call", "tracers", "lazy", "shared", "recursion",
    "exceptions", "threads", "backward", "custom_function", "checkpoints", "addresses",
    "double_backward", "profiler", "distributed", "compiled"])
def test_a_program_does_the_same_with_layers(cases, case):
    without, observed, _ = cases
    assert observed[case] == without[case]


def test_the_trace_has_no_problem(cases):
    process = cases[2]
    assert process.problem == ""
    assert process.ended


def test_layers_have_names_types_shapes_and_parents(cases):
    process = cases[2]
    net = process.layers["PlainNet"]
    assert net["type"] == "PlainNet" and net["parent"] is None and not net["compiled"]
    below = [layer for layer in process.by_id.values() if layer["parent"] == net["id"]]
    assert [layer["name"] for layer in below] == ["b0", "b1", "head"]
    block = below[0]["id"]
    inner = [layer for layer in process.by_id.values() if layer["parent"] == block]
    assert [(layer["name"], layer["type"], layer["shapes"], layer["parameters"])
            for layer in inner] == [
        ("b0.fc", "Linear", "[4, 8] float32", 72), ("b0.act", "GELU", "[4, 8] float32", 0)]
    assert all(layer["parent"] is None or layer["parent"] < layer["id"]
               for layer in process.by_id.values())


@pytest.mark.parametrize("layer, phase, calls", [
    ("PlainNet", "forward", 3),
    ("Stars", "forward", 50), ("Plain", "forward", 50),
    ("Recursive", "forward", 6),
    ("FailingNet", "forward", 4),
    ("LazyNet", "forward", 2),
    ("SharedNet", "forward", 1), ("first", "forward", 2),
    ("ThreadedNet", "forward", 50), ("ThreadedNet#4", "forward", 50),
    ("Kept", "forward", 2), ("Kept", "backward", 2),
    ("Old", "forward", 200), ("New", "forward", 200),
    ("DistributedDataParallel", "forward", 1),
])
def test_calls_are_counted(cases, layer, phase, calls):
    assert cases[2].calls[(layer, phase)] == calls


def test_one_module_in_two_places_is_one_layer(cases):
    assert "second" not in cases[2].layers


def test_a_compiled_model_is_one_layer(cases):
    process = cases[2]
    compiled = [layer for layer in process.by_id.values() if layer["compiled"]]
    names = {layer["name"] for layer in compiled}
    assert {"CompiledNet", "InPlaceNet", "Linear", "b0"} <= names
    for layer in compiled:
        if layer["name"] == "CompiledNet":
            assert not [l for l in process.by_id.values() if l["parent"] == layer["id"]]
    assert process.calls[("CompiledNet", "forward")] == 8  # two models, one after the other


def test_backward_passes_and_steps_are_phases(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("""if True:
        import torch
        from torch.utils.checkpoint import checkpoint

        model = torch.nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            checkpoint(model, torch.ones(2, 8), use_reentrant=False).sum().backward()
            optimizer.step()
        torch.autograd.grad(model(torch.ones(2, 8)).sum(), list(model.parameters()))
        x = torch.ones((), requires_grad=True)
        x.register_hook(lambda gradient: 1 / 0)
        try:
            (2 * x).backward()
        except ZeroDivisionError:
            pass
        """)
    run([str(script)], spool_folder=tmp_path)
    (process,) = spool.read(tmp_path).values()
    assert {phase: times for phase, (times, _, _) in process.phases.items()} == {
        "forward": 4, "backward": 5, "optimizer": 3}
    for phase in ("backward", "optimizer"):
        _, wall, cpu = process.phases[phase]
        assert wall > 0 and cpu > 0, phase
    assert process.calls[("Linear", "backward")] == 3  # what the checkpoints computed again


def test_time_is_recorded(cases):
    process = cases[2]
    assert all(process.wall_nanoseconds[key] > 0 for key in process.calls)


def test_children_and_the_programs_own_sitecustomize(tmp_path):
    spools = tmp_path / "spools"
    own = tmp_path / "own"
    spools.mkdir()
    own.mkdir()
    (own / "sitecustomize.py").write_text("MINE = 1\n")
    (tmp_path / "child.py").write_text(
        "import torch\ntorch.nn.Identity()(1)\n")
    (tmp_path / "main.py").write_text(
        "import sitecustomize, subprocess, sys, torch\n"
        "assert sitecustomize.MINE == 1\n"
        "assert not any(path.endswith('python/hook') for path in sys.path), sys.path\n"
        "assert not [f for f in sys.meta_path if type(f).__name__ == '_AfterTorch']\n"
        "assert 'Loader' in type(torch.__spec__.loader).__name__\n"
        "assert type(torch.__spec__.loader).__module__.startswith('_frozen_importlib')\n"
        "torch.nn.Linear(2, 2)(torch.ones(1, 2))\n"
        "subprocess.run([sys.executable, sys.argv[1]], check=True)\n")
    done = run([str(tmp_path / "main.py")], str(tmp_path / "child.py"), spool_folder=spools, path=[own])
    assert (done.stdout, done.stderr) == ("", "")
    processes = spool.read(spools).values()
    assert sorted(name for p in processes for name in p.layers) == ["Identity", "Linear"]


@pytest.mark.parametrize("broken", [
    {"JOULEPROF_INJECT": "/nonexistent.so"}, {"JOULEPROF_TRACE": "/nonexistent/folder"}])
def test_a_failed_installation_does_not_affect_the_program(tmp_path, broken):
    script = ["-c", "import torch; print(torch.nn.Linear(2, 2)(torch.ones(1, 2)).shape)"]
    done = run(script, spool_folder=tmp_path, **broken)
    assert (done.stdout, done.stderr) == ("torch.Size([1, 2])\n", "")


def test_a_program_without_torch_is_not_affected(tmp_path):
    done = run(["-c", "import sys; assert 'ctypes' not in sys.modules; print(1)"], spool_folder=tmp_path)
    assert (done.stdout, done.stderr) == ("1\n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what, activities, named", [
    ("kernels,layers", "{a.CPU, a.CUDA}", True), ("kernels", "{a.CPU, a.CUDA}", True),
    ("kernels,layers", "{a.CPU}", False), ("layers", "{a.CPU, a.CUDA}", False)])
def test_a_profiler_that_wants_the_same_kernels_is_named(tmp_path, what, activities, named):
    script = ["-c", "import ctypes, os, torch\n"
              "ctypes.CDLL(os.environ['JOULEPROF_INJECT']).InitializeInjection()\n"
              "a = torch.profiler.ProfilerActivity\n"
              "profile = torch.autograd.profiler.profile()\n"
              f"profile.kineto_activities = {activities}\n"
              "with profile:\n"
              "    torch.ones(2) * 2\n"
              "assert len(profile.function_events) > 0"]
    done = run(script, spool_folder=tmp_path, JOULEPROF_TRACE_WHAT=what)
    assert done.stdout == ""
    (process,) = spool.read(tmp_path).values()
    assert ("torch.profiler was started here" in process.problem) == named
