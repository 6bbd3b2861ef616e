#!/usr/bin/env python3
"""Checks that the memory of a program that measures windows for hours does not grow.

    soak.py [--minutes 60] [--threads 4] [--windows-per-second 50] [--devices WORDS] [--log FILE]

Opens a monitor, opens and closes windows from several threads, and reads the energy of some of them.
Prints the resident memory each minute, and its slope at the end. During the first tenth of the time the
monitor fills its history, which has a fixed size (a tenth of the time, at most its usual ten minutes).
Exits with 1 if memory grew by more than 10 MB after that, or if an energy became unavailable.

Needs the Python package: installed, or by PYTHONPATH=<build>/python. Without a GPU, a simulated one
(tests/nvml_sim/SCENARIO.md) or the CPU alone suffices.
"""

import argparse
import os
import pathlib
import sys
import threading
import time

import jouleprof

MOST_GROWTH_MB = 10.0
NAMES = 100  # a monitor keeps each name; a program has few


def resident_mb():
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def slope_mb_per_hour(points):
    """Least squares through (seconds, MB)."""
    if len(points) < 2:
        return 0.0
    t0 = sum(t for t, _ in points) / len(points)
    m0 = sum(m for _, m in points) / len(points)
    return 3600 * sum((t - t0) * (m - m0) for t, m in points) / sum((t - t0) ** 2 for t, _ in points)


class Worker(threading.Thread):
    """Opens and closes windows; reads the energy of one in `ask_every`."""

    def __init__(self, monitor, number, pause, stop, ask_every=100):
        super().__init__(daemon=True)
        self.windows = self.asked = self.failed = 0
        self._monitor, self._number = monitor, number
        self._pause, self._stop_event, self._ask_every = pause, stop, ask_every

    def run(self):
        while not self._stop_event.is_set():
            name = f"work {(self._number + self.windows) % NAMES}"
            with self._monitor.window(name) as outer:
                with self._monitor.window("inner"):
                    self._stop_event.wait(self._pause)
            self.windows += 2
            if self.windows % (2 * self._ask_every) == 0:
                self._ask(outer)

    def _ask(self, window):
        self.asked += 1
        try:
            if all(e.joules is None for e in window.energy.values()):
                self.failed += 1
        except jouleprof.Error:
            self.failed += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--windows-per-second", type=float, default=50, help="of each thread")
    parser.add_argument("--devices", help="as Monitor's; default: all")
    parser.add_argument("--log", help="record into this *.jprof file too")
    options = parser.parse_args()

    seconds = 60 * options.minutes
    settled = seconds / 10
    monitor = jouleprof.Monitor(options.devices, log=options.log, history=min(600, settled))
    stop = threading.Event()
    workers = [Worker(monitor, i, 2 / options.windows_per_second, stop)
               for i in range(options.threads)]
    print(f"{'minute':>6} {'RSS MB':>8} {'windows':>10} {'asked':>7} {'failed':>7}", flush=True)
    begin = time.monotonic()
    for worker in workers:
        worker.start()
    points, next_line = [], 60.0
    while (now := time.monotonic() - begin) < seconds:
        time.sleep(min(5.0, seconds - now))
        now = time.monotonic() - begin
        memory = resident_mb()
        if now >= settled:
            points.append((now, memory))
        if now >= next_line or now >= seconds:
            print(f"{now / 60:6.1f} {memory:8.2f} {sum(w.windows for w in workers):10} "
                  f"{sum(w.asked for w in workers):7} {sum(w.failed for w in workers):7}", flush=True)
            next_line += 60
    stop.set()
    for worker in workers:
        worker.join(60)
    monitor.close()

    failed = sum(w.failed for w in workers)
    growth = max(m for _, m in points) - points[0][1]
    print(f"slope {slope_mb_per_hour(points):+.2f} MB/h; at most {growth:.2f} MB above its value "
          f"after {settled / 60:.1f} min (limit {MOST_GROWTH_MB:.0f} MB)")
    return 1 if growth > MOST_GROWTH_MB or failed else 0


if __name__ == "__main__":
    sys.exit(main())
