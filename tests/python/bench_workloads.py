"""Workloads that tests of `jouleprof bench` name; they need no PyTorch."""

import time


def short(batch, seed=0):
    """A callable whose iteration takes a millisecond for each sample."""
    assert seed == 7

    def step():
        time.sleep(1e-3 * batch)

    print("talk of the workload")  # does not belong to the data on stdout
    return step


def no_callable():
    return 5


def failing(batch):
    if batch > 1:
        raise ValueError("broken on purpose")
    return lambda: time.sleep(1e-3)
