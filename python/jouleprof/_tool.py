"""The command-line tool, which reads the files."""

import subprocess

from ._errors import Corrupt
from ._settings import tool_path


def output_of(*arguments):
    return subprocess.run([tool_path(), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)


def run_tool(*arguments):
    """What the tool writes to stdout."""
    done = output_of(*arguments)
    if done.returncode != 0 and not done.stdout:
        raise Corrupt(done.stderr.strip().removeprefix("jouleprof: ") or f"status {done.returncode}")
    return done.stdout
