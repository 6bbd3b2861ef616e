"""Edges on the GPU's timeline, with a device whose clock is off and drifts."""

import collections
import threading

import pytest

from fake_torch import Clock, FakeTorch, FakeTorchWithCore
from jouleprof._live.marks import Marker
from marks_cases import MS, marker_on, near


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=[FakeTorch, FakeTorchWithCore])
def torch(request, clock):
    return request.param(clock)


@pytest.fixture
def marker(torch):
    return marker_on(torch)


def test_a_window_is_where_the_device_was(marker, torch, clock):
    torch.cuda.launch(40 * MS)  # still at work when the window begins
    began = clock.host
    stretch = marker.begin(7)
    torch.cuda.launch(25 * MS)
    assert marker.end(stretch)
    assert clock.host - began < MS  # nobody waited
    begin, end = marker.edges(stretch)
    assert near(begin, began + 40 * MS) and near(end, began + 65 * MS)
    assert marker.added == [(begin, end, 7)]


def test_a_window_without_gpu_work_keeps_the_hosts_edges(marker, clock):
    began = clock.host
    stretch = marker.begin(1)
    clock.host += 30 * MS
    marker.end(stretch)
    begin, end = marker.edges(stretch)
    assert near(begin, began) and near(end, began + 30 * MS)
    assert begin >= began


@pytest.mark.parametrize("hours", [0.1, 3])
def test_drift_does_not_add_up(marker, torch, clock, hours):
    """50 ppm of three hours would be half a second."""
    stretch = marker.begin(1)
    first = clock.host
    clock.host += int(hours * 3600e9)
    torch.cuda.launch(10 * MS)
    last = clock.host
    marker.end(stretch)
    begin, end = marker.edges(stretch)
    assert near(begin, first)
    assert near(end, last + 10 * MS, 1 * MS)  # float32 of hours
    inner = marker.begin(2)
    torch.cuda.launch(10 * MS)
    marker.end(inner)
    begin, end = marker.edges(inner)
    assert near(end - begin, 10 * MS)


def test_completed_windows_are_handed_over_without_being_asked_for(marker, torch, clock):
    for _ in range(1000):
        stretch = marker.begin(3)
        torch.cuda.launch(MS)
        marker.end(stretch)
        clock.host += 10 * MS
    assert len(marker.added) >= 960
    assert torch.cuda.made < 200  # events are used again
    assert all(near(end - begin, MS) for begin, end, _ in marker.added)
    ends = [end for _, end, _ in marker.added]
    assert ends == sorted(ends)


def test_each_window_is_handed_over_once(marker, torch, clock):
    stretches = []
    for _ in range(10):
        stretches.append(marker.begin(3))
        torch.cuda.launch(MS)
        marker.end(stretches[-1])
    for stretch in reversed(stretches):
        marker.edges(stretch)
    marker.settle_completed()
    assert len(marker.added) == 10


def test_nothing_is_marked_while_a_graph_is_captured(marker, torch):
    torch.cuda.capturing = True
    assert marker.begin(1) is None
    torch.cuda.capturing = False
    stretch = marker.begin(1)
    torch.cuda.capturing = True
    assert not marker.end(stretch)


def test_work_that_never_ends_holds_up_nobody(marker, torch, clock):
    torch.cuda.launch(10**15)
    before = clock.host
    for _ in range(200):
        marker.end(marker.begin(1))
    assert clock.host - before < 10 * MS
    assert marker.added == []


def test_marks_of_one_stream_are_asked_for_together(clock):
    torch = FakeTorchWithCore(clock)
    marker = marker_on(torch)
    for _ in range(1000):
        stretch = marker.begin(3)
        torch.cuda.launch(MS)
        marker.end(stretch)
        clock.host += 10 * MS
    assert len(marker.added) >= 960
    assert torch.cuda.queries < 500


def test_a_device_that_is_far_behind_is_not_asked_at_each_window(clock):
    torch = FakeTorchWithCore(clock)
    marker = marker_on(torch)
    torch.cuda.launch(10**15)
    for _ in range(1000):
        marker.end(marker.begin(1))
    assert torch.cuda.queries < 300


