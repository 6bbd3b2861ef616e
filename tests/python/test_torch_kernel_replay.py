"""Isolated re-runs of kernels as nodes of CUDA graphs, on a fake driver (docs/layers.md).
tests/gpu/replay_run.py tests a real one."""

import contextlib
import importlib.util
import pathlib
import types

import pytest

import fake_cuda_graphs as fake

HOOK = pathlib.Path(__file__).parent.parent.parent / "python" / "hook"
MICRO = 1e-6
LAYER = 4


def load(name):
    spec = importlib.util.spec_from_file_location(f"_{name}", HOOK / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def put(place, value):
    def run(memory):
        memory[place] = value

    return run


def add(place, other):
    def run(memory):
        memory[place] += memory[other]

    return run


def semaphore(memory):
    """Returns at once unless it was reset."""
    memory[3] = memory[0] if memory[2] == 0 else memory[3]
    memory[2] = 1


class Net:
    pass


class Call:
    """jouleprof_replay.Call, as far as it is used."""

    def __init__(self, devices=("cuda:0",)):
        self.module = Net()
        self.on = devices
        self.ran = 0

    def __call__(self):
        self.ran += 1

    def given(self):
        return []

    def devices(self):
        return list(self.on)

    def state(self):
        return contextlib.nullcontext()


class Machine:
    """`work`: by number, what a kernel does and how long it takes; `nodes`: as of Driver.pass_of; `uses`:
    as of Driver."""

    def __init__(self, work, *nodes, uses=None, **options):
        self.clock = fake.Clock()
        self.memory = [0] * 8
        self.driver = fake.Driver(self.clock, self.memory, work, uses or {})
        self.torch = fake.Torch(self.driver, self.driver.pass_of(*nodes))
        self.before = dict(self.driver.alive)
        self.reported = []  # (layer, calls, kernels since the last one)
        self.every_node = []
        self.seen = 0
        library = types.SimpleNamespace(jouleprof_trace_every_node=self.every_node.append)
        module = load("jouleprof_kernels")
        module.captured.time = module.loops.time = self.clock
        module.captured.checksum = lambda torch, memory: tuple(memory)
        self.kinds = module.Kinds(self.torch, library, load("jouleprof_cuda_graph").Driver(self.driver),
                                  **options)

    def replay(self, seconds=0.4, call=None, **more):
        call = call or Call()
        side = types.SimpleNamespace(
            names=types.SimpleNamespace(layers={id(call.module): (LAYER, "net")}),
            replayed=self._replayed)
        self.kinds.replay(call, side, seconds, **more)
        return self.kinds.failed

    def again(self, seconds, **more):
        """Once more: the seconds that it took, and the kernels of each loop."""
        before, begin = len(self.reported), self.clock.now
        self.kinds.again(types.SimpleNamespace(replayed=self._replayed), seconds, **more)
        loops = [launches for layer, _, launches in self.reported[before:] if layer >= 0]
        assert all(launch == loop[0] for loop in loops for launch in loop)
        return self.clock.now - begin, [set(loop[0]) for loop in loops]

    def _replayed(self, layer, calls):
        launches = self.driver.launches[self.seen:]
        self.seen = len(self.driver.launches)
        self.reported.append((layer, calls, launches))

    def loops(self):
        """The kernels of each loop: of the one graph that it launched repeatedly."""
        found = []
        for layer, calls, launches in self.reported:
            if layer >= 0:
                assert (layer, calls) == (LAYER, 0)
                assert all(launch == launches[0] for launch in launches)
                found.append(launches[0])
        return found


def test_any_byte_changes_the_checksum():
    torch = pytest.importorskip("torch")
    checksum = load("jouleprof_captured").checksum
    for size in (1, 7, 8, 1000):
        data = torch.arange(size, dtype=torch.uint8)
        seen = {checksum(torch, data)}
        for place in range(size):
            data[place] += 1
            seen.add(checksum(torch, data))
        assert len(seen) == size + 1
    assert checksum(torch, torch.zeros(3, dtype=torch.bfloat16)) == 0
    assert checksum(torch, torch.ones(2, 3).t()) != 0


def chain(*numbers):
    return [(0, number, [i - 1] if i else []) for i, number in enumerate(numbers)]


def test_each_kind_of_kernel_is_looped_once_in_isolation():
    machine = Machine({1: (put(0, 5), 10 * MICRO), 2: (put(1, 6), 100 * MICRO)}, *chain(1, 2, 1, 2))
    assert machine.replay() == []
    first, second = machine.loops()  # those that take most of the pass first
    assert set(first) == {2} and set(second) == {1}
    assert len(first) == pytest.approx(40, abs=1) and len(second) == pytest.approx(400, abs=1)
    assert machine.replay(call=Call()) == [] and len(machine.loops()) == 2  # in a second pass, too
    assert machine.every_node == [1, 0, 1, 0]
    assert machine.driver.alive == machine.before


def test_each_size_of_a_kernel_is_looped_once_in_isolation():
    work = {1: (put(0, 5), 10 * MICRO), 101: (put(1, 6), 30 * MICRO), 201: (put(2, 7), 10.4 * MICRO)}
    machine = Machine(work, *chain(1, 101, 201, 1, 101))
    assert machine.replay() == []
    first, second = machine.loops()
    assert set(first) == {101} and set(second) == {1}
    assert len(first) == pytest.approx(133, abs=1)
    assert machine.replay(call=Call()) == [] and len(machine.loops()) == 2  # in a second pass, too


def test_sizes_of_a_kernel_are_bounded():
    work = {n * 100 + 1: (put(0, 5), 2**n * MICRO) for n in range(10)}
    machine = Machine(work, *chain(*work))
    assert machine.replay() == []
    assert len(machine.loops()) == 6
    slow = {1: (put(0, 5), 1.0), 101: (put(0, 5), 2.0)}  # it takes long to time them
    machine = Machine(slow, *chain(*slow))
    assert machine.replay() == []
    assert [set(loop) for loop in machine.loops()] == [{1}]


def test_loops_last_the_requested_time_and_run_nothing_else():
    machine = Machine({1: (put(0, 5), 10 * MICRO)}, *chain(1))
    machine.replay(seconds=0.3)
    (ran,) = [launches for layer, _, launches in machine.reported if layer >= 0]
    # Half of it, because pauses are as long.
    assert sum(len(launch) for launch in ran) * 10 * MICRO == pytest.approx(0.15, abs=0.02)
    assert machine.reported[-1][0] == -1.0  # what comes after is no replay of this kernel


def test_a_kernel_reads_the_data_of_the_pass():
    seen = set()
    work = {1: (put(0, 5), MICRO), 2: (lambda memory: seen.add(memory[0]), MICRO), 3: (put(0, 9), MICRO)}
    machine = Machine(work, *chain(1, 3, 1, 2, 3))
    assert machine.replay() == []
    assert seen == {5}
    assert set(machine.loops()[2]) == {2}


def products(**more):
    """Three products of one size that stream their weights, and kernels between them."""
    work = {n * 100 + 50: (put(n, 5), (10 * MICRO, 6 * MICRO)) for n in range(3)}
    return Machine({**work, 1: (put(5, 1), MICRO), **more}, *chain(50, 1, 150, 1, 250))


def test_matrix_products_run_in_turn_so_that_caches_do_not_speed_them_up():
    machine = products()
    assert machine.replay() == []
    first, second = machine.loops()
    assert first[:6] == [50, 150, 250, 50, 150, 250] and set(second) == {1}
    assert len(first) == pytest.approx(400, abs=3)  # of 10 us each


def test_products_that_caches_do_not_speed_up_keep_their_inputs():
    work = {n * 100 + 50: (put(n, 5), 10 * MICRO) for n in range(3)}
    machine = Machine(work, *chain(*work))
    assert machine.replay() == [] and [set(loop) for loop in machine.loops()] == [{50}]


def test_products_that_would_change_each_others_inputs_run_alone():
    machine = Machine({50: (add(0, 1), (10 * MICRO, 6 * MICRO)), 150: (put(1, 2), (10 * MICRO, 6 * MICRO))},
                      *chain(150, 50))
    assert machine.replay() == [] and [set(loop) for loop in machine.loops()] == [{150}]


def test_loops_are_shorter_where_time_is_short():
    machine = Machine({n: (put(n % 8, 1), 10 * MICRO) for n in range(1, 9)}, *chain(*range(1, 9)))
    assert machine.replay(seconds=1, end=machine.clock.now + 6) == []
    assert len(machine.loops()) == 8


def test_loops_are_repeated_without_the_timing():
    seen = set()
    work = {1: (put(0, 5), 10 * MICRO), 101: (put(0, 6), 30 * MICRO),
            2: (lambda memory: seen.add(memory[0]), 10 * MICRO), 3: (add(1, 0), MICRO)}
    machine = Machine(work, *chain(1, 2, 101, 3), keep=True)
    first = machine.clock.now
    machine.replay(seconds=0.4)
    first = machine.clock.now - first
    took, loops = machine.again(seconds=0.4)
    assert loops == [{101}, {1}, {2}] and seen == {5}
    assert 3 * 0.4 <= took < first
    assert machine.again(seconds=0.8, end=machine.clock.now + 1.5)[1] == [{101}]
    assert machine.every_node == [1, 0] * 3 and machine.reported[-1][0] == -1.0
    machine.driver.refuse = ("cuGraphLaunch",)
    machine.again(seconds=0.4)
    assert "kernels of Net: cuGraphLaunch failed with status 801" in machine.kinds.failed


def test_memsets_before_a_kernel_run_with_it():
    work = {1: (put(0, 5), MICRO), 2: (put(2, 0), MICRO), 3: (semaphore, MICRO)}
    machine = Machine(work, (0, 1, []), (2, 2, [0]), (0, 3, [1]))
    assert machine.replay() == []
    assert [2, 3, 2, 3] in [loop[:4] for loop in machine.loops()]


def waiting(machine):
    """A kernel that goes on for ever unless its counter was cleared."""
    def run(memory):
        machine.driver.waits = memory[2] != 0
        memory[2] = 1

    return run


@pytest.mark.parametrize("clears", [2, 9])
def test_what_clears_a_kernels_counters_runs_with_it(clears):
    counter = fake.CLEARED + clears
    machine = Machine({1: (put(0, 5), MICRO), clears: (put(2, 0), MICRO), 3: (None, MICRO), 4: (put(5, 1), MICRO)},
                      (2 if clears == 2 else 0, clears, []), (0, 1, [0]), (0, 3, [1]), (0, 4, [2]),
                      uses={clears: [counter], 1: [counter + 1], 3: [counter], 4: [counter]})
    machine.driver.work[3] = (waiting(machine), MICRO)
    assert machine.replay() == []
    assert [clears, 3, clears, 3] in [loop[:4] for loop in machine.loops()]
    assert [4, 4] in [loop[:2] for loop in machine.loops()]  # it was not the first to use that memory


def test_a_kernel_that_does_not_end_stops_the_re_runs_and_nothing_is_freed():
    machine = Machine({1: (put(0, 5), 2 * MICRO), 3: (None, MICRO), 4: (put(1, 1), MICRO)}, *chain(1, 3, 4), keep=True)
    machine.driver.work[3] = (waiting(machine), MICRO)
    assert machine.replay() == [
        "kernels of Net: add did not end within 5 s without those before it; nothing else was re-run"]
    assert machine.kinds.stuck and machine.loops() == [] and machine.every_node == [1, 0]
    assert machine.driver.alive != machine.before  # destroying graphs that run would wait
    assert machine.again(seconds=0.4) == (0.0, [])


def test_a_kernel_that_changes_what_it_reads_is_left_out():
    machine = Machine({1: (put(0, 5), MICRO), 2: (add(1, 0), MICRO)}, *chain(1, 2))
    assert machine.replay() == ["1 kernels that change what they read"]
    assert [set(loop) for loop in machine.loops()] == [{1}]


def test_kernels_without_time_left_are_counted():
    machine = Machine({n: (put(n, 1), 10 * MICRO) for n in range(1, 6)}, *chain(1, 2, 3, 4, 5))
    assert machine.replay(seconds=1, end=machine.clock.now + 0.6) == [
        "3 kernels, for which there was no time left"]
    assert len(machine.loops()) == 2


def test_a_pass_that_cannot_be_captured_is_named():
    machine = Machine({1: (put(0, 5), MICRO)}, *chain(1))

    class Syncs(Call):
        def __call__(self):
            raise RuntimeError("operation not permitted when stream is capturing\nhint: none")

    assert machine.replay(call=Syncs()) == [
        "kernels of Net: operation not permitted when stream is capturing"]
    assert machine.replay(call=Call(devices=("cuda:0", "cuda:1")))[1:] == [
        "kernels of Net: it runs on more than one GPU"]
    assert machine.loops() == [] and machine.every_node == [1, 0]


@pytest.mark.parametrize("function", ["cuGraphClone", "cuGraphInstantiateWithFlags", "cuGraphLaunch",
                                      "cuGraphAddKernelNode_v2", "cuGraphGetNodes"])
def test_an_error_of_the_driver_is_named_and_all_graphs_are_destroyed(function):
    machine = Machine({1: (put(0, 5), MICRO)}, *chain(1))
    machine.driver.refuse = (function,)
    assert machine.replay() == [f"kernels of Net: {function} failed with status 801"]
    assert machine.driver.alive == machine.before and machine.every_node == [1, 0]
