"""The CSV file of a ZeusMonitor: the same columns, written as the energies become known."""

import atexit
import csv
import os
import queue
import threading
import weakref

from ._errors import Error

_logs: "weakref.WeakSet[Log]" = weakref.WeakSet()


class Log:
    """A thread waits for the energies, so that end_window does not; a missing one is empty."""

    def __init__(self, path, gpu_indices):
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        self._gpus = list(gpu_indices)
        self.file = open(path, "w", newline="", encoding="utf-8")
        self._rows = csv.writer(self.file, lineterminator="\n")
        self._write(["start_time", "window_name", "elapsed_time",
                     *(f"gpu{i}_energy" for i in self._gpus)])
        self._queue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="jouleprof-log", daemon=True)
        self._process = os.getpid()
        self._thread.start()
        _logs.add(self)

    def add(self, begun_at, key, measurement):
        self._queue.put((begun_at, key, measurement))

    def close(self):
        """Writes what is left; the energies of the last window may take a moment."""
        if self._process == os.getpid() and self._thread.is_alive():
            self._queue.put(None)
            self._thread.join(30)

    def _run(self):
        while True:
            row = self._queue.get()
            if row is None:
                self.file.close()
                return
            begun_at, key, measurement = row
            try:
                energies = measurement.gpu_energy
            except Error:
                energies = {}  # the monitor was closed, or the process forked
            self._write([begun_at, key, measurement.time, *(energies.get(i) for i in self._gpus)])

    def _write(self, cells):
        self._rows.writerow(cells)
        self.file.flush()


@atexit.register
def _close_all():
    for log in list(_logs):
        log.close()
