"""What tests of marks on a fake GPU share."""

from jouleprof._marks import Marker

MS = 1_000_000


def marker_on(torch):
    """A Marker whose windows land in its list `added`, as (begin, end, name)."""
    marker = Marker(torch, lambda *window: marker.added.append(window), torch.cuda.clock.now)
    marker.added = []
    return marker


def near(a, b, tolerance=30_000):
    return abs(a - b) <= tolerance
