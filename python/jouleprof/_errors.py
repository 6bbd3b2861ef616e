"""One tree of exceptions: everything that jouleprof raises is a jouleprof.Error."""

import os
import sys
import warnings


class Error(Exception):
    """What jouleprof raises; each kind below is also the built-in exception of its meaning."""


class NotFound(Error, LookupError):
    """There is no such thing."""


class MissingFile(NotFound, FileNotFoundError):
    """There is no such file."""


class PermissionDenied(Error, PermissionError):
    """The system does not allow it."""


class Unsupported(Error, NotImplementedError):
    """Not possible with this device, driver or file."""


class Unavailable(Error, RuntimeError):
    """Nothing can be measured here, or not any more."""


class Corrupt(Error):
    """A file does not hold what it should."""


class InvalidArgument(Error, ValueError):
    """The call itself is wrong."""


class Timeout(Error, TimeoutError):
    """It took longer than allowed."""


class Internal(Error):
    """A bug of jouleprof."""


# By the number that the C interface gives (jouleprof_status).
_KINDS = {
    1: NotFound, 2: PermissionDenied, 3: Unsupported, 4: Unavailable, 5: Corrupt,
    6: InvalidArgument, 7: Timeout, 8: Internal,
}


def warn(message):
    """At the caller of this package, whose line is to be changed."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "jouleprof":
        level, frame = level + 1, frame.f_back
    warnings.warn(f"jouleprof: {message}", RuntimeWarning, stacklevel=level)


def unwritten(error):
    """What a verb that writes below the folder of -o prints of an error."""
    if not isinstance(error, OSError) or error.filename is None:
        return str(error)
    return f"cannot write {error.filename}: {error.strerror}; name another folder with -o"


def exit_status(error):
    """The tool's, for what the package does in its place."""
    statuses = ((InvalidArgument, 2), (NotFound, 3), (Corrupt, 4), (Unsupported, 5), (Unavailable, 6),
                (PermissionDenied, 10), (OSError, 7))
    return next((status for kind, status in statuses if isinstance(error, kind)), 1)


def named(path):
    """The path as a text that the tool does not take for an option."""
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise InvalidArgument(f"a file is named by a path, not {path!r}") from None
    return os.path.join(".", text) if text.startswith("-") else text


def existing(path):
    """The same, if there is such a file."""
    text = named(path)
    if not os.path.exists(text):
        raise MissingFile(f"{text or repr(text)} does not exist")
    return text


def existing_file(path):
    """The same, if it is no folder."""
    text = existing(path)
    if os.path.isdir(text):
        raise InvalidArgument(f"{text} is a folder, not a recording; "
                              f"jouleprof.open_all({os.path.join(text, '*.jprof')!r}) opens all in it")
    return text


def checked(answer):
    """The answer of a native call, unless it is a failure (status, message): that is raised."""
    if isinstance(answer, tuple) and len(answer) == 2:
        status, message = answer
        raise _KINDS.get(status, Internal)(message)
    return answer
