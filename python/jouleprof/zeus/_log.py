"""The CSV file of a ZeusMonitor: the same columns.

A row is in the file when end_window returns. Its energies are empty until they are final, about 0.15 s
later; a plain number could not say that it is provisional.
"""

import atexit
import csv
import io
import os
import sys
import threading
import weakref

from .._arguments import path as checked_path
from .._errors import Error, warn
from .._text import csv_cell

_logs: "weakref.WeakSet[Log]" = weakref.WeakSet()


class Log:
    """A thread waits for the energies, so that end_window does not."""

    def __init__(self, path, gpu_indices):
        path = checked_path(path, "log_file")
        folder = os.path.dirname(path)
        if folder:
            os.makedirs(folder, exist_ok=True)
        self._gpus = list(gpu_indices)
        self.file = open(path, "w", newline="", encoding="utf-8")
        self._final = 0  # bytes of the file that do not change any more
        self._unwritten = b""  # lines that do not change any more and are not in the file yet
        self._has_warned = False
        self._open_rows = []  # (start, name, measurement) after those
        self._changed = threading.Condition()
        self._is_closing = False
        self._thread = None
        self._process = os.getpid()
        self._write_open_rows(
            _line(["start_time", "window_name", "elapsed_time", *(f"gpu{i}_energy" for i in self._gpus)])
        )
        _logs.add(self)
        _close_with_child_process()

    def add(self, begun_at, key, measurement):
        if self._process != os.getpid():
            return  # the file is the parent's, and so is the thread
        with self._changed:
            self._open_rows.append((begun_at, key, measurement))
            self._write_open_rows()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="jouleprof-log", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self):
        """Waits for the energies of the last rows."""
        if self._process != os.getpid() or self.file.closed:
            return
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(30)
        if self._unwritten:
            self._write_open_rows()
        self.file.close()

    def _run(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._open_rows or self._is_closing)
                if not self._open_rows:
                    return
                first = self._open_rows[0][2]
            try:
                first.wait()
            except Error:
                pass  # the monitor was closed; the cells stay empty
            with self._changed:
                self._write_open_rows(self._row(*self._open_rows.pop(0), is_final=True))

    def _row(self, begun_at, key, measurement, is_final=False):
        try:
            energies = measurement.gpu_energy if is_final or measurement.settled else {}
        except Error:
            energies = {}
        return _line([begun_at, key, measurement.time, *(energies.get(i) for i in self._gpus)])

    def _write_open_rows(self, final=b""):
        """After a line that became final, in one write: a reader of the file sees whole rows."""
        self._unwritten += final
        lines = self._unwritten + b"".join(self._row(*row) for row in self._open_rows)
        try:
            written = os.pwrite(self.file.fileno(), lines, self._final)
            os.ftruncate(self.file.fileno(), self._final + written)
            reason = None if written == len(lines) else "a part of them only was"
        except OSError as error:
            written, reason = 0, error.strerror
        final_count = min(written, len(self._unwritten))
        self._final, self._unwritten = self._final + final_count, self._unwritten[final_count:]
        if reason is not None and not self._has_warned:
            self._has_warned = True
            warn(f"{self.file.name} lacks rows, which could not be written: {reason}; the next row tries them again")


def _line(cells):
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow([csv_cell(cell) for cell in cells])
    return text.getvalue().encode()


@atexit.register
def _close_all():
    for log in list(_logs):
        log.close()


def _close_with_child_process():
    """A child of multiprocessing ends without atexit."""
    multiprocessing = sys.modules.get("multiprocessing.util")
    if multiprocessing is not None:
        multiprocessing.Finalize(None, _close_all, exitpriority=10)
