"""Latency and joules of one inference, above idle too: python inference.py

`jouleprof bench` does the same with repetitions and intervals of the run-to-run spread.
"""

import time

import jouleprof

BATCHES = 20


def infer():
    time.sleep(0.02)  # the model


monitor = jouleprof.Monitor()
with monitor.window("idle") as idle:
    time.sleep(1)
with monitor.window("inference") as work:
    for _ in range(BATCHES):
        infer()
print(f"latency: {1e3 * work.time / BATCHES:.2f} ms")
for index, joules in work.gpu_energy.items():
    above_idle = joules - idle.gpu_energy[index] / idle.time * work.time
    print(f"gpu{index}: {1e3 * joules / BATCHES:.1f} mJ an inference, {1e3 * above_idle / BATCHES:.1f} mJ above idle")
