"""The command-line tool, which reads the files."""

import os
import pathlib
import shutil
import subprocess

from ._arguments import number
from ._errors import Corrupt, Internal, InvalidArgument, MissingFile, NotFound, PermissionDenied, Unavailable, Unsupported

# By exit status (docs/cli.md).
_KINDS = {1: Internal, 2: InvalidArgument, 5: Unsupported, 6: Unavailable, 7: PermissionDenied}


def tool_path():
    """The command-line tool that JOULEPROF_TOOL names, that this package carries, or that is on the PATH."""
    own = pathlib.Path(__file__).parent / "bin" / "jouleprof"
    tool = os.environ.get("JOULEPROF_TOOL") or (None if own.exists() else shutil.which("jouleprof")) or str(own)
    if not os.path.exists(tool):
        raise Unavailable(f"{tool} is missing; install the package with pip, or set JOULEPROF_TOOL")
    return tool


def part_options(start, end):
    """Of seconds since the command began; None: from its begin, to its end."""
    given = (("--from", "start", start), ("--to", "end", end))
    return [word for option, name, value in given if value is not None
            for word in (option, f"{number(value, name, ' of seconds', least=0):.9f}s")]


def output_of(*arguments):
    return subprocess.run([tool_path(), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          encoding="utf-8", errors="surrogateescape", check=False)


def run_tool(*arguments):
    """What the tool writes to stdout."""
    done = output_of(*arguments)
    if done.returncode < 0:  # what it has written is not all
        raise Unavailable(f"{tool_path()} was ended by signal {-done.returncode}")
    if done.returncode != 0 and not done.stdout:
        text = done.stderr.strip().removeprefix("jouleprof: ") or f"status {done.returncode}"
        raise _kind(done.returncode, text)(text)
    return done.stdout


def _kind(status, text):
    if status == 3:  # not found, or not allowed
        return MissingFile if "No such file" in text else PermissionDenied if "ermission" in text else NotFound
    if status == 4 and ("has no trace" in text or "report it again in a second" in text):  # the file is sound
        return Unavailable
    return _KINDS.get(status, Corrupt)
