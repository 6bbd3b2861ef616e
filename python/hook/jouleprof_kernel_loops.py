"""Loops over the kernels of a captured call: which, in which order, and how long each.

One kernel in one grid may do work of several sizes with different power: nodes whose times differ are
re-run separately. The longest in the call come first: they narrow the energies most.

A matrix product that only streams weights is faster when it runs on the same ones again, because they
are in the cache by then, and draws other power. Its loop runs all products of its size in turn.
"""

import re
import time

_PAUSE_SECONDS = 0.1   # before each loop: idle, with the GPU as warm as it is
_BURST_SECONDS = 0.02  # about how long copies run without a pause, and as long a rest
_GRAPH_SECONDS = 0.004 # about how long one graph of copies takes
_LEAST_SECONDS = 0.12  # of a loop, where time is short
_LOOP_COSTS = 0.15     # seconds: about what each loop takes in addition
_ALL_BUT = 0.02        # of a call's time: its kernels take no time from the others
_MOST_TIMING = 3       # seconds, of all calls: then the first node of each kind is enough
_MATRIX_PRODUCT = re.compile("gemm|gemv|nvjet|cutlass|xmma|cublas", re.IGNORECASE)
_MOST_PRODUCTS = 1024  # of one size
_SAME_TIME = 1.1       # ratio of times up to which two nodes count as one size
_MOST_SIZES = 6        # of one kind
_MOST_NODES = 20000    # of a call
_LEAST_SHARE = 0.001   # of a call's time, for a loop


class Size:
    """Launches of one kind that take the same time: `once` seconds each, `all` seconds in the call that
    has the first of them. `each`: their nodes in that call, a kernel after the memsets before it."""

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


class Loops:
    """`kinds`: what earlier calls had (jouleprof_kernels.Kinds); `captured`: a jouleprof_captured.Captured,
    whose layer has this number."""

    def __init__(self, kinds, captured, side, layer, most_copies):
        self.kinds = kinds
        self.captured = captured
        self.driver = captured.driver
        self.side = side
        self.layer = float(layer)
        self.looped = []  # the Size of each loop
        self._most_copies = most_copies

    def replay(self, seconds, end):
        nodes = self.captured.read(_MOST_NODES)
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

    def again(self, seconds, end):
        for size in self.looped:
            if time.perf_counter() + seconds > end:
                return
            self.captured.arrange(size.loop)
            self._loop(size, seconds)

    def _find(self, nodes, end):
        """The sizes of kernels that no earlier call had. Kernels that could not be timed before `end`
        are of unknown size: they come last."""
        found = []
        for node in nodes:
            if not self.captured.is_kernel(node):
                continue
            sizes = self.kinds.sizes(self.driver.kernel(node))
            start = time.perf_counter()
            if sizes and (len(sizes) == _MOST_SIZES or self.kinds.timing > _MOST_TIMING or start > end):
                sizes[0].add([*self.captured.fed_by(node), node], sizes[0].once, self)
                continue
            again = [*self.captured.fed_by(node), node]
            if start > end:
                sizes.append(Size(again, 0.0, self))
                found.append(sizes[0])
                continue
            once = self.captured.time(again, sizes[0].once if sizes else 0)
            self.kinds.timing += time.perf_counter() - start
            same = [size for size in sizes
                    if max(once, size.once) <= _SAME_TIME * min(once, size.once)]
            if same:
                same[0].add(again, once, self)
                continue
            sizes.append(Size(again, once, self))
            found.append(sizes[-1])
        return found

    def _prepare(self, size):
        """Chooses what a loop of this size repeats. False: it changes what it reads."""
        all_in_turn = [node for nodes in size.each[:_MOST_PRODUCTS] for node in nodes]
        count = min(len(size.each), _MOST_PRODUCTS)
        if count > 1 and _MATRIX_PRODUCT.search(self.driver.name(size.each[0][-1])):
            self.captured.arrange(all_in_turn)
            copies = max(self.captured.timed_copies(size.once, 0) // count, 1)
            once = self.captured.time_copies(all_in_turn, copies) / count
            if once > _SAME_TIME * size.once and self.captured.does_the_same_again(all_in_turn):
                size.loop, size.once = all_in_turn, once
                return True
        return self.captured.does_the_same_again(size.each[0])

    def _loop(self, size, seconds):
        launches = self.captured.kernels(size.loop)
        turn = size.once * launches
        copies = min(max(int(_GRAPH_SECONDS / turn), 1), max(self._most_copies // launches, 1))
        burst = max(round(_BURST_SECONDS / (copies * turn)), 1)
        with self.driver.repeated(size.loop, copies) as many:
            self.captured.launch(many)
            time.sleep(_PAUSE_SECONDS)
            self.side.replayed(-1.0, 0)
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                start = time.perf_counter()
                self.captured.launch(many, burst)
                time.sleep(time.perf_counter() - start)  # keeps the GPU below its power limit
        self.side.replayed(self.layer, 0)


def loop_seconds(times, most, left):
    """How long each kernel runs in a loop, `most` at most, in `left` seconds. `times`: what it takes in a
    call, the longest first. The error of its energy falls with the square root of the loop's length, so
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
