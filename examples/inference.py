"""Latency and joules of one inference, above idle too: python inference.py

`jouleprof bench` does the same with repetitions and intervals of the run-to-run spread.
"""

import time

import jouleprof

BATCHES = 20


def infer() -> None:
    time.sleep(0.02)  # the model


monitor = jouleprof.Monitor()
with monitor.window("idle") as idle:
    time.sleep(1)
with monitor.window("inference") as work:
    for _ in range(BATCHES):
        infer()
print(f"latency: {1e3 * work.time / BATCHES:.2f} ms")
for device in work:
    joules, idle_watts = work[device].joules, idle[device].watts
    if joules is None or idle_watts is None:
        print(f"{device}: {work[device].reason or idle[device].reason}")
        continue
    above_idle = joules - idle_watts * work.time
    print(f"{device}: {1e3 * joules / BATCHES:.1f} mJ an inference, {1e3 * above_idle / BATCHES:.1f} mJ above idle, "
          f"{work[device].provenance}")
