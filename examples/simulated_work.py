"""Work of a fixed amount, at the speed of the simulated GPU: see tests/nvml_sim/SCENARIO.md."""

import ctypes
import os
import sys
import time

simulator = ctypes.CDLL(os.environ["JOULEPROF_NVML_LIBRARY"])
simulator.nvmlInit_v2()
simulator.jouleprof_nvml_sim_speed_ratio.restype = ctypes.c_double
speed = simulator.jouleprof_nvml_sim_speed_ratio(0)
for _ in range(5):
    time.sleep(float(sys.argv[1]) / 5 / speed)
    print(f"{5 * speed / float(sys.argv[1]):.4f} steps/s", flush=True)
