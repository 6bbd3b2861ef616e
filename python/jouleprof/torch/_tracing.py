"""Traces this process while the tool, in a process of its own, samples power."""

import contextlib
import ctypes
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from .. import _native
from .._errors import Error, Unavailable, checked

_LIBRARY = "libjouleprof_inject.so"
_PACKAGE = pathlib.Path(__file__).resolve().parent.parent
_STARTING_SECONDS = 60
_STOPPING_SECONDS = 120
_RECORDING_SECONDS = 1.2  # until the recording holds what the sensors and the trace reported

_library = None


def _first(paths, what):
    for path in paths:
        if path and pathlib.Path(path).exists():
            return str(path)
    raise Unavailable(f"{what} is missing; install the package with pip")


def load_library():
    """The library that traces this process; `jouleprof run` uses the same."""
    global _library
    if _library is None:
        path = _first([os.environ.get("JOULEPROF_INJECT"), _PACKAGE / "lib" / _LIBRARY], _LIBRARY)
        library = ctypes.PyDLL(path)
        library.jouleprof_trace_begin.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
        library.jouleprof_trace_begin.restype = ctypes.c_int
        # These wait for a thread, so they release Python's lock.
        free = ctypes.CDLL(path)
        library.flush, library.end = free.jouleprof_trace_flush, free.jouleprof_trace_end
        library.jouleprof_replay_now = free.jouleprof_replay_now
        _library = library
    return _library


def load_hook(name):
    """A module of the hook's folder, which `jouleprof run --layers` uses too."""
    known = f"_{name}"
    if known not in sys.modules:
        path = _first([_PACKAGE / "_hook" / f"{name}.py", _PACKAGE.parent / "hook" / f"{name}.py"],
                      f"{name}.py")
        spec = importlib.util.spec_from_file_location(known, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[known] = module
        spec.loader.exec_module(module)
    return sys.modules[known]


class Recorder:
    """`jouleprof run --pid` on this process, reading the trace in `folder`.

    A separate process reads the sensors: Python's lock, stalls of its threads and the model's own
    load would delay reads made in this process, and delayed reads bias the energies.
    """

    def __init__(self, tool, folder, file, idle, memory=True):
        self._tool = tool
        self.file = file
        command = [tool, "run", "--pid", str(os.getpid()), "--trace-folder", folder, "-o", file,
                   "--quiet", "--shortest", "1s", "--idle", f"{idle}s"]
        if not memory:
            command.append("--no-memory")
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith(("CUDA_INJECTION", "NVTX_INJECTION"))}
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment,
                                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                         encoding="utf-8", errors="surrogateescape",
                                         start_new_session=True)
        deadline = time.monotonic() + _STARTING_SECONDS
        while not os.path.exists(file):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.abandon()
                raise Unavailable(f"power cannot be sampled: {self._message()}")
            time.sleep(0.02)

    def stop(self):
        """Ends the recording as Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)
        try:
            _, message = self._process.communicate(timeout=_STOPPING_SECONDS)
        except subprocess.TimeoutExpired:
            self.abandon()
            raise Unavailable("the tool did not end; a sensor's driver may be hanging") from None
        if not os.path.exists(self.file):
            raise Unavailable(f"the tool left no recording: {message.strip()}")

    def abandon(self):
        if self._process.poll() is None:
            self._process.kill()

    def _message(self):
        _, message = self._process.communicate()
        return message.strip() or "the tool gave no reason"


class Report:
    """The energies of a recording, also of one that is still being written.

    Analysed in this process, by the library that the package's extension links.
    """

    def __init__(self, file, by):
        try:
            activity, profile = checked(_native.report_activity(str(file), by))
        except Error as error:
            raise Unavailable(f"the recording has no {by}s: {error}") from error
        self.devices = json.loads(activity)["devices"]
        self.warnings = json.loads(profile)["warnings"]


class Trace:
    """The trace of this process, while it is recorded."""

    def __init__(self, file, flush):
        self._file = file
        self.flush = flush

    def report(self, by):
        """What the recording holds so far; waits for the sensors' last readings."""
        self.flush()
        time.sleep(_RECORDING_SECONDS)
        return Report(self._file, by)


@contextlib.contextmanager
def traced(what, tool, file, idle, memory=True):
    """Traces what this process runs within, and samples power into `file`. Gives a Trace."""
    library = load_library()
    folder = tempfile.mkdtemp(prefix="jouleprof-")
    recorder = None
    try:
        if library.jouleprof_trace_begin(os.fsencode(folder), what.encode()) != 0:
            raise Unavailable(f"this process cannot be traced: {folder} is not writable")
        if not any(os.scandir(folder)):
            raise Error("`jouleprof run` traces this process already: read its recording")
        try:
            recorder = Recorder(tool, folder, file, idle, memory)
            time.sleep(idle + 0.3)  # idle power, read while nothing runs
            yield Trace(file, library.flush)
            library.flush()
            time.sleep(idle + 0.3)
        finally:
            library.end()
        recorder.stop()
    finally:
        if recorder is not None:
            recorder.abandon()
        shutil.rmtree(folder, ignore_errors=True)
