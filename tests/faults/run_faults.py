"""Makes each call of the tool, of its service and of programs with its library fail in turn, and checks what a
user relies on.

After each fault: the job ran and its status came back (or the tool said why not, before it started the
job); an old file is there as it was, or a valid new one; a total holds the truth or is absent; nothing
hangs. Usage: run_faults.py [--all | --seed N --samples N] [--only WORD] [--jobs N] BUILD_FOLDER
"""

import argparse
import concurrent.futures
import pathlib
import queue
import random
import sys
import tempfile
import time

from bench import Bench, Failure, KnownLimit
from scenarios import SCENARIOS

ERRORS = {
    "open": ["EMFILE", "EACCES", "ENOSPC"], "write": ["ENOSPC", "EIO", "EINTR", "short"],
    "fsync": ["EIO"], "ftruncate64": ["EIO"], "rename": ["EIO"], "mmap": ["ENOMEM"],
    "malloc": ["ENOMEM"], "pthread_create": ["EAGAIN"], "fork": ["EAGAIN"], "pipe2": ["EMFILE"],
    "socket": ["EMFILE"],
}


NO_FAULT = ",".join(f"{call}:1000000000:EIO" for call in ERRORS)


def seconds_without_fault(bench, scenario):
    begin = time.monotonic()
    bench.prepare()
    SCENARIOS[scenario].run(bench, NO_FAULT)
    return time.monotonic() - begin


def one(bench, spare, scenario, fault):
    """Whether the fault happened, whether it is at a known limit, and what failed. `spare`: a folder for a
    run at the same time."""
    bench.plain = lambda: seconds_without_fault(spare, scenario)
    bench.prepare()
    try:
        return bool(SCENARIOS[scenario].run(bench, fault).hits), False, None
    except KnownLimit:
        return True, True, None
    except Failure as failure:
        return False, False, failure


def cases_of(bench, scenario):
    bench.prepare()
    calls = SCENARIOS[scenario].run(bench, NO_FAULT).calls
    for call, errors in ERRORS.items():
        for error in errors:
            for ever in ("", "+"):
                if error == "EINTR" and ever:
                    continue  # a loop that repeats the call would not end
                n = 1
                while n <= calls.get(call, 0):
                    yield f"{call}:{n}{ever}:{error}"
                    n += max(1, n // 20)  # memory is asked for some ten thousand times


def run_all(benches, scenario, cases):
    """Runs the cases side by side, one in each pair of folders. Returns the numbers of those with a fault,
    with a failure and at a known limit."""
    free = queue.SimpleQueue()
    for pair in zip(benches[::2], benches[1::2]):
        free.put(pair)

    def run(fault):
        pair = free.get()
        try:
            found = one(*pair, scenario, fault)
        finally:
            free.put(pair)
        if found[2]:
            print(f"{scenario} with {fault}: {found[2]}", flush=True)
        return found

    with concurrent.futures.ThreadPoolExecutor(len(benches) // 2) as pool:
        results = list(pool.map(run, cases))
    return (sum(hit for hit, _, _ in results), sum(bool(failure) for _, _, failure in results),
            sum(limited for _, limited, _ in results))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=int, default=54, help="the same number of each scenario")
    parser.add_argument("--only", default="", help="scenarios with this word in their name")
    parser.add_argument("--jobs", type=int, default=1, help="so many runs side by side")
    options = parser.parse_args()
    runs, failures = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        benches = []
        for name in range(2 * options.jobs):
            place = pathlib.Path(folder) / str(name)
            place.mkdir()
            benches.append(Bench(options.build.resolve(), place))
        names = [name for name in SCENARIOS if options.only in name]
        for scenario in names:
            if not SCENARIOS[scenario].is_possible(benches[0]):
                print(f"{scenario}: not in this build")
                continue
            cases = list(cases_of(benches[0], scenario))
            if not options.all:
                wanted = max(1, options.samples // len(names))
                cases = random.Random(options.seed).sample(cases, min(wanted, len(cases)))
            hit, failed, limited = run_all(benches, scenario, cases)
            runs += len(cases)
            failures += failed
            print(f"{scenario}: {len(cases)} runs, {hit} with a fault, {failed} failures, "
                  f"{limited} at a known limit", flush=True)
    print(f"{runs} runs, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
