"""What tests of marks on a fake GPU share."""

from fake_torch import Clock, FakeTorch
from jouleprof._live.marks import Marker

MS = 1_000_000


def marker_on(torch):
    """A Marker whose windows land in its list `added`, as (begin, end, name)."""
    marker = Marker(torch, lambda *window: marker.added.append(window), torch.cuda.clock.now)
    marker.added = []
    return marker


def near(a, b, tolerance=30_000):
    return abs(a - b) <= tolerance


class Host:
    """A device on the host's own clock, for the monitor's windows."""

    @staticmethod
    def torch():
        import jouleprof

        class Now(Clock):
            host = property(lambda self: jouleprof.now(), lambda self, value: None)

            def now(self):
                return jouleprof.now()

            def device(self, host):
                return host - 5e9

            def wait_until(self, host):
                while jouleprof.now() < host:
                    pass

        return FakeTorch(Now())
