"""Re-runs each kind of kernel of a forward pass in isolation, with its arguments of that pass.

The pass is captured as a CUDA graph. One kernel's node, with the memsets before it, becomes a graph
of many copies, which runs in a loop. This separates the power of kernels that always run together.
One kernel in one grid may do work of several sizes with different power: nodes whose times differ are
re-run separately. The longest in the pass come first: they narrow the energies most.

A matrix product that only streams weights is faster when it runs on the same ones again, because they
are in the cache by then, and draws other power. Its loop runs all products of its size in turn.
"""

import ctypes
import math
import re
import time

_PAUSE_SECONDS = 0.1   # before each loop: idle, with the GPU as warm as it is
_BURST_SECONDS = 0.02  # about how long copies run without a pause, and as long a rest
_GRAPH_SECONDS = 0.004 # about how long one graph of copies takes
_MOST_COPIES = 16384
_LEAST_SECONDS = 0.12  # of a loop, where time is short
_LOOP_COSTS = 0.15     # seconds: about what each loop takes in addition
_ALL_BUT = 0.02        # of a pass's time: its kernels take no time from the others
_TIMED_SECONDS = 0.002 # about how long one graph takes of those by which a node is timed
_TIMED_LAUNCHES = 4
_MOST_TIMING = 3       # seconds, of all passes: then the first node of each kind is enough
_MATRIX_PRODUCT = re.compile("gemm|gemv|nvjet|cutlass|xmma|cublas", re.IGNORECASE)
_MOST_PRODUCTS = 1024  # of one size
_SAME_TIME = 1.1       # ratio of times up to which two nodes count as one size
_MOST_SIZES = 6        # of one kind
_MOST_NODES = 20000    # of a pass
_LEAST_SHARE = 0.001   # of a pass's time, for a loop
_CHUNK = 8 << 20       # numbers whose sum is taken at once
_MOST_WAITING = 5      # seconds, of a graph that takes milliseconds


class Kinds:
    """Loops over the kernels of some passes; a kind that occurred in an earlier pass is left out.
    `keep`: the passes stay captured, and their memory allocated, for again()."""

    def __init__(self, torch, library, driver, cleared, keep=False):
        self.torch = torch
        self._kept = [] if keep else None  # (device, name, pass) of each
        self.every_node = library.jouleprof_trace_every_node
        self.driver = driver  # jouleprof_cuda_graph.Driver
        self.cleared = cleared  # jouleprof_cleared.Cleared
        self.failed = []      # why passes or kernels were not re-run; each once
        self.stuck = False    # the GPU does not finish a kernel: nothing else can run on it
        self.timing = 0.0     # seconds that nodes were timed
        self._sizes = {}      # by kind: the _Size of each that was found

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
            made = _Pass(self, call, side, layer)
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


class _Size:
    """Launches of one kind that take the same time: `once` seconds each, `all` seconds in the pass that
    has the first of them. `each`: their nodes in that pass, a kernel after the memsets before it."""

    def __init__(self, nodes, once, found_by):
        self.once = once
        self.all = once
        self.each = [nodes]
        self.loop = nodes  # what a loop repeats
        self.found_by = found_by

    def add(self, nodes, once, found_by):
        self.all += once
        if found_by is self.found_by:
            self.each.append(nodes)


