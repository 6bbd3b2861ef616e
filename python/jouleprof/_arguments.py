"""Arguments as users give them: checked, so that a wrong one is a jouleprof.Error that says so."""

import math
import operator
import os
import re

from ._errors import InvalidArgument

_NO_TEXT = re.compile("[\0\ud800-\udfff]")  # where C ends a text; of a file's name, bytes that are no text


def number(value, name, unit="", least=None):
    """A finite number as a float; bool is none."""
    try:
        if isinstance(value, (bool, str, bytes)):
            raise TypeError
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise InvalidArgument(f"{name} is a number{unit}, not {value!r}")
    if least is not None and found < least:
        raise InvalidArgument(f"{name} must not be below {least:g}, but is {value!r}")
    return found


def whole(value, what, least, most=2**63 - 1):
    """A whole number as an int, also NumPy's; bool is none. `what`: it, as in "run is the number of a run"."""
    try:
        found = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        found = least - 1
    if not least <= found <= most:
        raise InvalidArgument(f"{what}, not {value!r}")
    return found


def flag(value, name):
    """True or False, also NumPy's and as 1 and 0. A text such as "no" would count as true."""
    if isinstance(value, (str, bytes)) or value not in (True, False):
        raise InvalidArgument(f"{name} is True or False, not {value!r}")
    return bool(value)


def nanoseconds(seconds, name):
    """Of a length above 0 s; a century is long enough for anything."""
    found = number(seconds, name, " of seconds")
    if not 0 < found <= 3e9:
        raise InvalidArgument(f"{name} has to be more than 0 seconds")
    return round(found * 1e9)


def timeout_nanoseconds(timeout):
    """None: the library's own, given as -1."""
    if timeout is None:
        return -1
    return round(min(number(timeout, "timeout", " of seconds", least=0), 3e9) * 1e9)


def text(value, name):
    if not isinstance(value, str):
        raise InvalidArgument(f"{name} is a text, not {value!r}")
    return _NO_TEXT.sub("\ufffd", value)


def path(value, name):
    try:
        found = os.fsdecode(os.fspath(value))
    except TypeError:
        found = "\0"
    if "\0" in found:  # where C ends it
        raise InvalidArgument(f"{name} is a path, not {value!r}")
    return found