@pytest.mark.parametrize("passed", [0, 1, 2, 29, 30])
def test_all_that_is_passed_is_handed_over_and_no_more(clock, passed):
    torch = FakeTorchWithCore(clock)
    marker = marker_on(torch)
    for number in range(30):
        if number == passed:
            torch.cuda.launch(10**15)
        marker.end(marker.begin(number))
    marker.settle_completed()
    assert [number for _, _, number in marker.added] == list(range(passed))
    assert torch.cuda.queries < 10


def test_a_window_may_end_on_another_stream(torch, clock):
    marker = marker_on(torch)
    quick, slow = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.use(slow)
    torch.cuda.launch(40 * MS)
    began = clock.host
    stretch = marker.begin(1)
    torch.cuda.use(quick)
    torch.cuda.launch(10 * MS)
    marker.end(stretch)
    clock.host += 20 * MS
    marker.settle_completed()
    assert marker.added == []
    begin, end = marker.edges(stretch)
    assert near(begin, began + 40 * MS) and end == begin  # its end was passed first


def test_a_mark_may_be_settled_as_soon_as_it_is_pending(marker):
    class Impatient(collections.deque):
        """As if another thread settled at this very moment."""

        def append(self, mark):
            super().append(mark)
            marker.settle_completed()

    marker._pending = Impatient()
    for number in range(3):
        marker.end(marker.begin(number))
    assert [number for _, _, number in marker.added] == [0, 1, 2]


def test_threads_keep_the_order_of_a_stream_that_they_share(clock, monkeypatch):
    """Else the last mark is passed, and one before it is not."""
    torch = FakeTorchWithCore(clock)
    marker = marker_on(torch)
    marker.end(marker.begin(0))
    clock.host += MS
    event = torch._C._CudaEventBase
    record = event.record
    other = threading.Thread(target=lambda: marker.begin(2))

    def record_slowly(self, stream):
        record(self, stream)
        monkeypatch.setattr(event, "record", record)
        torch.cuda.launch(10**15)
        other.start()
        other.join(0.2)  # it gets no further than to the stream

    monkeypatch.setattr(event, "record", record_slowly)
    marker.begin(1)
    other.join()
    marker.settle_completed()
    assert len(marker.added) == 1


def test_cudas_error_is_the_callers_and_the_window_is_not_lost(marker, torch):
    stretch = marker.begin(1)
    marker.end(stretch)
    torch.cuda.failures = 1
    with pytest.raises(RuntimeError, match="CUDA error"):
        marker.settle_completed()
    marker.settle_completed()
    assert marker.added == [(*marker.edges(stretch), 1)]


def test_without_a_streams_handle_torch_finds_the_stream(clock):
    torch = FakeTorchWithCore(clock)
    del torch._C._cuda_getCurrentRawStream
    marker = marker_on(torch)
    torch.cuda.use(torch.cuda.Stream())
    began = clock.host
    stretch = marker.begin(1)
    torch.cuda.launch(25 * MS)
    marker.end(stretch)
    begin, end = marker.edges(stretch)
    assert near(begin, began) and near(end, began + 25 * MS)


def test_a_stream_that_is_done_says_nothing_of_another(clock):
    torch = FakeTorchWithCore(clock)
    marker = marker_on(torch)
    quick, slow = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.use(slow)
    torch.cuda.launch(10**15)
    waiting = marker.begin(1)
    marker.end(waiting)
    torch.cuda.use(quick)
    for _ in range(20):
        marker.end(marker.begin(2))
    before = clock.host
    marker.settle_completed()
    assert marker.added == [] and clock.host - before < 10 * MS
    clock.host += 2 * 10**15
    marker.settle_completed()
    assert len(marker.added) == 21


def test_a_device_that_is_not_measured_is_not_marked(torch, clock):
    assert Marker(torch, print, clock.now, devices=[1]).begin(1) is None
