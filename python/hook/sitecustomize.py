"""Run by Python at its start under `jouleprof run --kernels` and `--layers`, which put this folder on
PYTHONPATH.

Waits until the program has imported PyTorch. Then it installs the observation of layers
(jouleprof_layers.py) and the detection of torch.profiler (jouleprof_rivals.py). Where this fails, the
program runs unobserved. The program's own sitecustomize runs too.
"""

import sys


def _folder():
    import os

    return os.path.dirname(os.path.abspath(__file__))


class _AfterTorch:
    """Finds torch as the other finders do, and calls `act` after its import."""

    def __init__(self, act):
        self._act = act

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        try:
            sys.meta_path.remove(self)
        except ValueError:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self._act)
                return spec
        return None


class _Loader:
    """Another loader, with a call of `act` after it."""

    def __init__(self, loader, act):
        self._loader = loader
        self._act = act

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        spec = getattr(module, "__spec__", None)
        if spec is not None:
            spec.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        try:
            self._act()
        except Exception:
            pass  # the trace has no layers


def _after_torch():
    import os

    what = os.environ.get("JOULEPROF_TRACE_WHAT", "layers").split(",")
    if "layers" in what:
        _trace_layers()
    if "kernels" in what:
        _load("jouleprof_rivals").watch(sys.modules["torch"], _report_problem)


def _report_problem(text):
    import ctypes
    import os

    ctypes.CDLL(os.environ["JOULEPROF_INJECT"]).jouleprof_trace_problem(text)


def _trace_layers():
    import ctypes
    import os

    library = ctypes.PyDLL(os.environ["JOULEPROF_INJECT"])
    begin = library.jouleprof_trace_begin
    begin.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    begin.restype = ctypes.c_int
    folder = os.fsencode(os.environ["JOULEPROF_TRACE"])
    if begin(folder, os.environ.get("JOULEPROF_TRACE_WHAT", "layers").encode()) != 0:
        return
    at_exit = None
    if os.environ.get("JOULEPROF_REPLAY"):
        seconds = float(os.environ["JOULEPROF_REPLAY"])
        at_exit = _load("jouleprof_at_exit").AtExit(
            sys.modules["torch"], _load, ctypes.CDLL(library._name), seconds)
    _load("jouleprof_layers").install(library, at_exit)


def _load(name):
    """A file of this folder, as the module `_name`."""
    import importlib.util
    import os

    spec = importlib.util.spec_from_file_location(f"_{name}", os.path.join(_folder(), f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _begin():
    import os

    here = _folder()
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    if "JOULEPROF_INJECT" in os.environ and "JOULEPROF_TRACE" in os.environ:
        if "torch" in sys.modules:
            _after_torch()
        else:
            sys.meta_path.insert(0, _AfterTorch(_after_torch))


def _run_next():
    """The sitecustomize that would have run without this one."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize")
    if spec is None or spec.loader is None or spec.origin == __file__:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _begin()
except Exception:
    pass
_run_next()
