"""What programs do with modules, run by test_torch_layers.py with and without observed layers.

Prints one JSON object: for each case the results, which must not depend on the observation. With
observed layers, `whose` gives the program's present layer and phase.
"""

import copy
import gc
import io
import json
import pickle
import sys
import threading
import warnings

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")
torch.manual_seed(1)
X = torch.randn(4, 8)
OBSERVED = sys.modules.get("_jouleprof_layers")


def whose():
    """(layer, phase) of a launch at this moment, as numbers; None where layers are not observed."""
    if OBSERVED is None:
        return None
    value = OBSERVED._side.where()
    return [value // 4 - 1, value % 4]


def layer_of(module):
    return None if OBSERVED is None else OBSERVED._side.names.layers[id(module)][0]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.act = nn.GELU()

    def forward(self, x):
        return x + self.act(self.fc(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.b0 = Block()
        self.b1 = Block()
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.b1(self.b0(x)))


def sums(tensor):
    return round(float(tensor.detach().double().sum()), 5)


def plain():
    class PlainNet(Net):
        pass

    model = PlainNet()
    for _ in range(3):
        out = model(X)
    return sums(out)


def copies():
    class CopiedNet(Net):
        pass

    globals()["CopiedNet"] = CopiedNet
    CopiedNet.__qualname__ = "CopiedNet"
    model = CopiedNet()
    before = sums(model(X))
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)),
              torch.load(file, weights_only=False)]
    same = [sums(other(X)) == before for other in others]
    state = sorted(model.__dict__) == sorted(others[0].__dict__)
    return [before, same, state]


def user_hooks():
    class HookedNet(Net):
        pass

    model = HookedNet()
    log = []
    model.b0.register_forward_pre_hook(lambda m, a: log.append("pre"))
    model.b0.register_forward_hook(lambda m, a, out: out * 2)
    model.b0.register_full_backward_hook(lambda m, gi, go: log.append("backward"))
    handle = torch.nn.modules.module.register_module_forward_hook(
        lambda m, a, out: log.append(type(m).__name__))
    x = X.clone().requires_grad_()
    out = model(x)
    out.sum().backward()
    handle.remove()
    return [sums(out), sums(x.grad), log]


def overridden_call():
    class Stars(nn.Module):
        def __call__(self, *args, **kwargs):
            return super().__call__(*args, **kwargs)

        def forward(self, x):
            return x * 2

    class Plain(nn.Module):
        def __call__(self, x):
            return super().__call__(x)

        def forward(self, x):
            return x * 3

    class Without(nn.Module):
        def __call__(self, x):
            return x * 4

    modules = [Stars(), Plain(), Without()]
    return [[sums(module(X)) for module in modules] for _ in range(50)][-1]


def tracers():
    model = Net()
    expected = sums(model(X))
    return [sums(made(X)) == expected for made in (
        torch.fx.symbolic_trace(model), torch.jit.script(model), torch.jit.trace(model, X))]


def lazy():
    class LazyNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.LazyLinear(3)

        def forward(self, x):
            return self.fc(x)

    model = LazyNet()
    shapes = [list(model(X).shape), list(model(X).shape)]
    return [shapes, type(model.fc).__name__]


def shared():
    class SharedNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(8, 8)
            self.second = self.first

        def forward(self, x):
            return self.second(self.first(x))

    return sums(SharedNet()(X))


def recursion():
    class Recursive(nn.Module):
        def forward(self, x, depth):
            return x if depth == 0 else self(x + 1, depth - 1)

    return sums(Recursive()(X, 5))


def exceptions():
    class Fails(nn.Module):
        def forward(self, x):
            raise ValueError("no")

    class FailingNet(nn.Sequential):
        pass

    model = FailingNet(nn.Identity(), Fails())
    errors = []
    for _ in range(3):
        try:
            model(X)
        except ValueError as error:
            errors.append(str(error))
    for call in (lambda: model(), lambda: nn.Module.__call__(), lambda: Net()(X, wrong=1)):
        try:
            call()
        except TypeError:
            errors.append("TypeError")
    assert OBSERVED is None or whose() == [-1, 0]
    return errors


def threads():
    class ThreadedNet(Net):
        pass

    models = [ThreadedNet() for _ in range(4)]

    def work(model):
        for _ in range(50):
            model(X).sum().backward()

    workers = [threading.Thread(target=work, args=(model,)) for model in models]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return [model.head.weight.grad is not None for model in models]


