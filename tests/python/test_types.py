"""Users' programs can be checked against the package's annotations."""

import ast
import importlib
import importlib.util
import inspect
import pathlib
import subprocess
import sys

import pytest

import jouleprof
from jouleprof import _native

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"
FOLDER = pathlib.Path(jouleprof.__file__).parent

USE = """
import jouleprof
from jouleprof import plot
from jouleprof.zeus.monitor import PowerMonitor

monitor: jouleprof.Monitor = jouleprof.Monitor(gpu_indices=[0], log=None)
with monitor.window("epoch") as window:
    pass
joules: "float | None" = window.energy.total.joules
by_gpu: "dict[int, float]" = window.energy.gpu_energy
watts: "float | None" = window["cpu"].watts if "cpu" in window else window.energy.watts
labels: "list[str]" = list(window.energy)
total: float = float(monitor.pop_window())
timelines = PowerMonitor(gpu_indices=[0], update_period=0.1).get_all_power_timelines()
seconds: float = timelines["device_instant"][0][0][0]
plot.power("train.jprof", output="power.png")
plot.sweep("sweep.jprof", unit="token")
reveal_type(window)
text: int = window.energy.table()
"""


def test_the_stub_matches_the_extension():
    tree = ast.parse((FOLDER / "_native.pyi").read_text())
    functions = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    assert functions | {n.name for n in classes} == {n for n in vars(_native) if not n.startswith("_")}
    for each in classes:
        methods = {n.name for n in each.body if isinstance(n, ast.FunctionDef)}
        assert methods == {n for n in vars(getattr(_native, each.name)) if not n.startswith("_")}


# What the package's classes do for one another.
INTERNAL = {"Domain.of", "Energy.of", "Energy.of_json", "Monitor.energies_of", "Window.__init__"}


def functions_of(module):
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isfunction(thing):
            yield name, thing
        for member in dir(thing) if inspect.isclass(thing) else ():
            found = inspect.getattr_static(thing, member)
            found = getattr(found, "fget", None) or getattr(found, "__func__", found)
            if inspect.isfunction(found) and (member == "__init__" or not member.startswith("_")):
                yield f"{name}.{member}", found


@pytest.mark.parametrize("module", ["", ".zeus.monitor.energy", ".torch", ".plot", ".serving", ".codecarbon",
                                    ".aipowermeter"])
def test_what_is_public_is_annotated_and_described(module):
    own = {name: function for name, function in functions_of(importlib.import_module(f"jouleprof{module}"))
           if function.__module__.startswith("jouleprof")}
    bare = {name for name, function in own.items()
            if {*inspect.signature(function).parameters, "return"} - {"self", "cls"} - set(function.__annotations__)}
    assert bare <= INTERNAL
    assert [name for name, function in own.items()
            if not name.endswith(".__init__") and not inspect.getdoc(function)] == []


def test_the_package_is_marked_as_typed():
    assert (FOLDER / "py.typed").exists()
    for name in jouleprof.__all__:
        assert hasattr(jouleprof, name)


def mypy(tmp_path, *arguments):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is missing (pip install mypy)")
    # As for an installed package, errors within it are not shown; of frameworks nothing is known, installed or not.
    (tmp_path / "mypy.ini").write_text("[mypy]\n" + "".join(
        f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in ("torch", "transformers", "lightning", "accelerate", "jax")))
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports", "--allow-subclassing-any",
         "--cache-dir", str(tmp_path / "cache"), *map(str, arguments)],
        cwd=tmp_path, env={"MYPYPATH": str(FOLDER.parent), "PATH": ""}, check=False,
        stdout=subprocess.PIPE, text=True).stdout


def test_mypy(tmp_path):
    (tmp_path / "use.py").write_text(USE)
    out = mypy(tmp_path, "use.py")
    assert 'Revealed type is "jouleprof._live.window.Window"' in out, out
    errors = [line for line in out.splitlines() if ": error:" in line]
    assert len(errors) == 1 and f"use.py:{USE.splitlines().index('text: int = window.energy.table()') + 1}:" in errors[0], out


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_the_examples_are_strictly_typed(tmp_path, script):
    assert "Success" in (out := mypy(tmp_path, script)), out
