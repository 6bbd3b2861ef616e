"""`jouleprof run --replay`: has libjouleprof_inject.so re-run the program's kernels when Python ends: after
the program's own handlers, and before those of the frameworks that own the GPU's memory. Never raises, and
does not change the program's exit status.
"""

import atexit
import ctypes
import os
import sys

_MOST_SECONDS = 30    # for all re-runs
_AWAKE_SECONDS = 0.1  # Python's signal handlers run that often


def rerun(library, each, all):
    """Re-runs kernels, `each` seconds one at most. When an exception ends the waiting, re-runs end first."""
    library.jouleprof_replay_begin.argtypes = [ctypes.c_double, ctypes.c_double]
    library.jouleprof_replay_wait.argtypes = [ctypes.c_double]
    if library.jouleprof_replay_begin(each, all) != 0:
        return
    try:
        while not library.jouleprof_replay_wait(_AWAKE_SECONDS):
            pass
    except BaseException:
        library.jouleprof_replay_stop()
        while not library.jouleprof_replay_wait(_AWAKE_SECONDS):
            pass
        raise


class AtExit:
    """`library`: a ctypes.CDLL, whose calls let other threads of Python run. `seconds`: of each kernel."""

    def __init__(self, library, seconds):
        self.library = library
        self._seconds = seconds
        self._process = os.getpid()
        self._status = 0
        self._watch_exit()

    def register(self):
        """After the import of a framework, so that handlers which that registered run later."""
        atexit.unregister(self.run)
        atexit.register(self.run)

    def run(self):
        if os.getpid() != self._process:
            return
        if hasattr(sys, "last_type"):  # an exception, or Ctrl-C: the user does not want to wait
            self.library.jouleprof_trace_problem(
                b"replay: no kernel was re-run, because the program ended with an exception")
            return
        try:
            rerun(self.library, self._seconds, _MOST_SECONDS)
        except BaseException:  # Ctrl-C, or what a signal's handler raised
            pass
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):  # none, its reader is gone, or it is closed
                pass
        self.library.jouleprof_replay_leave(self._status)

    def _watch_exit(self):
        """Keeps the status of sys.exit(), which is not known otherwise until all handlers have run."""
        leave = sys.exit

        def exit(status=None, /):
            self._status = status if isinstance(status, int) else int(status is not None)
            leave(status)

        exit.__doc__ = leave.__doc__
        sys.exit = exit
