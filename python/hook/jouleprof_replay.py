"""Re-runs each kind of module in isolation, on its real inputs, to separate the power of its kernels.

In a repeated forward pass or training step the sensors observe one constant mixture of kernels, which
no method can split. In these loops the same kernels run alone or nearly so. The regression takes their
power from the loops, and their times from the program. Modules that the program trains run their
forward and backward passes; no gradient is accumulated.
"""

import contextlib
import copy
import math
import sys
import time

SETTLE_SECONDS = 0.05  # between the program's work and the re-runs: longer than a bin of the trace
_PAUSE_SECONDS = 0.15  # between two modules: idle, at the GPU's present temperature
_BURST_SECONDS = 0.02  # of work, then a pause as long, which keeps the GPU below its power limit
_MOST_AHEAD = 64       # calls between two waits for the GPU
_MOST_BUFFER_BYTES = 64 << 20  # of one buffer that is restored afterwards
_PLAIN = (int, float, complex, bool, str, bytes, type(None))


class Call:
    """One call of a module, with its inputs and the modes that were active. `trains`: it was called for
    a backward pass, which its re-runs have, too."""

    def __init__(self, torch, module, args, kwargs):
        self.torch = torch
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.count = 1  # how often the program made such a call
        self.inference = torch.is_inference_mode_enabled()
        self.autocast = _autocast(torch)
        self.trains = torch.is_grad_enabled() and any(
            part.requires_grad for part in (*module.parameters(), *self.given()))
        self._gradients = None  # of its results

    def __call__(self):
        result = self.module(*self.args, **self.kwargs)
        if self.trains:
            self._backward(result)
        return result

    def _backward(self, result):
        """The gradients of its inputs and parameters: of a loss where it returns one, else of all its
        results. The parameters' own gradients do not change."""
        results = [tensor for tensor in tensors(self.torch, result) if tensor.requires_grad]
        results = [tensor for tensor in results if tensor.dim() == 0][:1] or results
        sources = [part for part in (*self.given(), *self.module.parameters()) if part.requires_grad]
        if not results or not sources:
            return
        if self._gradients is None:
            self._gradients = [self.torch.randn_like(tensor) if tensor.dim() > 0
                               else self.torch.ones_like(tensor) for tensor in results]
        self.torch.autograd.grad(results, sources, self._gradients, allow_unused=True)

    @contextlib.contextmanager
    def state(self):
        with contextlib.ExitStack() as stack:
            if self.inference:
                stack.enter_context(self.torch.inference_mode())
            elif self.trains:
                stack.enter_context(self.torch.enable_grad())
            else:
                stack.enter_context(self.torch.no_grad())
            if self.autocast is not None:
                stack.enter_context(self.torch.autocast("cuda", dtype=self.autocast))
            yield

    def given(self):
        """The tensors among its inputs."""
        return tensors(self.torch, (self.args, self.kwargs))

    def devices(self):
        """The GPUs that its tensors are on."""
        found = []
        for tensor in [*self.given(), *self.module.parameters()]:
            if tensor.is_cuda and tensor.device not in found:
                found.append(tensor.device)
        return found


def _autocast(torch):
    """The type to which autocast converts operations on the GPU; None: autocast is inactive."""
    try:
        return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None
    except (AttributeError, TypeError):  # PyTorch before 2.4
        return torch.get_autocast_gpu_dtype() if torch.is_autocast_enabled() else None


def tensors(torch, value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(torch, part)
    elif isinstance(value, dict):
        yield from tensors(torch, list(value.values()))


def detached(torch, value):
    """The same memory, without its autograd graph; it requires a gradient where it did. A cache of
    keys and values, which grows with each call, is copied."""
    if isinstance(value, torch.Tensor):
        return value.detach().requires_grad_(value.requires_grad)
    if type(value) in (list, tuple):
        return type(value)(detached(torch, part) for part in value)
    if type(value) is dict:
        return {key: detached(torch, part) for key, part in value.items()}
    return copy.deepcopy(value) if type(value).__name__.endswith("Cache") else value


def shape(torch, value):
    """Equal for inputs with which a module runs the same kernels. It contains None for objects that
    may change from call to call (a cache of keys and values)."""
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), tuple(value.stride()), value.dtype, value.device)
    if isinstance(value, (list, tuple)):
        return tuple(shape(torch, part) for part in value)
    if isinstance(value, dict):
        return tuple((str(key), shape(torch, part)) for key, part in value.items())
    if isinstance(value, _PLAIN + (torch.dtype, torch.device)):
        return repr(value)
    return None


def _has_state(shapes):
    return shapes is None or (isinstance(shapes, tuple) and any(_has_state(part) for part in shapes))


