"""A call of a model, captured as a CUDA graph, of which single kernels can be run again."""

import ctypes
import math
import time

_TIMED_SECONDS = 0.002 # about how long one graph takes of those by which a node is timed
_TIMED_LAUNCHES = 4
MOST_COPIES = 16384
_CHUNK = 8 << 20       # numbers whose sum is taken at once
_MOST_WAITING = 5      # seconds, of a graph that takes milliseconds


class Captured:
    """`call`: a jouleprof_replay.Call; `cleared`: the class of jouleprof_cleared. Nodes are those of its graph."""

    def __init__(self, torch, driver, cleared, call):
        self.torch = torch
        self.driver = driver
        self._make_cleared = cleared
        self.stream = torch.cuda.current_stream()
        self._given = [tensor for tensor in call.given() if tensor.is_cuda]
        try:
            self._captured = torch.cuda.CUDAGraph(keep_graph=True)
        except TypeError:
            raise RuntimeError("this needs PyTorch 2.8 or newer") from None
        with call.state():
            with torch.cuda.graph(self._captured, capture_error_mode="thread_local"):
                self.result = call()
        self._captured.replay()  # sets the state of random numbers
        torch.cuda.synchronize()
        self._graph = self._captured.raw_cuda_graph()

    def read(self, most):
        """The nodes of the graph, `most` at most."""
        nodes = self.driver.nodes(self._graph)
        if len(nodes) > most:
            raise RuntimeError(f"it launches more than {most} kernels")
        self._inputs = {node: self.driver.inputs(node) for node in nodes}
        self._kinds = {node: self.driver.kind(node) for node in nodes}
        self._cleared = self._make_cleared(self.driver, nodes, self._kinds, self._inputs)
        return nodes

    def is_kernel(self, node):
        return self._kinds[node] == self.driver.KERNEL

    def kernels(self, nodes):
        """How many of these are kernels."""
        return sum(self.is_kernel(node) for node in nodes)

    def fed_by(self, node):
        """What clears memory for it, in the order of the call."""
        return self._cleared.before(node)

    def _before(self, node):
        """All nodes that must run so that its inputs are those of the pass; includes itself."""
        found = {node}
        todo = [node]
        while todo:
            for before in self._inputs[todo.pop()]:
                if before not in found:
                    found.add(before)
                    todo.append(before)
        return found

    def run_until(self, node):
        with self.driver.only(self._graph, self._before(node)) as until:
            self.launch(until, of=node)

    def time(self, nodes, once=0):
        """Seconds of these nodes, one after the other. `once`: about that, where it is known."""
        self.run_until(nodes[-1])
        once = once if once > 0 else self.time_copies(nodes, 8)
        return self.time_copies(nodes, min(self.timed_copies(once), MOST_COPIES))

    @staticmethod
    def timed_copies(once, least=8):
        """How many copies a graph has by which nodes of `once` seconds are timed."""
        return max(int(_TIMED_SECONDS / once), least)

    def time_copies(self, nodes, copies):
        with self.driver.repeated(nodes, copies) as some:
            self.launch(some, of=nodes[-1])
            least = math.inf
            for _ in range(_TIMED_LAUNCHES):
                start = time.perf_counter()
                self.launch(some)
                least = min(least, time.perf_counter() - start)
        return max(least / copies, 1e-7)

    def arrange(self, nodes):
        """Makes the inputs of these nodes those of the pass. Of several launches the later ones may
        overwrite inputs of the earlier ones: their first turn does."""
        self.run_until(nodes[-1])
        if self.kernels(nodes) > 1:
            with self.driver.repeated(nodes, 1) as once:
                self.launch(once, of=nodes[-1])

    def does_the_same_again(self, nodes):
        self.arrange(nodes)
        before = self._memory()
        with self.driver.repeated(nodes, 8) as few:
            self.launch(few, of=nodes[-1])
        return self._memory() == before

    def launch(self, executable, times=1, of=None):
        """`of`: the kernel that might not end where something else ran before it than in the call. Raises
        Driver.Unfinished then."""
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
        pool = self._captured.pool()
        found = [segment for segment in self.torch.cuda.memory_snapshot()
                 if segment["segment_pool_id"] == pool]
        views = [self.torch.as_tensor(_Memory(segment["address"], segment["total_size"]),
                                      device="cuda") for segment in found]
        return [checksum(self.torch, data) for data in (*views, *self._given)]


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
