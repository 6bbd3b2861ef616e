"""A script for Zeus with the import changed: python train_zeus.py"""

import time

from jouleprof.zeus.monitor import PowerMonitor, ZeusMonitor

monitor = ZeusMonitor(log_file="zeus_log.csv")
power = PowerMonitor()
monitor.begin_window("training", sync_execution=False)
for step in range(5):
    monitor.begin_window("step", sync_execution=False)
    time.sleep(0.2)  # the work
    step_energy = monitor.end_window("step", sync_execution=False)
    print(f"step {step}: {step_energy.time:.3f} s, {step_energy.total_energy:.1f} J, settled: {step_energy.settled}")
training = monitor.end_window("training", sync_execution=False).wait()
print(f"training: {training.time:.3f} s, {training.total_energy:.1f} J; by GPU: {training.gpu_energy}")
print(training.jouleprof)  # with 95 % intervals
print("power now:", power.get_power())
power.stop()
