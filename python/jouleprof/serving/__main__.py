"""python -m jouleprof.serving FILE.jprof: a line for each request once it has finished, while a server runs or later."""

from __future__ import annotations

import argparse
import json
import os
import sys

from .. import _files
from .._errors import Error
from ._requests import RequestMetrics, looks
from ._spans import RequestSpans


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m jouleprof.serving", description=__doc__.split(": ", 1)[1])
    parser.add_argument("recording", help="of `jouleprof run --serving`; it may still be written")
    parser.add_argument("--jsonl", metavar="FILE", help="append a JSON object for each request; - is stdout")
    parser.add_argument("--prometheus", metavar="FILE", help="write metrics for a textfile collector")
    parser.add_argument("--otlp", metavar="URL", nargs="?", const="", default=None,
                        help="send a span for each request, by OTLP over HTTP; without URL as OpenTelemetry's variables say")
    parser.add_argument("--period", type=float, default=5.0, help="seconds between two looks (default: 5)")
    given = parser.parse_args()
    metrics = RequestMetrics()
    spans = None
    log = open(given.jsonl, "a") if given.jsonl and given.jsonl != "-" else None
    try:
        if given.otlp is not None:
            spans = RequestSpans(endpoint=given.otlp or None)
        for new, boards in looks(given.recording, given.period):
            for request in new:
                if given.jsonl:
                    print(json.dumps(request.to_dict()), file=log or sys.stdout, flush=True)
                else:
                    print(f"{request.request}: {request}", flush=True)
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
    except KeyboardInterrupt:
        pass
    finally:
        if spans is not None:
            spans.close()
        if log is not None:
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
