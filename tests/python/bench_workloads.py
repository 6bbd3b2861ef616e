"""Workloads that tests of `jouleprof bench` name; they need no PyTorch."""

import ctypes
import os
import time


def short(batch, seed=0):
    """A callable whose iteration takes a millisecond for each sample."""
    assert seed == 7

    def step():
        time.sleep(1e-3 * batch)

    print("talk of the workload")  # does not belong to the data on stdout
    return step


def coroutine():
    async def step():
        time.sleep(1e-3)

    return step


def generator():
    def step():
        yield time.sleep(1e-3)

    return step


def no_callable():
    return 5


def failing(batch):
    if batch > 1:
        raise ValueError("broken on purpose")
    return lambda: time.sleep(1e-3)


def unlimited():
    return lambda: time.sleep(0.02)


def limited(device):
    """An iteration that a simulated GPU's settings slow. Its construction takes a second."""
    assert device == "cuda:0"
    sim = ctypes.CDLL(os.environ["JOULEPROF_NVML_LIBRARY"])
    sim.nvmlInit_v2()
    sim.jouleprof_nvml_sim_speed_ratio.restype = ctypes.c_double
    time.sleep(1)
    return lambda: time.sleep(0.02 / sim.jouleprof_nvml_sim_speed_ratio(0))


def server(batch):
    """A serving loop whose requests have 1, 2, ... tokens; each step is 20 ms."""
    def serve():
        waiting, running = list(range(6 * batch)), {}
        while waiting or running:
            while waiting and len(running) < batch:
                request = waiting.pop(0)
                running[request] = 1 + request % 5
            time.sleep(0.02)
            step = []
            for request in list(running):
                running[request] -= 1
                step.append((request, 1, running[request] == 0))
                if running[request] == 0:
                    del running[request]
            yield step

    return 6 * batch, serve()


def short_server(batch):
    return 4 * batch, iter([[(0, 1, False)]])
