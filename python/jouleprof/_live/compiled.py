"""Windows inside a function that torch.compile compiles.

The compiler moves and fuses operations across the edges of such a window, so no energy belongs to it. It
is ignored while the function is traced: the graph stays whole, also under fullgraph=True.
"""

import sys
import warnings

from .._errors import Unavailable
from .window import Window

_modules = sys.modules


def _first_look():
    global is_compiling
    check = getattr(getattr(_modules["torch"], "compiler", None), "is_dynamo_compiling", None)
    if check is None or check():
        return check is not None
    is_compiling = check  # not while it is traced
    return False


# Whether torch.compile is tracing this call. Called, and traced, where torch is imported; then it is torch's
# own function, which costs a window 0.03 us.
is_compiling = _first_look


class Ignored(Window):
    """In place of a window that is traced; without a figure."""

    __slots__ = ()

    def __init__(self, name):
        super().__init__(None, None, name, 0, None)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        return None

    def _forget(self):
        return None

    def _interval(self):
        raise Unavailable(f"window '{self._name}' is inside a compiled function and was ignored: the compiler moves "
                          "operations across its edges. Put the window around the call of the function")


def ignored(name):
    """Called while a function is traced."""
    _warn(name)
    return Ignored(name)


def _warn(name):
    warnings.warn(f"jouleprof: window '{name}' is inside a function that torch.compile compiles, and is ignored; "
                  "put it around the call of the function", RuntimeWarning, stacklevel=2)


# torch.compile runs such a function once, while it traces, instead of tracing it.
_warn._dynamo_marked_constant = True
