"""The stubs say what there is."""

import ast
import importlib
import importlib.util
import inspect
import pathlib
import subprocess
import sys
import types

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
    (monitor,) = [n for n in tree.body if isinstance(n, ast.ClassDef)]
    methods = {n.name for n in monitor.body if isinstance(n, ast.FunctionDef)}
    assert functions | {"Monitor"} == {n for n in vars(_native) if not n.startswith("_")}
    assert methods == {n for n in vars(_native.Monitor) if not n.startswith("_")}


@pytest.mark.parametrize("module", ["__init__", "zeus.__init__", "zeus.monitor.energy"])
def test_the_public_stubs_match(module):
    """Every name of the stub is there with the same parameters, and the other way round."""
    there = importlib.import_module(f"jouleprof.{module}".replace(".__init__", ""))
    tree = ast.parse((FOLDER / f"{module.replace('.', '/')}.pyi").read_text())
    stubbed = {n.name: n for n in tree.body if not isinstance(n, (ast.Import, ast.ImportFrom))
               and hasattr(n, "name") and not n.name.startswith("_")}
    imported = {a.asname for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names if a.asname}
    # `open` would hide Python's after a star import.
    assert set(stubbed) | imported - {"_Measurement"} == set(there.__all__) - {"__version__"} | ({"open"} & set(stubbed))
    for name, node in stubbed.items():
        if isinstance(node, ast.FunctionDef):
            check_parameters(node, getattr(there, name))
            continue
        for method in node.body:
            if isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)):
                check_parameters(method, inspect.getattr_static(getattr(there, name), method.name))
        public = {n for n in vars(getattr(there, name)) if not n.startswith("_") and n != "of"}
        missing = public - {getattr(n, "name", None) or n.target.id for n in node.body
                            if hasattr(n, "name") or hasattr(n, "target")}
        assert name in ("Energy", "Measurement", "Total", "Cost", "Factors", "Power") or not (
            missing - {"energies_of"}), missing


def check_parameters(node, function):
    function = getattr(function, "__func__", function)
    if not isinstance(function, types.FunctionType):
        return  # a property, or of the extension
    there = list(inspect.signature(function).parameters)
    names = [a.arg for a in node.args.args + node.args.kwonlyargs]
    # The bare form of a decorator takes what it decorates, and nothing else.
    is_bare = any(getattr(d, "id", "") == "overload" for d in node.decorator_list) and len(names) < len(there)
    assert names == (there[:len(names)] if is_bare else there), node.name


def test_the_package_is_marked_as_typed():
    assert (FOLDER / "py.typed").exists()
    for name in jouleprof.__all__:
        assert hasattr(jouleprof, name)


def mypy(tmp_path, *arguments):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is missing (pip install mypy)")
    # As for an installed package, errors within it are not shown; of frameworks that are missing nothing is known.
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--ignore-missing-imports", "--allow-subclassing-any",
         "--cache-dir", str(tmp_path / "cache"), *map(str, arguments)],
        cwd=tmp_path, env={"MYPYPATH": str(FOLDER.parent), "PATH": ""}, check=False,
        stdout=subprocess.PIPE, text=True).stdout


def test_mypy(tmp_path):
    (tmp_path / "use.py").write_text(USE)
    out = mypy(tmp_path, "use.py")
    assert 'Revealed type is "jouleprof.Window"' in out, out
    errors = [line for line in out.splitlines() if ": error:" in line]
    assert len(errors) == 1 and f"use.py:{USE.splitlines().index('text: int = window.energy.table()') + 1}:" in errors[0], out


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_the_examples_are_strictly_typed(tmp_path, script):
    assert "Success" in (out := mypy(tmp_path, script)), out
