"""Loaders and decorated functions."""

import asyncio
import functools
import time

import jouleprof
import pytest


def test_steps_and_epochs(gpu):
    loader = [1, 2, 3]
    steps = gpu.steps(loader)
    assert len(steps) == 3
    for _ in range(2):
        seen = []
        for batch in steps:
            seen.append(batch)
            time.sleep(0.01)
        assert seen == loader
    total = gpu.total("step")
    assert total.count == 6
    assert gpu.total("epoch").count == len(steps.epochs) == 2
    epochs = sum(e.time for e in steps.epochs)
    assert 0.06 <= total.time <= epochs  # steps fill their epoch
    assert steps.step.time >= 0.01
    assert steps.epoch is steps.epochs[-1]
    assert steps.epoch.energy["gpu0"].joules == pytest.approx(250 * steps.epoch.time, rel=0.1)


def test_a_step_includes_the_wait_for_its_batch(gpu):
    def slow():
        for i in range(2):
            time.sleep(0.05)
            yield i

    for _ in gpu.steps(slow(), name="slow", epoch=None):
        pass
    assert gpu.total("slow").time >= 0.1


def test_leaving_a_loop_early(gpu):
    steps = gpu.steps(range(10))
    for i in steps:
        if i == 2:
            break
    assert gpu.total("step").count == 3
    assert len(steps.epochs) == 1
    with pytest.raises(ZeroDivisionError):
        for _ in steps:
            raise ZeroDivisionError
    assert gpu.total("step").count == 4
    assert len(steps.epochs) == 2


def test_decorated(gpu):
    @gpu.measure("f")
    def add(a, b=1):
        """Adds."""
        return a + b

    assert add(1, b=2) == 3 and add(5) == 6
    assert (add.__name__, add.__doc__) == ("add", "Adds.")
    assert gpu.total("f").count == 2


def test_decorated_generator(gpu):
    @gpu.measure("g")
    def numbers():
        yield 1
        return (yield 2)

    assert list(numbers()) == [1, 2]
    assert gpu.total("g").count == 1


def test_decorated_asynchronous_generator(gpu):
    @gpu.measure("g")
    async def numbers():
        for i in range(3):
            yield i

    async def main():
        return [i async for i in numbers()]

    assert asyncio.run(main()) == [0, 1, 2]
    assert gpu.total("g").count == 1


@pytest.mark.parametrize("measured", [False, True])
def test_an_asynchronous_generator_gets_what_is_sent_to_it(gpu, measured):
    seen = []

    async def echo():
        got = None
        try:
            while True:
                try:
                    got = yield got
                except ValueError:
                    got = "handled"
                except KeyError:
                    return
        finally:
            await asyncio.sleep(0)
            seen.append("closed")

    made = gpu.measure("g")(echo) if measured else echo

    async def main():
        for ends in (lambda it: it.aclose(), lambda it: it.athrow(KeyError("end")), lambda it: it.athrow(OSError("end"))):
            it = made()
            await it.asend(None)
            seen.append([await it.asend("hello"), await it.athrow(ValueError("x")), await it.__anext__()])
            try:
                await ends(it)
            except (StopAsyncIteration, OSError) as error:
                seen.append(type(error))

    asyncio.run(main())
    got = ["hello", "handled", None]
    assert seen == [got, "closed", got, "closed", StopAsyncIteration, got, "closed", OSError]


def test_decorated_objects(gpu):
    """Whose call is asynchronous, or a generator; a class is called to make an object."""
    class Coroutine:
        async def __call__(self):
            await asyncio.sleep(0.1)

    class Generator:
        def __call__(self):
            time.sleep(0.1)
            yield 1

    class Asynchronous:
        async def __call__(self):
            await asyncio.sleep(0.1)
            yield 1

    async def drain(items):
        return [item async for item in items]

    asyncio.run(gpu.measure("coroutine")(Coroutine())())
    assert list(gpu.measure("generator")(Generator())()) == [1]
    assert asyncio.run(drain(gpu.measure("asynchronous")(Asynchronous())())) == [1]
    for name in ("coroutine", "generator", "asynchronous"):
        assert gpu.total(name).time >= 0.1, name
    assert isinstance(gpu.measure("class")(Coroutine)(), Coroutine)


@pytest.mark.parametrize("bare", [False, True])
def test_a_plain_function_whose_work_comes_after_its_call_warns(gpu, bare):
    """The decorator cannot know it before, and its window has a few microseconds."""
    async def work():
        await asyncio.sleep(0)
        return 3

    async def numbers():
        yield 1

    results = {"coroutine": work, "generator": lambda: (i for i in range(3)), "async generator": numbers}
    for kind, make in results.items():
        def plain():
            return make()

        decorated = gpu.measure(plain) if bare else gpu.measure("late")(plain)
        with pytest.warns(RuntimeWarning, match=f"'plain' returned a {kind}, and its call only was measured") as heard:
            result = decorated()
        assert [warning.filename for warning in heard] == [__file__]
        if kind == "coroutine":
            assert asyncio.run(result) == 3


def test_properties_are_measured_below_their_decorator(gpu):
    for kind in (property, functools.cached_property):
        for measure in (gpu.measure, gpu.measure("name")):
            with pytest.raises(jouleprof.InvalidArgument, match=f"write it below @{kind.__name__}"):
                measure(kind(len))
