"""What adapters do with an engine: one that they were not written for is refused, never guessed, and its methods are
wrapped until it is left as it was."""

from __future__ import annotations

import functools
import inspect
import os
import sys
from typing import Any, Callable

from .._errors import Unsupported


def require_version(engine: str, found: str, tested: tuple[str, ...]) -> None:
    """tested: versions as "5.17"; any patch release of one is accepted."""
    parts = found.split("+")[0].split(".")
    if not any(parts[:len(known.split("."))] == known.split(".") for known in tested):
        raise Unsupported(
            f"jouleprof.serving knows {engine} {' and '.join(tested)}, and this is {found}: what its scheduler reports "
            f"may have changed. Install {engine} {tested[-1]}, or record steps by jouleprof.serving.Recorder")


def require_parameters(engine: str, function: Callable[..., Any], names: tuple[str, ...]) -> None:
    """The function takes parameters of these names."""
    missing = [name for name in names if name not in inspect.signature(function).parameters]
    if missing:
        raise Unsupported(f"{engine}: {getattr(function, '__qualname__', function)} has no parameter "
                          f"{', '.join(missing)}: this {engine} was changed, and its steps cannot be recorded")


def require_attributes(engine: str, thing: object, names: tuple[str, ...]) -> None:
    missing = [name for name in names if not hasattr(thing, name)]
    if missing:
        what = thing.__qualname__ if isinstance(thing, type) else type(thing).__qualname__
        raise Unsupported(f"{engine}: {what} has no {', '.join(missing)}: this {engine} was changed, "
                          "and its steps cannot be recorded")


def chosen_devices() -> list[str]:
    """Those that JOULEPROF_SERVING_DEVICES names: "gpu0,gpu1" or UUIDs."""
    return [name for name in os.environ.get("JOULEPROF_SERVING_DEVICES", "").split(",") if name]


class Wrapped:
    """The methods of an engine that an adapter has replaced."""

    def __init__(self) -> None:
        self._before: list[tuple[type, str, Any]] = []

    def __bool__(self) -> bool:
        return bool(self._before)

    def wrap(self, owner: type, name: str, wrapper: Callable[..., Any]) -> None:
        """`wrapper` is called with what was there before, and then with what that would be called with."""
        before = getattr(owner, name)

        @functools.wraps(before)
        def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return wrapper(before, self, *args, **kwargs)

        self._before.append((owner, name, before))
        setattr(owner, name, wrapped)

    def observe(self, owner: type, name: str, *, before: Callable[..., Any] | None = None,
                after: Callable[..., Any] | None = None) -> None:
        """`before` is called with what the method is called with, `after` with its result in front. Where one of them
        fails, the engine goes on: all methods are as they were from then on, and on_failure() hears of it."""
        def wrapped(method: Any, *args: Any, **kwargs: Any) -> Any:
            if before is not None:
                self._guarded(name, before, *args, **kwargs)
            result = method(*args, **kwargs)
            if after is not None:
                self._guarded(name, after, result, *args, **kwargs)
            return result

        self.wrap(owner, name, wrapped)

    def _guarded(self, name: str, observer: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        if not self._before:  # restored by a failure, within a call that was wrapped
            return
        try:
            observer(*args, **kwargs)
        except Exception as error:  # whatever it is: the engine serves people
            self.restore()
            self.on_failure(f"{name}: {type(error).__name__}: {error}")

    def on_failure(self, reason: str) -> None:
        print(f"jouleprof: steps are not recorded any more: {reason}", file=sys.stderr)

    def restore(self) -> None:
        while self._before:
            owner, name, before = self._before.pop()
            setattr(owner, name, before)
