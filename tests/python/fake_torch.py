"""As much of torch as the package uses, on a device whose clock is not the host's.

Work is a length of device time on a stream. Time stands still unless a test advances it, or
somebody waits for the device.
"""

import struct
import types


class Clock:
    """The host's clock, which the package is given, and the device's beside it."""

    def __init__(self, offset=5_000_000_000, drift=50e-6, start=1_000_000_000_000):
        self.host = start
        self._start = start
        self._offset = offset
        self._rate = 1 + drift

    def now(self):
        self.host += 1_000  # a look at the clock takes a microsecond
        return self.host

    def device(self, host):
        return self._offset + (host - self._start) * self._rate

    def wait_until(self, host):
        self.host = max(self.host, host)


class FakeTorch(types.ModuleType):
    def __init__(self, clock):
        super().__init__("torch")
        self.cuda = _Cuda(clock)


class FakeTorchWithCore(FakeTorch):
    """One with the functions in C that a real one has under its Python."""

    def __init__(self, clock):
        super().__init__(clock)
        self._C = types.SimpleNamespace(
            _cuda_isCurrentStreamCapturing=lambda: self.cuda.capturing,
            _cuda_getDevice=lambda: 0,
            _cuda_getCurrentRawStream=lambda device: id(self.cuda._current),
            _CudaEventBase=self.cuda.EventBase)


class _Cuda:
    def __init__(self, clock):
        self.clock = clock
        self.initialised = True
        self.available = True
        self.capturing = False
        self.made = 0  # events
        self.recorded = 0
        self.queries = 0
        self.failures = 0  # of the next looks at elapsed time
        self.synchronised = []
        self._current = _Stream()
        cuda = self

        class EventBase:
            def __init__(self, enable_timing=False):
                assert enable_timing
                cuda.made += 1
                self.passed_at = None  # host time

            def record(self, stream):
                cuda.recorded += 1
                self.passed_at = stream.reached(clock.host)

            def query(self):
                cuda.queries += 1
                return clock.host >= self.passed_at

            def synchronize(self):
                clock.wait_until(self.passed_at)

            def elapsed_time(self, other):
                if cuda.failures > 0:
                    cuda.failures -= 1
                    raise RuntimeError("CUDA error: unspecified launch failure")
                assert clock.host >= max(self.passed_at, other.passed_at)
                milliseconds = (clock.device(other.passed_at) - clock.device(self.passed_at)) / 1e6
                return struct.unpack("f", struct.pack("f", milliseconds))[0]

        class Event(EventBase):
            def record(self, stream=None):
                super().record(stream or cuda._current)

        self.EventBase = EventBase
        self.Event = Event

    def Stream(self, device=None):
        return _Stream()

    def current_stream(self, device=None):
        return self._current

    def use(self, stream):
        """Makes it the current one."""
        self._current = stream

    def is_initialized(self):
        return self.initialised

    def is_available(self):
        return self.available

    def is_current_stream_capturing(self):
        return self.capturing

    def current_device(self):
        return 0

    def synchronize(self, device=None):
        self.synchronised.append(device)
        self.clock.wait_until(self._current.busy_until)

    def launch(self, nanoseconds):
        """Work put into the current stream."""
        self._current.busy_until = self._current.reached(self.clock.host) + nanoseconds


class _Stream:
    def __init__(self):
        self.busy_until = 0

    def reached(self, host):
        return max(self.busy_until, host)
