"""As much of the CUDA driver's graphs, and of PyTorch's, as replaying kernels uses. Kernels are
functions on a memory of 64-bit numbers; time passes only while they run and while somebody sleeps.
"""

import contextlib
import ctypes
import types

CLEARED = 0x7F0000000000  # a memset of number n clears the byte at CLEARED + n
MEMORY, POOL = 0x7000, (0, 1)


class Clock:
    def __init__(self):
        self.now = 100.0

    def perf_counter(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Node:
    def __init__(self, kind, run, inputs, shape=(1, 1)):
        self.kind = kind  # 0 kernel, 1 copy, 2 memset
        self.run = run    # its number
        self.inputs = inputs
        self.shape = shape


class Driver:
    """The library: what is made has an address, and must be destroyed. `work`: what each kernel does,
    and how many seconds it takes, by its number; those that differ by hundreds are one function with
    other arguments. Seconds may be a pair: of a kernel, and of the same one right after itself. Functions
    from 50 on are matrix products, 9 writes one value. `uses`: addresses among a kernel's arguments, by
    number."""

    def __init__(self, clock, memory, work, uses):
        self.clock = clock
        self.memory = memory
        self.work = work
        self.arguments = {run: self._stored(uses.get(run, ())) for run in work}
        self.alive = {}
        self.launches = []  # numbers of the kernels that ran, one list a launch
        self.refuse = ()    # functions that fail
        self.waits = False  # a kernel does not end
        self._next = 0x1000
        self._last = None   # the kernel that ran last

    def __getattribute__(self, name):
        found = object.__getattribute__(self, name)
        if name.startswith("cu") and name in self.refuse:
            return lambda *arguments: 801
        return found

    @staticmethod
    def _stored(addresses):
        """Pointers to a number of 32 bits and to these of 64, as the driver gives arguments."""
        values = [ctypes.c_uint32(7), *map(ctypes.c_uint64, addresses)]
        return values, (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))

    def keep(self, thing):
        self._next += 16
        self.alive[self._next] = thing
        return self._next

    def of(self, handle):
        return self.alive[handle.value if hasattr(handle, "value") else handle]

    def pass_of(self, *nodes):
        """A captured graph of (kind, number of the kernel, numbers of the nodes it waits for)."""
        handles = []
        for kind, run, inputs in nodes:
            handles.append(self.keep(Node(kind, run, [handles[i] for i in inputs])))
        return self.keep(handles)

    @staticmethod
    def _give(found, array, count):
        if array is not None:
            array[:] = found
        count._obj.value = len(found)
        return 0

    def cuGraphGetNodes(self, graph, array, count):
        return self._give(self.of(graph), array, count)

    def cuGraphNodeGetDependencies_v2(self, node, array, data, count):
        assert (array is None) == (data is None)
        return self._give(self.of(node).inputs, array, count)

    def cuGraphNodeGetType(self, node, kind):
        kind._obj.value = self.of(node).kind
        return 0

    def cuGraphKernelNodeGetParams_v2(self, node, params):
        node = self.of(node)
        assert node.kind == 0
        params._obj.function = node.run % 100
        params._obj.grid[:] = [*node.shape, 1]
        params._obj.arguments = ctypes.addressof(self.arguments[node.run][1])
        return 0

    def cuFuncGetParamInfo(self, function, number, offset, size):
        values, _ = next(stored for run, stored in self.arguments.items() if run % 100 == function.value)
        if number.value >= len(values):
            return 1
        size._obj.value = ctypes.sizeof(values[number.value])
        return 0

    def cuFuncGetName(self, name, function):
        name._obj.value = {9: b"FillFunctor"}.get(function.value, b"sm90_gemm" if function.value >= 50 else b"add")
        return 0

    def cuGraphMemsetNodeGetParams(self, node, params):
        node = self.of(node)
        assert node.kind == 2
        params._obj.address = CLEARED + node.run
        params._obj.element_bytes = params._obj.width = params._obj.height = 1
        return 0

    def cuGraphClone(self, out, graph):
        same = {}
        for handle in self.of(graph):
            node = self.of(handle)
            same[handle] = self.keep(
                Node(node.kind, node.run, [same[i] for i in node.inputs], node.shape))
        out._obj.value = self.keep(list(same.values()))
        self.alive[out._obj.value, "same"] = same
        return 0

    def cuGraphNodeFindInClone(self, out, node, graph):
        out._obj.value = self.alive[graph.value, "same"][node.value]
        return 0

    def cuGraphDestroyNode(self, node):
        for key, thing in self.alive.items():
            if isinstance(key, int) and isinstance(thing, list) and node.value in thing:
                thing.remove(node.value)
                del self.alive[node.value]
                return 0
        raise AssertionError("a node of no graph")

    def cuCtxGetCurrent(self, context):
        context._obj.value = 0xC0
        return 0

    def cuGraphCreate(self, out, flags):
        out._obj.value = self.keep([])
        return 0

    def _add(self, out, graph, before, count, node):
        node.inputs = [before._obj.value] if count.value else []
        out._obj.value = self.keep(node)
        self.of(graph).append(out._obj.value)
        return 0

    def cuGraphAddKernelNode_v2(self, out, graph, before, count, params):
        params = params._obj
        run = next(run for run, (_, stored) in self.arguments.items() if ctypes.addressof(stored) == params.arguments)
        assert params.function == run % 100
        return self._add(out, graph, before, count, Node(0, run, [], params.grid[:2]))

    def cuGraphAddMemsetNode(self, out, graph, before, count, params, context):
        assert context.value == 0xC0
        return self._add(out, graph, before, count, Node(2, params._obj.address - CLEARED, []))

    def cuGraphKernelNodeCopyAttributes(self, to, of):
        assert self.of(to).kind == self.of(of).kind == 0
        return 0

    def cuGraphInstantiateWithFlags(self, out, graph, flags):
        out._obj.value = self.keep([self.of(handle).run for handle in self.of(graph)])
        return 0

    def cuGraphLaunch(self, executable, stream):
        assert stream.value == 0x57
        runs = self.of(executable)
        self.launches.append(runs)
        for run in runs:
            work, seconds = self.work[run]
            if isinstance(seconds, tuple):
                seconds = seconds[run == self._last]
            self._last = run
            work(self.memory)
            self.clock.now += seconds
        return 0

    def cuGraphDestroy(self, graph):
        for handle in self.of(graph):
            del self.alive[handle]
        self.alive.pop((graph.value, "same"), None)
        del self.alive[graph.value]
        return 0

    def cuGraphExecDestroy(self, executable):
        del self.alive[executable.value]
        return 0


