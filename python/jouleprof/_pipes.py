"""Programs of the package whose output may be read in part."""

from __future__ import annotations

import os
import sys
from typing import Callable


def run_main(main: Callable[[], int]) -> int:
    """The status of main(). A reader of stdout that has gone, as `| head` does, ends it without an error."""
    try:
        status = main()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what the interpreter flushes at its end
        return 0
