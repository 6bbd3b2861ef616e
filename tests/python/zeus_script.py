"""A script as people write it for Zeus. Prints what it saw as JSON.

Usage: zeus_script.py MODULE LOG, where MODULE has the ZeusMonitor to use.
"""

import csv
import dataclasses
import importlib
import json
import sys
import time
import types


def fake_torch(available):
    torch = types.ModuleType("torch")
    torch.waited = []
    torch.cuda = types.SimpleNamespace(
        is_available=lambda: available, is_initialized=lambda: False,
        synchronize=torch.waited.append)
    torch.distributed = types.SimpleNamespace(is_available=lambda: False)
    return torch


def error_of(call, *args, **options):
    try:
        call(*args, **options)
    except Exception as error:
        kinds = [kind for kind in (IndexError, ValueError, RuntimeError, KeyError, TypeError)
                 if isinstance(error, kind)]
        return kinds[0].__name__ if kinds else type(error).__name__
    return None


def shape(measurement):
    """What a measurement has, but for the figures."""
    def kind(value):
        return {str(k): type(v).__name__ for k, v in value.items()} if value is not None else None

    return {
        "type": type(measurement).__name__,
        "is_dataclass": sorted(dataclasses.asdict(measurement)),
        "time": type(measurement.time).__name__,
        "gpu": kind(measurement.gpu_energy),
        "cpu": kind(measurement.cpu_energy),
        "dram": kind(measurement.dram_energy),
        "soc": measurement.soc_energy,
        "total": type(measurement.total_energy).__name__,
    }


def main(module, log):
    ZeusMonitor = importlib.import_module(module).ZeusMonitor
    seen, joules = {}, {}
    torch = sys.modules["torch"] = fake_torch(True)

    monitor = ZeusMonitor(cpu_indices=[], approx_instant_energy=True, log_file=log)
    seen["gpu_indices"] = monitor.gpu_indices
    monitor.begin_window("outer")
    monitor.begin_window("a,b", sync_execution=False)
    time.sleep(0.25)
    monitor.begin_window("overlapping")
    inner = monitor.end_window("a,b", sync_execution=False)
    time.sleep(0.25)
    overlapping = monitor.end_window("overlapping")
    outer = monitor.end_window("outer")
    for name, m in (("inner", inner), ("overlapping", overlapping), ("outer", outer)):
        seen[name] = shape(m)
        joules[name] = [m.time, m.total_energy, m.gpu_energy]
    seen["waited"] = list(torch.waited)

    monitor.begin_window("x")
    seen["begun twice"] = error_of(monitor.begin_window, "x")
    monitor.begin_window("x", restart=True)
    cancelled = monitor.end_window("x", cancel=True)
    seen["cancelled"] = [shape(cancelled), dataclasses.asdict(cancelled)]
    seen["ended twice"] = error_of(monitor.end_window, "x")
    seen["never begun"] = error_of(monitor.end_window, "y")
    monitor.begin_window("z")
    monitor.reset_windows()
    seen["reset"] = error_of(monitor.end_window, "z")

    one = ZeusMonitor([1], [], False, None, "torch")
    seen["one"] = [one.gpu_indices, one.sync_with, one.log_file, one.approx_instant_energy]
    one.begin_window("x", sync_execution=False)
    time.sleep(0.2)
    m = one.end_window("x", sync_execution=False)
    seen["of one"] = shape(m)
    joules["one"] = [m.time, m.total_energy, m.gpu_energy]
    seen["no such gpu"] = error_of(ZeusMonitor, gpu_indices=[9], cpu_indices=[])
    seen["wrong argument"] = error_of(ZeusMonitor, gpus=[0])

    odd = ZeusMonitor(gpu_indices=[0], cpu_indices=[], sync_execution_with="abacus")
    seen["unknown framework"] = error_of(odd.begin_window, "x")
    seen["not begun then"] = error_of(odd.end_window, "x", sync_execution=False)
    no_gpus = ZeusMonitor(gpu_indices=[], cpu_indices=[])
    no_gpus.begin_window("x")
    seen["no gpus"] = [shape(no_gpus.end_window("x"))]

    time.sleep(1)
    with open(log, encoding="utf-8") as file:
        rows = list(csv.reader(file))
    seen["columns"] = rows[0]
    # Zeus does not quote the comma.
    seen["names"] = [row[1] for row in rows[1:] if row[1] not in ("a", "a,b")]
    seen["log"] = [len(rows[0]) == len(rows[-1]), float(rows[-1][0]) > 1.7e9]
    json.dump({"seen": seen, "joules": joules}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
