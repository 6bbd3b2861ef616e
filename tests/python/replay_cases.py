"""Programs whose layers are re-run at their end, for test_torch_replay.py: `replay_cases.py CASE`.
This PyTorch may have no GPU: the CPU stands in for one."""

import atexit
import contextlib
import ctypes
import sys

AFTER = []
atexit.register(lambda: [check() for check in AFTER])  # runs last: after the replay

import torch
from torch import nn

OPTIMIZER = sys.modules["_jouleprof_optimizer"]
OPTIMIZER._Step.devices = lambda self: [torch.device("cpu")]
REPLAY = sys.modules["_jouleprof_replay"]
REPLAY.Call.devices = lambda self: [torch.device("cpu")]
sys.modules["_jouleprof_kernels"].Kinds.replay = lambda *given: None  # there is no driver
torch.cuda.is_initialized = lambda: True
torch.cuda.synchronize = lambda device=None: None
torch.manual_seed(1)


class Block(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.fc = nn.Linear(width, width)
        self.act = nn.GELU()

    def forward(self, x, scale=1.0):
        return x + scale * self.act(self.fc(x))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.b0 = Block()
        self.b1 = Block()
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.b1(self.b0(x), scale=2.0))


def local_model():
    """The model and its inputs are gone when the program ends."""
    def main():
        model = Net()
        for _ in range(5):
            model(torch.randn(4, 8))

    main()
    sys.exit(3)


def kernels():
    """A stand-in reports what jouleprof_kernels would have reported."""
    def replay(kinds, call, side, seconds, end):
        assert callable(kinds.every_node) and end > REPLAY.time.perf_counter()
        kinds.every_node(1)
        kinds.every_node(0)
        kinds.failed.append(f"kernels of {type(call.module).__name__}: {seconds:g}")
        side.replayed(float(side.names.layers[id(call.module)][0]), 0)

    sys.modules["_jouleprof_kernels"].Kinds.replay = replay
    Net()(torch.randn(4, 8))


def stuck():
    """A kernel did not end; the driver, whose handler runs at exit(), would wait for it."""
    def replay(kinds, call, *given):
        kinds.stuck = True
        kinds.fail("kernels of Net: add did not end")

    sys.modules["_jouleprof_kernels"].Kinds.replay = replay
    c = ctypes.CDLL(None)
    c.__cxa_atexit(ctypes.cast(c.abort, ctypes.c_void_p), None, None)
    local_model()


def generating():
    """A model that is called once with a prompt, then with inputs that grow. The stand-in notes the number
    of calls that stand for each re-run, and whether it gets nearly all of the time."""
    given = []

    def replay(kinds, call, side, seconds, end):
        given.append((call.count, end - REPLAY.time.perf_counter() > 10))

    sys.modules["_jouleprof_kernels"].Kinds.replay = replay
    at_exit = sys.modules["_jouleprof_at_exit"].AtExit
    timed = at_exit._weight
    at_exit._weight = lambda *given: timed(*given) * 0 + given[-1].count  # as if each call took the same time
    model = Net()
    for length in [64, 1, 2, 64, *range(3, 100)]:
        model(torch.randn(length, 8))
    AFTER.append(lambda: print(given[0], sorted(count for count, _ in given)))


def failed():
    Net()(torch.randn(4, 8))
    raise ValueError("mine")


def interrupted():
    Net()(torch.randn(4, 8))
    REPLAY.time.sleep = lambda seconds: (_ for _ in ()).throw(KeyboardInterrupt())


def training():
    """The state of a model that a program would save at its end."""
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5))
    model(torch.randn(4, 8)).sum().backward()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gradient = model[0].weight.grad.clone()
    state = torch.get_rng_state()

    def check():
        same = all(torch.equal(before[name], value) for name, value in model.state_dict().items())
        print(same, torch.equal(gradient, model[0].weight.grad),
              torch.equal(state, torch.get_rng_state()), bool(model[1]._forward_pre_hooks))

    AFTER.append(check)


