"""Makes each call of the tool, of its service and of programs with its library fail in turn, and checks what a
user relies on.

After each fault: the job ran and its status came back (or the tool said why not, before it started the
job); an old file is there as it was, or a valid new one; a total holds the truth or is absent; nothing
hangs. Usage: run_faults.py [--all | --seed N --samples N] [--only WORD] BUILD_FOLDER
"""

import argparse
import pathlib
import random
import sys
import tempfile

from bench import Bench, Failure, KnownLimit
from scenarios import SCENARIOS

ERRORS = {
    "open": ["EMFILE", "EACCES", "ENOSPC"], "write": ["ENOSPC", "EIO", "EINTR", "short"],
    "fsync": ["EIO"], "ftruncate64": ["EIO"], "rename": ["EIO"], "mmap": ["ENOMEM"],
    "malloc": ["ENOMEM"], "pthread_create": ["EAGAIN"], "fork": ["EAGAIN"], "pipe2": ["EMFILE"],
    "socket": ["EMFILE"],
}


def one(bench, scenario, fault):
    """Whether the fault happened. Raises Failure."""
    bench.prepare()
    return bool(SCENARIOS[scenario].run(bench, fault).hits)


def cases_of(bench, scenario):
    bench.prepare()
    calls = SCENARIOS[scenario].run(bench, ",".join(f"{c}:1000000000:EIO" for c in ERRORS)).calls
    for call, errors in ERRORS.items():
        for error in errors:
            for ever in ("", "+"):
                if error == "EINTR" and ever:
                    continue  # a loop that repeats the call would not end
                n = 1
                while n <= calls.get(call, 0):
                    yield f"{call}:{n}{ever}:{error}"
                    n += max(1, n // 20)  # memory is asked for some ten thousand times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=int, default=54, help="the same number of each scenario")
    parser.add_argument("--only", default="", help="scenarios with this word in their name")
    options = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.build.resolve(), pathlib.Path(folder))
        names = [name for name in SCENARIOS if options.only in name]
        for scenario in names:
            if not SCENARIOS[scenario].is_possible(bench):
                print(f"{scenario}: not in this build")
                continue
            cases = list(cases_of(bench, scenario))
            if not options.all:
                wanted = max(1, options.samples // len(names))
                cases = random.Random(options.seed).sample(cases, min(wanted, len(cases)))
            hit, failed, limited = 0, 0, 0
            for fault in cases:
                try:
                    hit += one(bench, scenario, fault)
                except KnownLimit:
                    hit += 1
                    limited += 1
                except Failure as failure:
                    failed += 1
                    print(f"{scenario} with {fault}: {failure}", flush=True)
            failures += failed
            print(f"{scenario}: {len(cases)} runs, {hit} with a fault, {failed} failures, "
                  f"{limited} at a known limit", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
