"""Run by Python at its start under `jouleprof run --kernels` and `--layers`, which put this folder on
PYTHONPATH.

Waits until the program has imported PyTorch. Then it installs the observation of layers
(jouleprof_layers.py) and the detection of torch.profiler (jouleprof_rivals.py). With `--replay` it has
kernels re-run at the end (jouleprof_at_exit.py). Where this fails, the program runs unobserved. The
program's own sitecustomize runs too.
"""

import sys

# Frameworks that own memory of a GPU and free it when Python ends
_OWNERS = ("torch", "jax", "jaxlib", "cupy", "numba", "triton", "tensorflow", "paddle", "pycuda", "cuda", "warp",
           "mxnet", "taichi", "onnxruntime", "tensorrt")


def _folder():
    import os

    return os.path.dirname(os.path.abspath(__file__))


class _AfterImport:
    """Finds modules as the other finders do, and calls all of `acts[name]` after its first import."""

    def __init__(self, acts):
        self._acts = acts

    def find_spec(self, name, path=None, target=None):
        if name not in self._acts:
            return None
        acts = self._acts.pop(name)
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find is not None and finder is not self else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, acts)
                return spec
        return None


class _Loader:
    """Another loader, with calls of `acts` after it."""

    def __init__(self, loader, acts):
        self._loader = loader
        self._acts = acts

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
        for act in self._acts:
            try:
                act()
            except Exception:
                pass  # the trace has no layers, or no re-runs


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
    _load("jouleprof_layers").install(library)


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
    if "JOULEPROF_INJECT" not in os.environ or "JOULEPROF_TRACE" not in os.environ:
        return
    acts = {"torch": [_after_torch]}
    if os.environ.get("JOULEPROF_REPLAY"):
        import ctypes

        at_exit = _load("jouleprof_at_exit").AtExit(ctypes.CDLL(os.environ["JOULEPROF_INJECT"]),
                                                    float(os.environ["JOULEPROF_REPLAY"]))
        at_exit.register()
        for name in _OWNERS:
            acts.setdefault(name, []).append(at_exit.register)
    for name in [name for name in acts if name in sys.modules]:
        for act in acts.pop(name):
            act()
    sys.meta_path.insert(0, _AfterImport(acts))


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
