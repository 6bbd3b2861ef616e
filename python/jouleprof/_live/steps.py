"""Windows in a row: of a loop over a data loader, and by tags."""

from __future__ import annotations

from typing import Any, Generic, Iterable, Iterator, TypeVar

from .window import Window

T = TypeVar("T")


class Steps(Generic[T]):
    """An iterable around another. Each time it is iterated over is an epoch.

    A step reaches from asking for a batch to asking for the next, so that steps fill their epoch; the
    last, which finds the loader empty, is no step. `break` ends both windows.

    `step` and `epoch` are the last windows that have ended, `epochs` all of those.
    """

    def __init__(self, monitor: Any, loader: Iterable[T], name: str, epoch: str | None,
                 sync_execution: bool | None) -> None:
        self._monitor = monitor
        self._loader: Any = loader
        self._name = name
        self._epoch_name = epoch
        self._sync = sync_execution
        self.step: Window | None = None
        self.epochs: list[Window] = []

    @property
    def epoch(self) -> Window | None:
        return self.epochs[-1] if self.epochs else None

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[T]:
        if self._epoch_name is None:
            yield from self._each_step()
            return
        epoch = self._monitor.window(self._epoch_name, self._sync).__enter__()
        try:
            yield from self._each_step()
        finally:
            epoch.__exit__(None, None, None)
            self.epochs.append(epoch)

    def _each_step(self):
        batches = iter(self._loader)
        while True:
            step = self._monitor.window(self._name, self._sync).__enter__()
            try:
                batch = next(batches)
            except StopIteration:
                step._forget()
                return
            except BaseException:
                step._forget()
                raise
            try:
                yield batch
            finally:
                step.__exit__(None, None, None)
                self.step = step


class Tagged:
    """Windows one after the other, of which each begins where the one before ends: `record(tag)` begins the next.
    Iterating gives those that have ended."""

    def __init__(self, monitor: Any, tag: str, sync_execution: bool | None) -> None:
        self._monitor = monitor
        self._first = tag
        self._sync = sync_execution
        self._open: Window | None = None
        self._ended: list[Window] = []

    def record(self, tag: str) -> None:
        """Ends the window that is open, and begins one of this name."""
        self._end()
        self._open = self._monitor.window(tag, self._sync).__enter__()

    def _end(self):
        if self._open is not None:
            self._open.__exit__(None, None, None)
            self._ended.append(self._open)
            self._open = None

    def __enter__(self) -> Tagged:
        self.record(self._first)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._end()

    def __iter__(self) -> Iterator[Window]:
        return iter(self._ended)
