"""Re-runs each kind of kernel of a forward pass in isolation, with its arguments of that pass.

The pass is captured as a CUDA graph (jouleprof_captured.py). One kernel's node, with what clears memory
for it (jouleprof_cleared.py), becomes a graph of many copies, which runs in a loop
(jouleprof_kernel_loops.py). This separates the power of kernels that always run together.
"""

import importlib.util
import math
import os
import sys


def _load(name):
    """Another file of this folder, which is not on the program's path, as the module `_name`."""
    file = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"_{name}", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


captured = _load("jouleprof_captured")
cleared = _load("jouleprof_cleared")
loops = _load("jouleprof_kernel_loops")


class Kinds:
    """Loops over the kernels of some passes; a kind that occurred in an earlier pass is left out.
    `keep`: the passes stay captured, and their memory allocated, for again()."""

    def __init__(self, torch, library, driver, keep=False):
        self.torch = torch
        self._kept = [] if keep else None  # (device, name, pass) of each
        self.every_node = library.jouleprof_trace_every_node
        self.driver = driver  # jouleprof_cuda_graph.Driver
        self.failed = []      # why passes or kernels were not re-run; each once
        self.stuck = False    # the GPU does not finish a kernel: nothing else can run on it
        self.timing = 0.0     # seconds that nodes were timed
        self._sizes = {}      # by kind: the Size of each that was found

    def replay(self, call, side, seconds, end=math.inf):
        """Loops over the kernels of `call` (jouleprof_replay.Call), each for `seconds`, until `end`
        (perf_counter). `side`: of jouleprof_layers."""
        layer, _ = side.names.layers.get(id(call.module), (None, None))
        devices = call.devices()
        name = type(call.module).__name__
        if layer is None or len(devices) != 1:
            self.fail(f"kernels of {name}: it runs on more than one GPU")
            return

        def first():
            made = loops.Loops(self, captured.Captured(self.torch, self.driver, cleared.Cleared, call), side,
                               layer, captured.MOST_COPIES)
            if self._kept is not None:
                self._kept.append((devices[0], name, made))
            made.replay(seconds, end)

        self._within(devices[0], name, side, first)

    def again(self, side, seconds, end=math.inf):
        """Repeats the loops of replay(), without its timing. Needs `keep`."""
        for device, name, made in [] if self.stuck else self._kept:
            self._within(device, name, side, lambda made=made: made.again(seconds, end))

    def _within(self, device, name, side, work):
        try:
            self.every_node(1)  # the trace of a graph launched as a whole lacks its kernels
            with self.torch.cuda.device(device):
                work()
        except self.driver.Unfinished as error:
            self.stuck = True
            self.fail(f"kernels of {name}: {error}")
        except Exception as error:  # the pass cannot be captured, or the driver refuses
            first = str(error).strip().split("\n")[0]
            self.fail(f"kernels of {name}: {first or type(error).__name__}")
        finally:
            self.every_node(0)
            side.replayed(-1.0, 0)

    def sizes(self, params):
        kind = (params.function, params.kernel, tuple(params.grid), tuple(params.block),
                params.shared_bytes)
        return self._sizes.setdefault(kind, [])

    def fail(self, why):
        if why not in self.failed:
            self.failed.append(why)