def backward():
    """The layer of each backward step, on this thread and on another, and the optimizer's."""
    class TrainedNet(Net):
        pass

    model = TrainedNet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    log = {}

    def note(name):
        return lambda *_: log.setdefault(name, []).append(whose())

    def forward():
        x = model.b0(X)
        x.grad_fn.register_prehook(note("b0"))
        middle = model.b1.fc(x)
        middle.grad_fn.register_prehook(note("b1.fc"))
        out = model.head(middle)
        out.grad_fn.register_prehook(note("head"))
        out.grad_fn.next_functions[0][0].register_prehook(note("parameter"))
        loss = (out * 2).sum()
        loss.grad_fn.register_prehook(note("loss"))
        return loss

    forward().backward()
    worker = threading.Thread(target=forward().backward)
    worker.start()
    worker.join()
    optimizer.register_step_pre_hook(note("step"))
    optimizer.step()
    after = whose()
    if OBSERVED is None:
        return None
    wanted = {"b0": [layer_of(model.b0), 2], "b1.fc": [layer_of(model.b1.fc), 2],
              "head": [layer_of(model.head), 2], "parameter": [-1, 2], "loss": [-1, 2]}
    for name, value in wanted.items():
        assert log[name] == [value, value], (name, log[name], value)
    assert log["step"] == [[-1, 3]] and after == [-1, 0], (log["step"], after)
    return None


def custom_function():
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            seen.append(whose())
            return gradient * 2

    class Doubling(nn.Module):
        def forward(self, x):
            return Double.apply(x)

    model = nn.Sequential(nn.Linear(8, 8), Doubling())
    out = model(X)
    out.sum().backward()
    assert OBSERVED is None or seen == [[layer_of(model[1]), 2]]
    return sums(model[0].weight.grad)


def checkpoints():
    phases = []

    class Kept(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x):
            phases.append(whose())
            return torch.relu(self.fc(x))

    model = Kept()
    x = X.clone().requires_grad_()
    for reentrant in (False, True):
        checkpoint(model, x, use_reentrant=reentrant).sum().backward()
    if OBSERVED is not None:
        layer = layer_of(model)
        assert phases == [[layer, 1], [layer, 2]] * 2, phases
    return [len(phases), sums(x.grad)]


def addresses():
    """A module at the address of a deleted one is a layer of its own."""
    class Old(nn.Module):
        def forward(self, x):
            return x

    class New(Old):
        pass

    used_again = 0
    for _ in range(200):
        old = Old()
        old(X)
        address = id(old)
        del old
        new = New()
        used_again += id(new) == address
        new(X)
        del new
    gc.collect()
    return used_again > 0


def double_backward():
    model = Net()
    x = X.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(model(x).pow(2).sum(), x, create_graph=True)
    gradient.sum().backward()
    with torch.inference_mode():
        out = model(X)
    return [sums(x.grad), sums(out)]


def profiler():
    with torch.profiler.profile(with_stack=True, with_modules=True) as profile:
        Net()(X)
    return len(profile.events()) > 0


def distributed():
    import ctypes
    import os

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"  # asks no name server
    store = torch.distributed.HashStore()
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    try:
        class Spread(Net):
            pass

        model = nn.parallel.DistributedDataParallel(Spread())
        # Never freed: PyTorch 2.13 may wait for itself for ever where a gloo group is destroyed.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(model))
        model(X).sum().backward()
        return sums(model.module.head.weight.grad)
    finally:
        torch.distributed.destroy_process_group()


def compiled():
    """What torch.compile makes of models: graphs, breaks, frames and results."""
    import torch._dynamo
    from torch._dynamo.utils import counters

    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x):
            y = self.fc(x)
            torch._dynamo.graph_break()
            return torch.relu(y)

    def outcome(module, call):
        torch._dynamo.reset()
        counters.clear()
        results = [sums(call(X)) for _ in range(3)]
        call(X).sum().backward()
        return [results, dict(counters["stats"]), sum(counters["graph_break"].values()),
                dict(counters["frames"])]

    def whole(**options):
        class CompiledNet(Net):
            pass

        model = CompiledNet()
        return outcome(model, torch.compile(model, backend="aot_eager", **options))

    def hooked():
        model = Net()
        model.b0.register_forward_hook(lambda m, a, out: None)
        return outcome(model, torch.compile(model, backend="aot_eager"))

    def broken():
        model = Net()
        model.b1 = Broken()
        return outcome(model, torch.compile(model, backend="aot_eager"))

    def in_place():
        class InPlaceNet(Net):
            pass

        model = InPlaceNet()
        model.compile(backend="aot_eager")
        return outcome(model, model)

    def part():
        model = Net()
        model.b0.compile(backend="aot_eager")
        return outcome(model, model)

    def function():
        model = Net()
        return outcome(model, torch.compile(lambda x: model(x) * 2, backend="aot_eager"))

    return [whole(), whole(fullgraph=True), hooked(), broken(), in_place(), part(), function(),
            outcome(None, torch.compile(nn.Linear(8, 8), backend="aot_eager"))]


CASES = [plain, copies, user_hooks, overridden_call, tracers, lazy, shared, recursion, exceptions,
         threads, backward, custom_function, checkpoints, addresses, double_backward, profiler,
         distributed, compiled]

if __name__ == "__main__":
    answers = {}
    for case in CASES:
        torch.manual_seed(2)
        print(case.__name__, file=sys.stderr, flush=True)
        answers[case.__name__] = case()
    print(json.dumps(answers))
