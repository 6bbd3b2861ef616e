"""Reads the nodes of a CUDA graph, and makes graphs of a few of them, with the driver's functions
(CUDA driver API reference, "Graph Management"), which PyTorch does not offer.

Raises CudaError. Only isolated re-runs call this module.
"""

import contextlib
import ctypes
import struct

_Handle = ctypes.c_void_p
_ADDRESSES = range(1 << 32, 1 << 57)  # of 64-bit systems with five levels of pages


class CudaError(Exception):
    pass


class KernelParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = [("function", _Handle), ("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("shared_bytes", ctypes.c_uint), ("arguments", _Handle), ("extra", _Handle),
                ("kernel", _Handle), ("context", _Handle)]


class MemsetParams(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = [("address", ctypes.c_uint64), ("pitch", ctypes.c_size_t), ("value", ctypes.c_uint),
                ("element_bytes", ctypes.c_uint), ("width", ctypes.c_size_t),
                ("height", ctypes.c_size_t)]


class Driver:
    """The driver's functions on graphs and their nodes, which are given by their addresses. Of the
    GPU whose context is current."""

    KERNEL, MEMSET = 0, 2  # CUgraphNodeType

    class Unfinished(Exception):
        """The GPU does not finish a graph: nothing is destroyed."""

    def __init__(self, library=None):
        self._given = library

    @property
    def _library(self):
        if self._given is None:
            self._given = ctypes.CDLL("libcuda.so.1")
        return self._given

    def nodes(self, graph):
        return self._list("cuGraphGetNodes", graph)

    def kind(self, node):
        kind = ctypes.c_int()
        self._call("cuGraphNodeGetType", _Handle(node), ctypes.byref(kind))
        return kind.value

    def inputs(self, node):
        """The nodes on which it depends."""
        if hasattr(self._library, "cuGraphNodeGetDependencies_v2"):  # edges with data, too
            return self._list("cuGraphNodeGetDependencies_v2", node, edges=True)
        return self._list("cuGraphNodeGetDependencies", node)

    def kernel(self, node):
        params = KernelParams()
        self._call("cuGraphKernelNodeGetParams_v2", _Handle(node), ctypes.byref(params))
        return params

    def name(self, node):
        """Of a kernel's node; empty where the driver does not know it (before CUDA 12.3)."""
        params, found = self.kernel(node), ctypes.c_char_p()
        function, handle = ("cuKernelGetName", params.kernel) if params.kernel else ("cuFuncGetName", params.function)
        if not handle or not hasattr(self._library, function):
            return ""
        status = getattr(self._library, function)(ctypes.byref(found), _Handle(handle))
        return (found.value or b"").decode(errors="replace") if status == 0 else ""

    def cleared(self, node):
        """The range of addresses that a memset's node writes."""
        params = MemsetParams()
        self._call("cuGraphMemsetNodeGetParams", _Handle(node), ctypes.byref(params))
        rows = params.pitch * max(params.height - 1, 0) + params.width * params.element_bytes
        return range(params.address, params.address + max(rows, 1))

    def addresses(self, node):
        """The 64-bit words among the arguments of a kernel's node that may be addresses. Empty where the
        driver does not say where the arguments are (before CUDA 12.4)."""
        params = self.kernel(node)
        name, handle = (("cuKernelGetParamInfo", params.kernel) if params.kernel
                        else ("cuFuncGetParamInfo", params.function))
        if not params.arguments or not hasattr(self._library, name):
            return set()
        values = ctypes.cast(params.arguments, ctypes.POINTER(_Handle))
        offset, size = ctypes.c_size_t(), ctypes.c_size_t()
        found, number = set(), 0
        while getattr(self._library, name)(_Handle(handle), ctypes.c_size_t(number), ctypes.byref(offset),
                                           ctypes.byref(size)) == 0:
            data = ctypes.string_at(values[number], size.value)
            words = struct.iter_unpack("<Q", data[:size.value // 8 * 8])
            found.update(word for (word,) in words if word in _ADDRESSES)
            number += 1
        return found

    @contextlib.contextmanager
    def only(self, graph, kept):
        """An executable copy of a graph with only these nodes, which include all their dependencies."""
        with self._made("cuGraphDestroy", "cuGraphClone", _Handle(graph)) as copy:
            for node in self.nodes(graph):
                if node not in kept:
                    same = _Handle()
                    self._call("cuGraphNodeFindInClone", ctypes.byref(same), _Handle(node), copy)
                    self._call("cuGraphDestroyNode", same)
            with self._executable(copy) as executable:
                yield executable

    @contextlib.contextmanager
    def repeated(self, nodes, count):
        """An executable graph that runs these kernels and memsets, in this order, `count` times."""
        context = _Handle()
        self._call("cuCtxGetCurrent", ctypes.byref(context))
        with self._made("cuGraphDestroy", "cuGraphCreate", ctypes.c_uint(0)) as graph:
            last = None
            for _ in range(count):
                for node in nodes:
                    last = self._add(graph, node, last, context)
            with self._executable(graph) as executable:
                yield executable

    def launch(self, executable, stream):
        self._call("cuGraphLaunch", executable, _Handle(stream))

    def _add(self, graph, node, after, context):
        added = _Handle()
        before = (graph, ctypes.byref(after) if after else None, ctypes.c_size_t(1 if after else 0))
        if self.kind(node) == self.MEMSET:
            memset = MemsetParams()
            self._call("cuGraphMemsetNodeGetParams", _Handle(node), ctypes.byref(memset))
            self._call("cuGraphAddMemsetNode", ctypes.byref(added), *before, ctypes.byref(memset),
                       context)
        else:
            self._call("cuGraphAddKernelNode_v2", ctypes.byref(added), *before,
                       ctypes.byref(self.kernel(node)))
            self._call("cuGraphKernelNodeCopyAttributes", added, _Handle(node))  # clusters
        return added

    def _executable(self, graph):
        return self._made("cuGraphExecDestroy", "cuGraphInstantiateWithFlags", graph,
                          ctypes.c_ulonglong(0))

    @contextlib.contextmanager
    def _made(self, destroy, make, *arguments):
        made = _Handle()
        self._call(make, ctypes.byref(made), *arguments)
        finished = True
        try:
            yield made
        except self.Unfinished:
            finished = False
            raise
        finally:
            if finished:
                self._call(destroy, made)

    def _list(self, function, of, edges=False):
        none = (None,) if edges else ()
        count = ctypes.c_size_t(0)
        self._call(function, _Handle(of), None, *none, ctypes.byref(count))
        if count.value == 0:
            return []
        found = (_Handle * count.value)()
        # 8 bytes an edge (CUgraphEdgeData); without room for them a graph that has any is refused.
        data = ((ctypes.c_uint64 * count.value)(),) if edges else ()
        self._call(function, _Handle(of), found, *data, ctypes.byref(count))
        return list(found)

    def _call(self, function, *arguments):
        status = getattr(self._library, function)(*arguments)
        if status != 0:
            raise CudaError(f"{function} failed with status {status}")
