"""Isolated re-runs of kernels on request."""

from __future__ import annotations

import ctypes
import os

from .._errors import Error, InvalidArgument, Unavailable

_MOST_SECONDS = 30.0  # for all re-runs
_TEXT_BYTES = 4096
_BROKEN = -2


def replay(seconds: float | None = None) -> str:
    """Re-runs the kernels of this process in isolation now, and not when it ends.

    For a program that goes on, under ``jouleprof run --kernels --replay``: a server, a notebook, a long training.
    Returns when they have ended, after half a minute at most, with all memory as it was; losses are those that
    they would have been. Wait for the GPU before (``torch.cuda.synchronize()``); calls of CUDA of other threads
    wait meanwhile.

    Args:
        seconds: of each kernel's loop, at most. Default: as ``--replay`` has it (0.4).

    Returns:
        What was re-run and what was not, and why, as text.

    Raises:
        Unavailable: nothing was re-run: the program does not run under ``--replay``, it has used no GPU yet, or
            the GPU has no room for a copy of the memory that kernels use.
        Error: a kernel failed or did not end when it ran again; CUDA of this process cannot go on.
        InvalidArgument: `seconds` is not above 0.
    """
    if seconds is not None and not 0 < seconds < 1e6:
        raise InvalidArgument(f"seconds is {seconds!r}, not a time above 0")
    try:
        library = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"], mode=os.RTLD_NOW | os.RTLD_NOLOAD)
        library.jouleprof_replay_now
    except (KeyError, OSError, AttributeError):
        raise Unavailable("no launches are recorded: run the program under "
                          "`jouleprof run --kernels --replay`") from None
    return rerun(library, seconds or 0.0, _MOST_SECONDS)


def rerun(library, each, every):
    """Re-runs what `library`, a ctypes.CDLL, has recorded: `each` seconds a kernel and `every` in all, at most."""
    now = library.jouleprof_replay_now
    now.argtypes = [ctypes.c_double, ctypes.c_double, ctypes.c_char_p, ctypes.c_size_t]
    said = ctypes.create_string_buffer(_TEXT_BYTES)
    answer = now(each, every, said, _TEXT_BYTES)
    text = said.value.decode(errors="replace")
    if answer == _BROKEN:
        raise Error(text)
    if answer != 0:
        raise Unavailable(text)
    return text
