"""The real frameworks, on the CPU, where they are installed."""

import importlib.util
import os
import subprocess
import sys

import pytest

from conftest import CONSTANT


def needs(*names):
    for name in names:
        try:
            found = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            found = False
        if not found:
            pytest.skip(f"the Python module {name} is missing (pip install {name})")


RANK = """
import json, os, sys
import torch.distributed as distributed
import jouleprof
distributed.init_process_group("gloo")
monitor = jouleprof.Monitor("rank")
with monitor.window("x") as w:
    __import__("time").sleep(0.1)
both = monitor.sum_over_ranks(w)
alone = w.energy
print(json.dumps([both.gpu_energy, both["package-0"].joules, both.total.microjoules,
                  alone.gpu_energy, both.total.provenance]))
distributed.destroy_process_group()
"""


def test_two_ranks(machine):
    import json
    import socket

    needs("torch")
    machine.gpus(CONSTANT, {**CONSTANT, "idle_watts": 400})
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK], stdout=subprocess.PIPE, text=True, env={
            **os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        for rank in (0, 1)]
    answers = [json.loads(rank.communicate(timeout=120)[0].splitlines()[-1]) for rank in ranks]
    (gpus, package, total, first, provenance), (_, _, same_total, second, _) = answers
    assert gpus == {**first, **second} and set(gpus) == {"0", "1"}
    assert package > 0 and total == same_total
    assert provenance == "simulated"


# The products take a good part of a second; JAX returns at once.
JAX = """
import json
import jax
import jouleprof
size = 600
work = jax.jit(lambda x: jax.lax.fori_loop(0, 200, lambda i, y: y @ x / size, x))
x = jax.numpy.ones((size, size))
work(x).block_until_ready()
monitor = jouleprof.Monitor("gpu0")
with monitor.window("waited", sync_execution=True) as waited:
    result = work(x)
is_ready = result.is_ready()
with monitor.window("host") as host:
    later = work(x)
monitor.begin_window("named", sync_execution=True)
named = work(x)
ended = monitor.end_window("named")
print(json.dumps([is_ready, waited.energy.edges, waited.gpu_energy[0], waited.time,
                  host.energy.edges, named.is_ready()]))
"""


JAX_BY_NAME = """
import jax
from jouleprof.zeus import ZeusMonitor
work = jax.jit(lambda x: jax.lax.fori_loop(0, 200, lambda i, y: y @ x / 600, x))
x = jax.numpy.ones((600, 600))
work(x).block_until_ready()
monitor = ZeusMonitor(gpu_indices=[0], sync_execution_with="jax")
monitor.begin_window("epoch")
result = work(x)
monitor.end_window("epoch")
print(result.is_ready())
"""


def test_jax_is_waited_for(machine):
    import json

    needs("jax")
    machine.gpus(CONSTANT)
    done = subprocess.run([sys.executable, "-c", JAX], stdout=subprocess.PIPE, text=True, check=True,
                          timeout=300, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    is_ready, edges, joules, seconds, host, named = json.loads(done.stdout.splitlines()[-1])
    assert is_ready and named
    assert edges == "synchronised" and host == "host"
    assert joules == pytest.approx(250 * seconds, rel=0.02)


def test_zeus_waits_with_jax(machine):
    needs("jax")
    machine.gpus(CONSTANT)
    done = subprocess.run([sys.executable, "-c", JAX_BY_NAME], stdout=subprocess.PIPE, text=True,
                          check=True, timeout=300, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    assert done.stdout.split() == ["True"]
