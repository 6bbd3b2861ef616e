"""The stack of windows of the first versions of Zeus, and windows by name: python nested_windows.py"""

import time

import jouleprof

monitor = jouleprof.Monitor()
monitor.push_window()
with monitor.window("load"):
    time.sleep(0.2)  # the work
with monitor.window("train") as train:
    time.sleep(0.4)
both = monitor.pop_window()
print(f"both: {both.time:.3f} s, {both.joules} J, {both.watts} W")
print(train.energy)