class Torch:
    """One GPU, whose one memory one captured pass uses."""

    def __init__(self, driver, graph):
        self.cuda = types.SimpleNamespace(
            device=lambda device: contextlib.nullcontext(),
            current_stream=lambda: types.SimpleNamespace(cuda_stream=0x57),
            synchronize=lambda: None, Event=self._event, CUDAGraph=self._graph, graph=self._capture,
            memory_snapshot=lambda: [
                {"segment_pool_id": POOL, "address": MEMORY, "total_size": 8 * len(driver.memory)},
                {"segment_pool_id": (0, 0), "address": 1, "total_size": 8}])
        self.driver = driver
        self.made = graph
        self.captured = False

    def as_tensor(self, memory, device):
        view = memory.__cuda_array_interface__
        assert view["data"] == (MEMORY, False) and view["typestr"] == "|u1" and device == "cuda"
        assert view["shape"] == (8 * len(self.driver.memory),)
        return self.driver.memory

    def _event(self):
        return types.SimpleNamespace(record=lambda stream: None, query=self._query)

    def _query(self):
        """Asking takes a tenth of a second while a kernel does not end."""
        self.driver.clock.now += 0.1 if self.driver.waits else 0
        return not self.driver.waits

    def _graph(self, keep_graph):
        return types.SimpleNamespace(pool=lambda: POOL, raw_cuda_graph=lambda: self.made,
                                     replay=lambda: None)

    @contextlib.contextmanager
    def _capture(self, graph, capture_error_mode):
        assert capture_error_mode == "thread_local"
        self.captured = True
        yield
