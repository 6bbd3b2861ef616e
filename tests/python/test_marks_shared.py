"""Windows that follow one another at once: one mark ends the first and begins the second."""

import pytest

from fake_torch import Clock, FakeTorchWithCore
from marks_cases import MS, marker_on, near


@pytest.fixture
def torch():
    return FakeTorchWithCore(Clock())


@pytest.fixture
def clock(torch):
    return torch.cuda.clock


def test_in_a_loop_a_window_begins_at_the_mark_of_the_last_ones_end(torch, clock):
    marker = marker_on(torch)
    for number in range(100):
        stretch = marker.begin(number)
        torch.cuda.launch(MS)
        clock.host += 100_000  # launching takes time
        marker.end(stretch)
    references = torch.cuda.recorded - 101
    assert 1 <= references <= 5
    marker.edges(stretch)
    marker.settle_completed()
    assert len(marker.added) == 100
    assert all(near(end - begin, MS, 2_000) for begin, end, _ in marker.added)
    assert all(a[1] == b[0] for a, b in zip(marker.added, marker.added[1:]))


@pytest.mark.parametrize("settled", [False, True])
def test_work_between_two_windows_is_in_neither(torch, clock, settled):
    marker = marker_on(torch)
    for number in range(10):
        stretch = marker.begin(number)
        torch.cuda.launch(2 * MS)
        clock.host += 2 * MS
        marker.end(stretch)
        if settled:
            marker.edges(stretch)
        torch.cuda.launch(MS)
        clock.host += 5_000  # no launch takes less
    marker.edges(stretch)
    marker.settle_completed()
    assert sorted(number for _, _, number in marker.added) == list(range(10))
    assert all(near(end - begin, 2 * MS) for begin, end, _ in marker.added)


def test_a_shared_mark_is_settled_once_whoever_asks_first(torch, clock):
    marker = marker_on(torch)
    first = marker.begin(1)
    torch.cuda.launch(MS)
    clock.host += 100_000
    marker.end(first)
    second = marker.begin(2)
    torch.cuda.launch(3 * MS)
    clock.host += 100_000
    marker.end(second)
    made = torch.cuda.made
    assert marker.edges(second)[0] == marker.edges(first)[1]
    assert sorted(number for _, _, number in marker.added) == [1, 2]
    clock.host += MS
    for _ in range(3):  # each of the three events can be used again, once
        marker.begin(3)
        clock.host += MS
    assert torch.cuda.made == made
    marker.begin(4)
    assert torch.cuda.made == made + 1


def test_marks_of_two_streams_are_not_one(torch, clock):
    marker = marker_on(torch)
    busy, idle = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.use(busy)
    torch.cuda.launch(40 * MS)
    marker.end(marker.begin(1))
    torch.cuda.use(idle)
    began = clock.host
    stretch = marker.begin(2)
    marker.end(stretch)
    assert near(marker.edges(stretch)[0], began)
