"""The command-line tool, which reads the files."""

import subprocess

from ._errors import Corrupt, Internal, InvalidArgument, MissingFile, NotFound, PermissionDenied, Unavailable, Unsupported
from ._settings import tool_path

# By exit status (docs/cli.md).
_KINDS = {1: Internal, 2: InvalidArgument, 5: Unsupported, 6: Unavailable, 7: PermissionDenied}


def output_of(*arguments):
    return subprocess.run([tool_path(), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)


def run_tool(*arguments):
    """What the tool writes to stdout."""
    done = output_of(*arguments)
    if done.returncode != 0 and not done.stdout:
        text = done.stderr.strip().removeprefix("jouleprof: ") or f"status {done.returncode}"
        raise _kind(done.returncode, text)(text)
    return done.stdout


def _kind(status, text):
    if status == 3:  # not found, or not allowed
        return MissingFile if "No such file" in text else PermissionDenied if "ermission" in text else NotFound
    if status == 4 and "has no trace" in text:  # the file is sound
        return Unavailable
    return _KINDS.get(status, Corrupt)
