"""Installs the observation of PyTorch's modules as layers, by libjouleprof_inject.so.

Works without the jouleprof package, with every PyTorch from 2.1 on, and never raises: with an
unsupported build the program runs unobserved, and the trace gives the reason.
"""

import ctypes
import functools
import os
import sys
import weakref

_MOST_VALUES = 8  # of a call, whose shapes are recorded
_MOST_WALKS = 50  # to find modules that were added to a model after its first call

_side = None


class Side:
    """Attributes that the library reads (`function` ... `introduce`); the library adds functions."""

    def __init__(self, torch):
        module = torch.nn.Module
        self.function = module.__call__
        # The library may call _call_impl directly where __call__ only forwards to it.
        wrapped = getattr(module, "_wrapped_call_impl", None)
        direct = self.function is wrapped and hasattr(module, "_compiled_call_impl")
        self.implementation = module._call_impl if direct else None
        self.also_implementation = sys.version_info[:2] == (3, 11)
        frames = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
        self.set_compiler = getattr(frames, "set_eval_frame", None)
        names = self.names = Names(torch, self)

        def introduce(module, caller, *values):
            names.introduce(module, caller, values)

        self.introduce = introduce


class Names:
    """The layer of each module. Keeps no module alive."""

    def __init__(self, torch, side):
        self.torch = torch
        self.side = side
        self.places = {}  # by address: Place, from the last walks
        self.layers = {}  # by address: (the layer's number, its key)
        self.references = {}  # by address: a weak reference, whose callback notes the module's end
        self.roots = {}  # by address: weak references to those that were walked
        self.walks = 0
        self.free = {}  # by key: numbers of layers whose modules are gone
        self.compiled = set()  # numbers of compiled layers
        self.counts = {}  # by key: layers with that name
        self.defined = {}  # by number: the layer's name

    def introduce(self, module, caller, values):
        """Passes the layer of this module to the library. `caller`: 0, or the number of the layer
        that calls it + 1."""
        if caller and type(module).__name__.startswith("GraphModule") and caller - 1 in self.compiled:
            self._put(module, caller - 1, True)  # a graph that the compiler made, called by it
            return
        if self._place(module) is None and not (caller and self._walk_again(module)):
            self._walk(module, None if caller == 0 else caller - 1)
        layer = self._define(module, values)
        self._put(module, layer, False)
        inner = inner_of(module)
        if inner is not None:
            self._put(inner, layer, True)

    def walk(self, root):
        """Names all modules of a model, before it or a part of it is called."""
        if self._place(root) is None:
            self._walk(root, None)

    def name_of(self, module):
        """The name of the module's layer; None before its first call."""
        return self.defined.get(self.layers.get(id(module), (None, None))[0])

    def _walk(self, root, caller):
        start = inner_of(root) or root
        self.roots[id(root)] = weakref.ref(root)
        place = Place(root, type(start).__name__, None, caller)
        self.places[id(root)] = place
        if start is not root:
            self.places[id(start)] = Place(start, place.name, None, caller)
        todo = [("", start)]
        seen = {id(start)}
        for path, module in todo:
            for key, child in module._modules.items():
                if child is None or id(child) in seen:
                    continue
                seen.add(id(child))
                name = f"{path}.{key}" if path else key
                if self._place(child) is None:
                    self.places[id(child)] = Place(child, name, module, None)
                todo.append((name, child))

    def _walk_again(self, module):
        """Whether a model that was walked before holds this module now."""
        self.walks += 1
        if self.walks > _MOST_WALKS:
            return False
        for address, reference in list(self.roots.items()):
            root = reference()
            if root is None:
                del self.roots[address]
            else:
                self._walk(root, self.places[address].caller)
        return self._place(module) is not None

    def _place(self, module):
        place = self.places.get(id(module))
        return place if place is not None and place.module() is module else None

    def _define(self, module, values):
        if id(module) in self.layers:
            return self.layers[id(module)][0]
        place = self._place(module)
        parent = place.parent() if place.parent is not None else None
        above = place.caller
        if parent is not None:
            above = self._define(parent, None)
        actual = inner_of(module) or module
        kind = getattr(actual, "cls_to_become", None) or type(actual)  # lazy: what it will be
        compiled = is_compiled(module)
        key = (place.name, kind.__name__, above, compiled)
        if self.free.get(key):
            layer = self.free[key].pop()
        else:
            count = self.counts[key] = self.counts.get(key, 0) + 1
            name = place.name if count == 1 else f"{place.name}#{count}"
            layer = self.side.define(name, kind.__name__, -1.0 if above is None else float(above),
                                     shapes_of(self.torch, values), parameters_of(actual), -1.0,
                                     compiled)
            self.defined[layer] = name
        self.layers[id(module)] = (layer, key)
        if actual is not module:
            self.layers[id(actual)] = (layer, None)
            self._watch(actual)
        if compiled:
            self.compiled.add(layer)
        self._watch(module)
        return layer

    def _put(self, module, layer, inner):
        self._watch(module)
        self.side.put(id(module), layer, inner)

    def _watch(self, module):
        address = id(module)
        reference = self.references.get(address)
        if reference is None or reference() is not module:
            self.references[address] = weakref.ref(module, lambda _: self._gone(address))

    def _gone(self, address):
        self.side.erase(address)
        self.references.pop(address, None)
        self.places.pop(address, None)
        self.roots.pop(address, None)
        layer, key = self.layers.pop(address, (None, None))
        if key is not None:
            self.free.setdefault(key, []).append(layer)


