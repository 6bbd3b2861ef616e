"""The decorator form of a window."""

import functools
import inspect
import types
from typing import Any, Callable, TypeVar

from .._arguments import text
from .._errors import InvalidArgument, warn

F = TypeVar("F", bound=Callable[..., Any])
_OF_CLASSES = (classmethod, staticmethod)
_LATE = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)  # what they do comes after the call


def measured(open_window, name):
    """`@measure("name")`, and `@measure()` or `@measure`, which take the function's name.

    open_window(name) makes a window. Functions, generators, coroutine functions and asynchronous generators
    are wrapped."""
    if name is None or isinstance(name, str):
        return lambda function: _wrapped(function, open_window, name)
    if callable(name) or hasattr(name, "__get__"):
        return _wrapped(name, open_window, None)
    return text(name, "a window's name")  # raises


def around(new_context, function=None):
    """A decorator, bare if `function` is given: each call, of whatever kind of function, is in a context of its own."""
    return _decorator(new_context) if function is None else _decorator(new_context)(function)


def _wrapped(function, open_window, name):
    if isinstance(function, (property, functools.cached_property)):
        raise InvalidArgument(f"measure decorates functions, not {function!r}: write it below @"
                              f"{type(function).__name__}")
    if not callable(function) and not isinstance(function, _OF_CLASSES):
        raise InvalidArgument(f"measure decorates functions, not {function!r}")
    if name is None:
        called = function.__func__ if isinstance(function, _OF_CLASSES) else function
        name = getattr(called, "__name__", type(called).__name__)
    return _decorator(functools.partial(open_window, name))(function)


def _warn_of_late(function, result):
    called = getattr(function, "__name__", type(function).__name__)
    warn(f"'{called}' returned a {type(result).__name__.replace('_', ' ')}, and its call only was measured, not what that "
         "does later; decorate the function that has the await or the yield, or put a window around its use")


def _decorator(new_window):

    def wrap(function):
        if isinstance(function, _OF_CLASSES):
            return type(function)(wrap(function.__func__))

        def is_of(kind):
            """An object is of the kind of its __call__; a class is not."""
            return kind(function) or kind(type(function).__call__)

        if is_of(inspect.isasyncgenfunction):

            @functools.wraps(function)
            async def wrapper(*args, **kwargs):
                # As `yield from`, which an asynchronous generator has not.
                with new_window():
                    items = function(*args, **kwargs)
                    advance = items.asend(None)
                    try:
                        while True:
                            item = await advance
                            try:
                                advance = items.asend((yield item))
                            except GeneratorExit:
                                raise
                            except BaseException as error:
                                advance = items.athrow(error)
                    except StopAsyncIteration:
                        pass
                    finally:
                        await items.aclose()

        elif is_of(inspect.iscoroutinefunction):

            @functools.wraps(function)
            async def wrapper(*args, **kwargs):
                with new_window():
                    return await function(*args, **kwargs)

        elif is_of(inspect.isgeneratorfunction):

            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                with new_window():
                    return (yield from function(*args, **kwargs))

        else:

            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                with new_window():
                    result = function(*args, **kwargs)
                if isinstance(result, _LATE):
                    _warn_of_late(function, result)
                return result

        return wrapper

    return wrap
