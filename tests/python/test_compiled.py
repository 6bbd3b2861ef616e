"""Windows inside functions that torch.compile compiles."""

import warnings

import pytest

import jouleprof

torch = pytest.importorskip("torch", reason="the Python module torch is missing (pip install torch)")


@pytest.fixture
def compiled():
    """Compiles a function whole, and counts the graphs."""
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    def compile(function):
        torch._dynamo.reset()
        return torch.compile(function, backend=backend, fullgraph=True)

    return compile, graphs


def around(monitor):
    def function(x):
        with monitor.window("inner"):
            y = x * 2
        return y + 1

    return function


def by_key(monitor):
    def function(x):
        monitor.begin_window("inner")
        y = x * 2
        monitor.end_window("inner")
        return y + 1

    return function


def on_stack(monitor):
    def function(x):
        monitor.push_window()
        y = x * 2
        monitor.pop_window()
        return y + 1

    return function


def decorated(monitor):
    @monitor.measure("inner")
    def function(x):
        return x * 2 + 1

    return function


@pytest.mark.parametrize("make", [around, by_key, on_stack, decorated])
def test_a_window_inside_leaves_the_graph_whole(gpu, compiled, make):
    compile, graphs = compiled
    function = compile(make(gpu))
    with pytest.warns(RuntimeWarning, match="inside a function that torch.compile compiles"):
        assert function(torch.ones(3)).tolist() == [3, 3, 3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for size in (3, 3):
            function(torch.ones(size))
    assert len(graphs) == 1
    with pytest.raises(jouleprof.NotFound):
        gpu.total("inner")


def test_the_default_monitor_is_not_opened_for_it(machine, compiled):
    compile, graphs = compiled
    from jouleprof._live import default

    def function(x):
        with jouleprof.window("inner") as inside:
            y = x * 2
        return y, inside

    with pytest.warns(RuntimeWarning):
        _, inside = compile(function)(torch.ones(3))
    assert default._monitor is None and len(graphs) == 1
    with pytest.raises(jouleprof.Unavailable, match="around the call of the function"):
        inside.energy


def test_a_window_around_it_has_its_energy(gpu, compiled):
    compile, _ = compiled
    function = compile(lambda x: x * 2)
    with gpu.window("outer") as outer:
        function(torch.ones(3))
    assert outer.energy["gpu0"].joules > 0
