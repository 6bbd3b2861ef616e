"""The decorator form of a window."""

import functools
import inspect


def decorator(new_window):
    """Wraps functions, generators, coroutine functions and asynchronous generators."""

    def wrap(function):
        if inspect.isasyncgenfunction(function):

            @functools.wraps(function)
            async def wrapper(*args, **kwargs):
                with new_window():
                    async for item in function(*args, **kwargs):
                        yield item

        elif inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def wrapper(*args, **kwargs):
                with new_window():
                    return await function(*args, **kwargs)

        elif inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                with new_window():
                    return (yield from function(*args, **kwargs))

        else:

            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                with new_window():
                    return function(*args, **kwargs)

        return wrapper

    return wrap
