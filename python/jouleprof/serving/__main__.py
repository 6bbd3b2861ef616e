"""python -m jouleprof.serving FILE.jprof: a line for each request once it has finished, while a server runs or later."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys

from .. import _files
from .._errors import Error
from ._requests import RequestMetrics, looks
from ._spans import RequestSpans


def requests_in(path: str) -> set[tuple[int, str, int]]:
    """Those that an earlier follower wrote: a request is in the file once. A line that was cut off is ended."""
    found = set()
    line = "\n"
    if os.path.isfile(path):
        with open(path, "a+") as file:
            file.seek(0)
            for line in file:
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    request = json.loads(line)
                    found.add((request["pid"], request["request"], request["arrival_nanoseconds"]))
            if not line.endswith("\n"):
                file.write("\n")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m jouleprof.serving", description=__doc__.split(": ", 1)[1])
    parser.add_argument("recording", help="of `jouleprof run --serving`; it may still be written")
    parser.add_argument("--jsonl", metavar="FILE", help="append a JSON object for each request that it has not; - is stdout")
    parser.add_argument("--prometheus", metavar="FILE", help="write metrics for a textfile collector")
    parser.add_argument("--otlp", metavar="URL", nargs="?", const="", default=None,
                        help="send a span for each request, by OTLP over HTTP; without URL as OpenTelemetry's variables say")
    parser.add_argument("--period", type=float, default=5.0, help="seconds between two looks (default: 5)")
    given = parser.parse_args()
    metrics = RequestMetrics()
    spans = None
    log = None
    written: set[tuple[int, str, int]] = set()
    try:
        if given.jsonl and given.jsonl != "-":
            written = requests_in(given.jsonl)
            log = open(given.jsonl, "a")
        if given.otlp is not None:
            spans = RequestSpans(endpoint=given.otlp or None)
        for new, boards in looks(given.recording, given.period):
            for request in new:
                if not given.jsonl:
                    print(f"{request.request}: {request}", flush=True)
                elif (request.pid, request.request, request.arrival_nanoseconds) not in written:
                    print(json.dumps(request.to_dict()), file=log or sys.stdout, flush=True)
                metrics.add(request)
                if spans is not None:
                    spans.add(request)
            metrics.set_boards(boards)
            if given.prometheus:
                with _files.replacing(given.prometheus) as file:
                    file.write(metrics.text())
    except Error as error:
        print(f"jouleprof: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise
    except OSError as error:
        files = " or ".join(name for name in (given.jsonl, given.prometheus) if name) or "the output"
        print(f"jouleprof: cannot write {error.filename or files}: {error.strerror}; make room or name another file, and "
              "start it again", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        pass
    finally:
        if spans is not None:
            spans.close()
        if log is not None:
            with contextlib.suppress(OSError):  # of what was not written, which was said
                log.close()
    return 0


def run() -> int:
    """The status of main(). A reader of stdout that has gone, as `| head` does, ends it without an error."""
    try:
        status = main()
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what the interpreter flushes at its end
        return 0


if __name__ == "__main__":
    sys.exit(run())
