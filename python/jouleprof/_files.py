"""Files that several threads and processes write."""

import contextlib
import fcntl
import os


def read_only_uri(path):
    """For sqlite3.connect(): a name may have characters that mean something in a URI."""
    return f"file:{os.path.abspath(path).replace('%', '%25').replace('?', '%3f').replace('#', '%23')}?mode=ro"


@contextlib.contextmanager
def alone_in(folder):
    """Others that ask for the folder wait, in any process. Without effect where its file system has no locks."""
    place = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(place, fcntl.LOCK_UN)  # a child that was forked meanwhile holds it, too
        os.close(place)


@contextlib.contextmanager
def replacing(path):
    """A file that takes the place of `path` when it is complete: readers see a whole one at any time. Of the threads of
    a process, one at a time."""
    draft = f"{path}.{os.getpid()}"
    with open(draft, "w", newline="", encoding="utf-8") as file:
        yield file
    os.replace(draft, path)