class Kinds:
    """One call of each kind of module. Modules of one kind run the same kernels on the same shapes."""

    def __init__(self, torch):
        self.torch = torch
        self.calls = {}
        self.failed = []  # names of types that were not re-run

    def find(self, model, run):
        """Calls `run` (a Call) once, and keeps the inputs of the modules within `model`. The model
        itself is left out where it holds others; so are compiled parts."""
        hooks = []
        try:
            for module in _not_compiled(model):
                if module is not model or next(module.children(), None) is None:
                    hooks.append(module.register_forward_pre_hook(self._keep, with_kwargs=True))
            with run.state():
                run()
        except Exception:  # its inputs are gone, or have changed
            self._fail(model)
        finally:
            for hook in hooks:
                hook.remove()

    def _keep(self, module, args, kwargs):
        try:
            given = shape(self.torch, (args, kwargs))
            parameters = shape(self.torch, list(module.parameters()))
            kind = (type(module), repr(module), module.training, parameters, given)
            if kind in self.calls:
                return
            if _has_state(given):
                self._fail(module)
                return
            call = Call(self.torch, module, detached(self.torch, args),
                        detached(self.torch, kwargs))
            if call.devices():
                self.calls[kind] = call
        except Exception:  # a module without a usable description
            self._fail(module)

    def _fail(self, module):
        name = type(module).__name__
        if name not in self.failed:
            self.failed.append(name)

    def replay(self, side, seconds, end=math.inf):
        """Loops over all, each for `seconds`; `side`: of jouleprof_layers. `failed` names the kinds
        that failed, and those for which no time was left until `end` (perf_counter)."""
        for call in self.calls.values():
            if time.perf_counter() + seconds > end:
                self._fail(call.module)
                continue
            done = self._try(call, seconds)
            if done is None:
                continue
            if done == 0 and call.trains:  # as where it changes its inputs in place
                call.trains = False
                done = self._try(call, seconds) or 0
            if done == 0:
                self._fail(call.module)
            layer, _ = side.names.layers.get(id(call.module), (-1, None))
            side.replayed(float(layer) if done > 0 else -1.0, done)
        time.sleep(_PAUSE_SECONDS)
        side.replayed(-1.0, 0)

    def _try(self, call, seconds):
        """The number of calls; None where it launches nothing."""
        try:
            with call.state():
                return None if _returns_its_input(call) else self.loop(call, seconds)
        except Exception:  # it changed its inputs, or needs a state that its caller made
            return 0

    def loop(self, call, seconds):
        """The number of calls."""
        devices = call.devices()
        call()
        self.wait(devices)
        start = time.perf_counter()
        call()
        self.wait(devices)
        once = max(time.perf_counter() - start, 1e-6)
        ahead = min(max(int(_BURST_SECONDS / once), 1), _MOST_AHEAD)
        time.sleep(_PAUSE_SECONDS)
        done = 2
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            start = time.perf_counter()
            while time.perf_counter() < start + _BURST_SECONDS:
                for _ in range(ahead):
                    call()
                self.wait(devices)
                done += ahead
            time.sleep(time.perf_counter() - start)
        return done

    def wait(self, devices):
        for device in devices:
            self.torch.cuda.synchronize(device)


def _returns_its_input(call):
    """Whether it launches nothing, as Identity and, in inference, Dropout."""
    before = {id(tensor): _version(tensor) for tensor in call.given()}
    result = call()
    return id(result) in before and _version(result) == before[id(result)]


def _version(tensor):
    """Counts changes in place. Inference tensors have none: they count as changed."""
    return object() if tensor.is_inference() else tensor._version


def _not_compiled(model):
    """The module and those within it, without those that torch.compile made: a hook in these would
    compile them again."""
    compiled = sys.modules["_jouleprof_layers"].is_compiled
    todo, seen = [model], {id(model)}
    for module in todo:
        if compiled(module):
            continue
        yield module
        for child in module.children():
            if id(child) not in seen:
                seen.add(id(child))
                todo.append(child)


@contextlib.contextmanager
def unchanged(torch, models):
    """Restores afterwards what re-runs of modules may change: their buffers (the statistics of a batch
    norm) and the state of random numbers."""
    buffers = [(buffer, buffer.detach().clone()) for model in models for buffer in model.buffers()
               if buffer.numel() * buffer.element_size() <= _MOST_BUFFER_BYTES]
    devices = {tensor.device for model in models for tensor in model.parameters() if tensor.is_cuda}
    with torch.random.fork_rng([device.index for device in devices]):
        try:
            yield
        finally:
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)
