"""Which windows of a monitor are marked on the GPU."""

import os
import sys

import pytest

from marks_cases import MS, Host


def test_the_monitor_uses_marks_where_torch_does(gpu, monkeypatch):
    with gpu.window("before") as before:
        pass
    torch = Host.torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    with gpu.window("x") as w:
        torch.cuda.launch(80 * MS)
    with gpu.window("y", sync_execution=True) as synchronised:
        pass
    with gpu.window("y", sync_execution=False) as host:
        pass
    assert [e.energy.edges for e in (before, w, synchronised, host)] == [
        "host", "device", "synchronised", "host"]
    assert torch.cuda.synchronised == [0, 0]
    assert 0.08 <= w.time < 0.2
    e = w.energy["gpu0"]
    assert e.low <= 250 * w.time <= e.high
    assert gpu.total("x").count == 1
    assert [gpu.total(name).edges for name in ("before", "x", "y")] == ["host", "device", "mixed"]


def test_nothing_to_wait_for_is_no_synchronisation(gpu):
    with gpu.window("x", sync_execution=True) as w:
        pass
    assert w.energy.edges == "host"


def test_torch_without_cuda_in_use_is_left_alone(gpu, monkeypatch):
    torch = Host.torch()
    torch.cuda.initialised = False
    monkeypatch.setitem(sys.modules, "torch", torch)
    with gpu.window("x") as w:
        pass
    assert w.energy.edges == "host" and torch.cuda.made == 0


def test_an_error_in_the_window_does_not_touch_the_device(gpu, monkeypatch):
    torch = Host.torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    with pytest.raises(ZeroDivisionError):
        with gpu.window("x") as w:
            made = torch.cuda.made
            raise ZeroDivisionError
    assert torch.cuda.made == made
    assert w.energy.edges == "host"


def test_cuda_false_means_the_hosts_edges(machine, monkeypatch):
    from conftest import CONSTANT

    monkeypatch.setitem(sys.modules, "torch", Host.torch())
    monitor = machine.gpus(CONSTANT).monitor("gpu0", cuda=False)
    with monitor.window("x") as w:
        pass
    assert w.energy.edges == "host"


def test_a_forked_child_leaves_the_device_alone(gpu, monkeypatch):
    torch = Host.torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    with gpu.window("x"):
        pass
    made = torch.cuda.made
    child = os.fork()
    if child == 0:
        with gpu.window("x") as w:
            pass
        os._exit(0 if torch.cuda.made == made and w.edges == "host" else 1)
    assert os.waitpid(child, 0)[1] == 0
