"""Work for the GPU: an fp32 matrix product, repeated. Without CUDA it sleeps, which tries the script out."""

import time


class Products:
    def __init__(self, size=2048):
        import torch

        self.torch = torch
        self.a = torch.randn(size, size, device="cuda")
        self.b = torch.randn(size, size, device="cuda")
        self.out = torch.empty_like(self.a)
        self.repeat(200)
        self.wait()
        begin = time.perf_counter()
        self.repeat(2000)
        self.wait()
        self.seconds = (time.perf_counter() - begin) / 2000  # of one repetition

    def repeat(self, n):
        for _ in range(n):
            self.torch.mm(self.a, self.b, out=self.out)

    def wait(self):
        self.torch.cuda.synchronize()


class Sleeps:
    seconds = 340e-6

    def repeat(self, n):
        time.sleep(n * self.seconds)

    def wait(self):
        pass


def load():
    try:
        import torch

        return Products() if torch.cuda.is_available() else Sleeps()
    except ImportError:
        return Sleeps()


def busy(work, seconds):
    """Works without a pause; returns the repetitions."""
    end, count = time.perf_counter() + seconds, 0
    chunk = max(1, int(0.02 / work.seconds))
    while time.perf_counter() < end:
        work.repeat(chunk)
        work.wait()
        count += chunk
    return count


def square(work, seconds, on=0.03, off=0.07):
    """A square wave: `on` seconds of work in each `on` + `off`."""
    end, count = time.perf_counter() + seconds, 0
    n = max(1, round(on / work.seconds))
    while time.perf_counter() < end:
        begin = time.perf_counter()
        work.repeat(n)
        work.wait()
        count += n
        time.sleep(max(0.0, on + off - (time.perf_counter() - begin)))
    return count
