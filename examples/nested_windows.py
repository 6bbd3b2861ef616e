"""The stack of windows of the first versions of Zeus, and windows by name: python nested_windows.py"""

import time

import jouleprof

monitor = jouleprof.Monitor()
monitor.push_window()
with monitor.window("load"):
    time.sleep(0.2)  # the work
with monitor.window("train") as train:
    time.sleep(0.4)
seconds, joules_by_gpu = monitor.pop_window()
print(f"both: {seconds:.3f} s, {joules_by_gpu} J")
print(train.energy)
