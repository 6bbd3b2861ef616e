"""Many recordings as one: `jouleprof.open_all("jobs/**/*.jprof")`."""

from __future__ import annotations

import concurrent.futures
import glob
import os
import warnings
from typing import Any, Iterable, Sequence

from .._errors import Error, InvalidArgument, MissingFile
from .recording import Recording, open_unread
from .tables import Tables

_MOST_TOOLS = 8  # at once


def open_all(pattern: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> Recordings:
    """The recordings that a pattern such as "jobs/**/*.jprof", or a list of paths, names; also those in merged files.

    Files that cannot be read are in `unreadable`, with a warning."""
    if not isinstance(pattern, (str, os.PathLike, Iterable)) or isinstance(pattern, bytes):
        raise InvalidArgument(f"open_all takes a pattern or a list of paths, not {pattern!r}")
    paths = sorted(glob.glob(os.fspath(pattern), recursive=True)) if isinstance(pattern, (str, os.PathLike)) else pattern
    if not paths:
        raise MissingFile(f"no file matches {pattern}")
    found = []
    for path in paths:
        opened = open_unread(path)
        found.extend(opened.parts or [opened])
    return Recordings(found)


class Recordings(Tables, Sequence[Recording]):
    """A sequence of Recording with the tables of all of them. `unreadable`: reasons by path."""

    def __init__(self, recordings: Sequence[Recording]) -> None:
        self._recordings = list(recordings)
        self._checked = False
        self.unreadable: dict[str, str] = {}

    def _parts(self, table):
        return [part for parts in self._each(lambda recording: recording._parts(table)) for part in parts]

    def _each(self, ask):
        """In order. What cannot be read is left out from then on."""
        def guarded(recording):
            try:
                return recording, ask(recording), None
            except Error as error:
                return recording, None, error

        workers = min(_MOST_TOOLS, os.cpu_count() or 1)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            done = list(pool.map(guarded, self._recordings))
        for recording, _, error in done:
            if error is not None:
                self.unreadable[recording.path] = str(error)
                warnings.warn(f"{recording.path} is left out: {error}", stacklevel=4)
        self._recordings = [recording for recording, _, error in done if error is None]
        return [found for _, found, error in done if error is None]

    def __len__(self) -> int:
        return len(self._recordings)

    def __getitem__(self, index: Any) -> Any:
        found = self._recordings[index]
        return Recordings(found) if isinstance(index, slice) else found

    def __repr__(self):
        return f"<jouleprof.Recordings: {len(self)}>"
