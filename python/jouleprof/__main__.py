"""Runs the command-line tool that this package carries."""

import os
import pathlib
import sys


def main():
    """Replaces this process by the tool; does not return."""
    tool = pathlib.Path(__file__).parent / "bin" / "jouleprof"
    if not tool.exists():
        sys.exit(f"jouleprof: {tool} is missing; install the package with pip")
    os.environ.setdefault("JOULEPROF_PYTHON", sys.executable)  # of `jouleprof bench`
    os.execv(tool, [str(tool), *sys.argv[1:]])


if __name__ == "__main__":
    main()