class _Pass:
    """One call of a model, as a CUDA graph."""

    def __init__(self, kinds, call, side, layer):
        self.torch = kinds.torch
        self.driver = kinds.driver
        self.kinds = kinds
        self.side = side
        self.looped = []  # the _Size of each loop
        self.layer = float(layer)
        self.stream = self.torch.cuda.current_stream()
        self.given = [tensor for tensor in call.given() if tensor.is_cuda]
        try:
            self.captured = self.torch.cuda.CUDAGraph(keep_graph=True)
        except TypeError:
            raise RuntimeError("this needs PyTorch 2.8 or newer") from None
        with call.state():
            with self.torch.cuda.graph(self.captured, capture_error_mode="thread_local"):
                self.result = call()
        self.captured.replay()  # sets the state of random numbers
        self.torch.cuda.synchronize()
        self.graph = self.captured.raw_cuda_graph()

    def replay(self, seconds, end):
        nodes = self.driver.nodes(self.graph)
        if len(nodes) > _MOST_NODES:
            raise RuntimeError(f"it launches more than {_MOST_NODES} kernels")
        self.inputs = {node: self.driver.inputs(node) for node in nodes}
        self.kinds_of = {node: self.driver.kind(node) for node in nodes}
        self.cleared = self.kinds.cleared(self.driver, nodes, self.kinds_of, self.inputs)
        late, changed = 0, 0
        found = sorted(self._find(nodes, end), key=lambda size: -size.all)
        least = _LEAST_SHARE * sum(size.all for size in found)
        found = [size for size in found if size.all >= least]
        planned = loop_seconds([size.all for size in found], seconds, end - time.perf_counter())
        for size, length in zip(found, planned):
            if time.perf_counter() + length > end:
                late += 1
            elif self._prepare(size):
                self._loop(size, length)
                self.looped.append(size)
            else:
                changed += 1
        if late > 0:
            self.kinds.fail(f"{late} kernels, for which there was no time left")
        if changed > 0:
            self.kinds.fail(f"{changed} kernels that change what they read")

    def _find(self, nodes, end):
        """The sizes of kernels that no earlier pass had. Kernels that could not be timed before `end`
        are of unknown size: they come last."""
        found = []
        for node in nodes:
            if self.kinds_of[node] != self.driver.KERNEL:
                continue
            sizes = self.kinds.sizes(self.driver.kernel(node))
            start = time.perf_counter()
            if sizes and (len(sizes) == _MOST_SIZES or self.kinds.timing > _MOST_TIMING or start > end):
                sizes[0].add([*self.cleared.before(node), node], sizes[0].once, self)
                continue
            again = [*self.cleared.before(node), node]
            if start > end:
                sizes.append(_Size(again, 0.0, self))
                found.append(sizes[0])
                continue
            once = self._time(again, sizes)
            self.kinds.timing += time.perf_counter() - start
            same = [size for size in sizes
                    if max(once, size.once) <= _SAME_TIME * min(once, size.once)]
            if same:
                same[0].add(again, once, self)
                continue
            sizes.append(_Size(again, once, self))
            found.append(sizes[-1])
        return found

    def again(self, seconds, end):
        for size in self.looped:
            if time.perf_counter() + seconds > end:
                return
            self._arrange(size.loop)
            self._loop(size, seconds)

    def _before(self, node):
        """All nodes that must run so that its inputs are those of the pass; includes itself."""
        found = {node}
        todo = [node]
        while todo:
            for before in self.inputs[todo.pop()]:
                if before not in found:
                    found.add(before)
                    todo.append(before)
        return found

    def _run_until(self, node):
        with self.driver.only(self.graph, self._before(node)) as until:
            self._launch(until, of=node)

    def _time(self, nodes, like):
        """Seconds of these nodes, one after the other. `like`: other sizes of the kind."""
        self._run_until(nodes[-1])
        once = like[0].once if like and like[0].once > 0 else self._time_copies(nodes, 8)
        return self._time_copies(nodes, min(max(int(_TIMED_SECONDS / once), 8), _MOST_COPIES))

    def _time_copies(self, nodes, copies):
        with self.driver.repeated(nodes, copies) as some:
            self._launch(some, of=nodes[-1])
            least = math.inf
            for _ in range(_TIMED_LAUNCHES):
                start = time.perf_counter()
                self._launch(some)
                least = min(least, time.perf_counter() - start)
        return max(least / copies, 1e-7)

    def _prepare(self, size):
        """Chooses what a loop of this size repeats. False: it changes what it reads."""
        all_in_turn = [node for nodes in size.each[:_MOST_PRODUCTS] for node in nodes]
        count = min(len(size.each), _MOST_PRODUCTS)
        if count > 1 and _MATRIX_PRODUCT.search(self.driver.name(size.each[0][-1])):
            self._arrange(all_in_turn)
            once = self._time_copies(all_in_turn, max(int(_TIMED_SECONDS / size.once) // count, 1)) / count
            if once > _SAME_TIME * size.once and self._does_the_same_again(all_in_turn):
                size.loop, size.once = all_in_turn, once
                return True
        return self._does_the_same_again(size.each[0])

    def _does_the_same_again(self, nodes):
        self._arrange(nodes)
        before = self._memory()
        with self.driver.repeated(nodes, 8) as few:
            self._launch(few, of=nodes[-1])
        return self._memory() == before

    def _arrange(self, nodes):
        """Makes the inputs of these nodes those of the pass. Of several launches the later ones may
        overwrite inputs of the earlier ones: their first turn does."""
        self._run_until(nodes[-1])
        if sum(self.kinds_of[node] == self.driver.KERNEL for node in nodes) > 1:
            with self.driver.repeated(nodes, 1) as once:
                self._launch(once, of=nodes[-1])

    def _loop(self, size, seconds):
        launches = sum(self.kinds_of[node] == self.driver.KERNEL for node in size.loop)
        turn = size.once * launches
        copies = min(max(int(_GRAPH_SECONDS / turn), 1), max(_MOST_COPIES // launches, 1))
        burst = max(round(_BURST_SECONDS / (copies * turn)), 1)
        with self.driver.repeated(size.loop, copies) as many:
            self._launch(many)
            time.sleep(_PAUSE_SECONDS)
            self.side.replayed(-1.0, 0)
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                start = time.perf_counter()
                self._launch(many, burst)
                time.sleep(time.perf_counter() - start)  # keeps the GPU below its power limit
        self.side.replayed(self.layer, 0)

    def _launch(self, executable, times=1, of=None):
        """`of`: the kernel that might not end where something else ran before it than in the pass."""
        for _ in range(times):
            self.driver.launch(executable, self.stream.cuda_stream)
        if of is None:
            self.torch.cuda.synchronize()
            return
        done = self.torch.cuda.Event()
        done.record(self.stream)
        end = time.perf_counter() + _MOST_WAITING
        while not done.query():
            if time.perf_counter() > end:
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))  # freeing its memory would wait, too
                raise self.driver.Unfinished(
                    f"{self.driver.name(of) or 'a kernel'} did not end within {_MOST_WAITING} s without those "
                    "before it; nothing else was re-run")

    def _memory(self):
        """Checksums of the memory that the pass uses: its inputs, and what it allocated."""
        pool = self.captured.pool()
        found = [segment for segment in self.torch.cuda.memory_snapshot()
                 if segment["segment_pool_id"] == pool]
        views = [self.torch.as_tensor(_Memory(segment["address"], segment["total_size"]),
                                      device="cuda") for segment in found]
        return [checksum(self.torch, data) for data in (*views, *self.given)]


def loop_seconds(times, most, left):
    """How long each kernel runs in a loop, `most` at most, in `left` seconds. `times`: what it takes in a
    pass, the longest first. The error of its energy falls with the square root of the loop's length, so
    that the sum of all errors is least with lengths as time^(2/3)."""
    rest = sum(times)
    all_but = _ALL_BUT * rest
    counted = 0
    for took in times:
        if rest <= all_but:
            break
        rest -= took
        counted += 1
    left -= counted * _LOOP_COSTS

    def lengths(scale):
        return [min(max(scale * took ** (2 / 3), _LEAST_SECONDS), most) for took in times]

    low, high = 0.0, most / times[-1] ** (2 / 3) if times and times[-1] > 0 else 0.0
    if sum(lengths(high)[:counted]) <= left:
        return lengths(high)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if sum(lengths(middle)[:counted]) <= left else (low, middle)
    return lengths(low)


class _Memory:
    def __init__(self, address, size):
        self.__cuda_array_interface__ = {"data": (address, False), "shape": (size,),
                                         "typestr": "|u1", "version": 3}


def checksum(torch, data):
    """Of a tensor's bytes; differs when any byte does."""
    data = data.detach().contiguous().reshape(-1).view(torch.uint8)
    if data.numel() % 8 != 0:
        data = torch.nn.functional.pad(data, (0, -data.numel() % 8))
    found = 0
    for part in data.view(torch.int64).split(_CHUNK):
        odd = torch.arange(1, 2 * part.numel(), 2, device=part.device)
        found = (found * 31 + int((part * odd).sum())) % 2**64  # overflow is harmless
    return found