class Place:
    """The place of a module in a model."""

    __slots__ = ("module", "name", "parent", "caller")

    def __init__(self, module, name, parent, caller):
        self.module = weakref.ref(module)
        self.name = name
        self.parent = None if parent is None else weakref.ref(parent)
        self.caller = caller  # of a module outside of every model: the layer that called it first


def inner_of(module):
    """The module from which a compiled one was made; None for others."""
    return module.__dict__.get("_modules", {}).get("_orig_mod") if is_wrapper(module) else None


def is_wrapper(module):
    return type(module).__name__ == "OptimizedModule"


def is_compiled(module):
    return is_wrapper(module) or getattr(module, "_compiled_call_impl", None) is not None


def parameters_of(module):
    """The number of its own parameters, without those of its children."""
    count = 0
    for parameter in module._parameters.values():
        try:
            count += 0 if parameter is None else int(parameter.numel())
        except Exception:  # not initialised yet
            pass
    return count


def shapes_of(torch, values):
    """The tensors of a call: "[64, 197, 768] bfloat16, [64, 1] int64"."""
    found = []
    todo = list(values or ())[::-1]
    while todo and len(found) < _MOST_VALUES:
        value = todo.pop()
        if isinstance(value, torch.Tensor):
            kind = str(value.dtype).replace("torch.", "")
            found.append(f"[{', '.join(str(size) for size in value.shape)}] {kind}")
        elif isinstance(value, (list, tuple)):
            todo.extend(value[:_MOST_VALUES][::-1])
    return ", ".join(found)


def learn_backward(torch, side):
    """Gives the library nodes of a graph with their sequence numbers as Python reports them. From
    these it finds the field of a node, which assigns backward passes to layers. Runs no backward
    pass: that would start threads and the GPU."""
    inference = getattr(torch, "inference_mode", None)
    with torch.enable_grad(), inference(False):
        leaf = torch.ones((), device="cpu", dtype=torch.float32, requires_grad=True)
        for _ in range(40):  # so that numbers differ from counts
            leaf * 2.0
        first = leaf * 2.0
        second = first * 3.0
        third = second + first
        accumulate = first.grad_fn.next_functions[0][0]
    functions = [first.grad_fn, second.grad_fn, third.grad_fn, accumulate]
    pairs = [part for f in functions for part in (f, f._sequence_nr() % 2**64)]
    side.learn(type(first.grad_fn).__basicsize__, *pairs)


def watch_optimizers(torch, side):
    from torch.optim import optimizer

    optimizer.register_optimizer_step_pre_hook(side.step_begin)
    optimizer.register_optimizer_step_post_hook(side.step_end)


def watch_backward(torch, side):
    """Reports when a backward pass begins and ends, from PyTorch 2.2 on; before that its time is
    unknown. Needed for the CPU's energy only: launches of kernels carry their phase."""
    if "kernels" in os.environ.get("JOULEPROF_TRACE_WHAT", "").split(","):
        return
    graph = getattr(torch.autograd, "graph", None)
    run = getattr(graph, "_engine_run_backward", None)
    if run is None or getattr(torch.autograd, "_engine_run_backward", None) is not run:
        return

    @functools.wraps(run)
    def engine_run_backward(*args, **kwargs):
        side.backward_begin()
        try:
            return run(*args, **kwargs)
        finally:
            side.backward_end()

    graph._engine_run_backward = torch.autograd._engine_run_backward = engine_run_backward


def install(library):
    """Installs the observation once, after `import torch`. `library` is a ctypes.PyDLL. Returns a Side with
    the library's functions, or None with an unsupported build."""
    global _side
    if _side is not None:
        return _side
    torch = sys.modules["torch"]
    side = Side(torch)
    library.jouleprof_layers_install.argtypes = [ctypes.py_object]
    library.jouleprof_layers_install.restype = ctypes.c_int
    if library.jouleprof_layers_install(side) != 0:
        return None
    _side = side
    for step in (learn_backward, watch_optimizers, watch_backward):
        try:
            step(torch, side)
        except Exception as error:
            side.problem(str(error))
    return side