class Counted(torch.autograd.Function):
    """Counts backward passes."""

    backwards = 0

    @staticmethod
    def forward(context, x):
        return x * 1.0

    @staticmethod
    def backward(context, gradient):
        Counted.backwards += 1
        return gradient


class Counting(nn.Module):
    def forward(self, x):
        return Counted.apply(x)


def trained():
    """A training loop: layers and the optimizer's steps are re-run, and leave what a program saves."""
    model = nn.Sequential(nn.Linear(8, 8), Counting(), nn.ReLU(inplace=True), nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
    steps = []
    optimizer.register_step_pre_hook(lambda *_: steps.append(1))
    _note_state(model, optimizer)
    Counted.backwards = 0
    AFTER.append(lambda: print(Counted.backwards > 10, len(steps) > 10))


def without_gradients():
    """zero_grad() after the last step drops the gradients."""
    model = nn.Sequential(nn.Linear(8, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    _note_state(model, optimizer)


def evaluated():
    """Without torch.no_grad(), and no backward pass ever runs."""
    nn.Sequential(nn.Linear(8, 8), Counting())(torch.randn(4, 8))
    AFTER.append(lambda: print(Counted.backwards))


def _note_state(model, optimizer):
    def state():
        values = [*model.parameters(), *(part.grad for part in model.parameters())]
        for one in optimizer.state.values():
            values += one.values()
        return [value.clone() if torch.is_tensor(value) else value for value in values]

    def same(a, b):
        return torch.equal(a, b) if torch.is_tensor(a) else a is b

    before = state()
    AFTER.append(lambda: print(all(map(same, before, state()))))


def odd_inputs():
    class Cache:
        pass

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(8, 8)

        def forward(self, x, cache):
            return self.fc(x)

    class Once(nn.Module):
        calls = 0

        def forward(self, x):
            Once.calls += 1
            if Once.calls > 2:
                raise RuntimeError("only once")
            return x + 1

    class Decoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = Attention()
            self.once = Once()

        def forward(self, x):
            return self.once(self.attention(x, Cache()))

    Decoder()(torch.randn(4, 8))


def idle_modules():
    """Modules that launch nothing, and one that works in place."""
    model = nn.Sequential(nn.Identity(), nn.Dropout(0.5), nn.Linear(8, 8), nn.ReLU(inplace=True)).eval()
    model(torch.randn(4, 8))


def shapes():
    """Inputs of other shapes are other calls; a wrapper of a compiled model is left out."""
    model = Net()
    for rows in (4, 4, 2):
        model(torch.randn(rows, 8))
    torch.compile(Block(4), backend="eager")(torch.randn(4, 4))


def states():
    """The type of autocast and inference mode are those of the call."""
    seen = []
    autocast = torch.autocast

    @contextlib.contextmanager
    def noted(kind, dtype=None):
        seen.append((kind, str(dtype)))
        torch.set_autocast_enabled("cuda", True)
        with autocast("cpu", dtype=torch.bfloat16):
            yield
        torch.set_autocast_enabled("cuda", False)

    class Probe(nn.Module):
        def forward(self, x):
            seen.append((torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")))
            return x

    model = nn.Sequential(Probe())
    torch.set_autocast_enabled("cuda", True)
    torch.set_autocast_dtype("cuda", torch.bfloat16)
    with torch.inference_mode():
        model(torch.randn(4, 8))
    torch.set_autocast_enabled("cuda", False)
    torch.autocast = noted
    seen.clear()
    AFTER.append(lambda: print(sorted(set(map(str, seen)))))


def many_processes():
    Net()(torch.randn(4, 8))
    torch.distributed.is_initialized = lambda: True
    torch.distributed.get_world_size = lambda: 2


def no_gpu():
    torch.cuda.is_initialized = lambda: False
    Net()(torch.randn(4, 8))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
