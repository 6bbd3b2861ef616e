"""Makes each call of the tool fail in turn, and checks what a user relies on.

After each fault: the job ran and its status came back (or the tool said why not, before it started the
job); an old file is there as it was, or a valid new one; a total holds the truth or is absent; nothing
hangs. Usage: run_faults.py [--all | --seed N --samples N] BUILD_FOLDER
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WATTS = 250  # of the simulated GPU
LOG_WATTS = 61
LONGEST_SECONDS = 25  # a driver or a lock is waited for up to 10 s
LOG = "# gpu   pwr\n# Idx     W\n" + 20 * f"    0    {LOG_WATTS}\n"

ERRORS = {
    "open": ["EMFILE", "EACCES", "ENOSPC"], "write": ["ENOSPC", "EIO", "EINTR", "short"],
    "fsync": ["EIO"], "ftruncate64": ["EIO"], "rename": ["EIO"], "mmap": ["ENOMEM"],
    "malloc": ["ENOMEM"], "pthread_create": ["EAGAIN"], "fork": ["EAGAIN"], "pipe2": ["EMFILE"],
    "socket": ["EMFILE"],
}


class Failure(Exception):
    """What a user relies on did not hold."""


class Bench:
    """A folder with a recording, a log and an old file, in which the tool runs."""

    def __init__(self, build, folder):
        self.tool = build / "src/apps/cli/jouleprof"
        self.folder = folder
        self.library = folder / "faults.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.library,
                        HERE / "fault_library.c", "-ldl", "-lpthread"], check=True)
        scenario = folder / "scenario.json"
        scenario.write_text(json.dumps(
            {"devices": [{"generation": "hopper", "idle_watts": WATTS}]}))
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("JOULEPROF_")},
            "HOME": str(folder), "LC_ALL": "C.UTF-8", "JOULEPROF_NVML_SCENARIO": str(scenario),
            "JOULEPROF_NVML_LIBRARY": str(build / "src/apps/nvml_sim/libjouleprof_nvml_sim.so"),
        }
        (folder / "log").write_text(LOG)
        self.run(["run", "-q", "--idle", "0", "-o", "x.jprof", "--", "sleep", "1"])

    def run(self, arguments, fault=None):
        environment = dict(self.environment)
        log = self.folder / "faults.log"
        log.unlink(missing_ok=True)
        if fault:
            environment.update(LD_PRELOAD=str(self.library), JOULEPROF_FAULTS=fault,
                               JOULEPROF_FAULT_LOG=str(log))
        try:
            process = subprocess.run([self.tool, *arguments], cwd=self.folder, env=environment,
                                     capture_output=True, text=True, errors="replace",
                                     stdin=subprocess.DEVNULL, timeout=LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            raise Failure("it hangs") from None
        lines = log.read_text().split("\n") if log.exists() else []
        process.hits = [line for line in lines if line and not line.startswith("calls")]
        process.calls = {line.split()[1].split(":")[0]: int(line.rpartition(":")[2])
                         for line in lines if line.startswith("calls")}
        return process

    def prepare(self):
        for path in (self.folder / "ran", self.folder / "old", *self.folder.glob(".jouleprof-*")):
            path.unlink(missing_ok=True)
        shutil.copy(self.folder / "x.jprof", self.folder / "old")

    def has_changed(self):
        old = self.folder / "old"
        if not old.exists():
            raise Failure("the old file is gone")
        return old.read_bytes() != (self.folder / "x.jprof").read_bytes()

    def has_second_name(self):
        """Whether the old file is there under its second name."""
        truth = (self.folder / "x.jprof").read_bytes()
        return any(path.read_bytes() == truth for path in self.folder.glob(".jouleprof-*.old"))

    def check_old(self, watts=WATTS):
        """It is as it was, or a valid new one, of this power."""
        if not self.has_changed():
            return
        reported = self.run(["report", "old", "--json"])
        if reported.returncode != 0 and self.has_second_name():
            return  # the tool gave up before the new one was a recording
        if reported.returncode != 0:
            raise Failure(f"the old file is gone, and what is there is no recording: "
                          f"{reported.stderr}")
        self.check_total(json.loads(reported.stdout), watts)

    @staticmethod
    def check_total(report, watts=WATTS):
        for domain in report["domains"]:
            if domain["domain"] != "gpu" or domain["energy_joules"] is None:
                continue
            low, high = domain["interval_joules"]
            truth = watts * report["duration_seconds"]
            if not low <= truth <= high:
                raise Failure(f"{truth:.1f} J is not in [{low}, {high}]")


def check_words(process):
    if process.returncode < 0 or process.returncode >= 128:
        raise Failure(f"it died: {process.returncode}\n{process.stderr}")
    words = ("jouleprof: ", "cannot allocate memory for thread-local data")  # the C library's own
    if process.returncode != 0 and not any(w in process.stderr for w in words):
        raise Failure(f"status {process.returncode} without words")


def check_run(bench, process):
    ran = (bench.folder / "ran").exists()
    if process.returncode == 3 and ran:
        pass
    elif process.returncode == 125 and not ran and "jouleprof: " in process.stderr:
        pass
    else:
        raise Failure(f"status {process.returncode}, the job {'ran' if ran else 'did not run'}\n"
                      f"{process.stderr}")
    bench.check_old()


def check_new_recording(bench, process):
    check_words(process)
    bench.check_old(LOG_WATTS)
    if bench.has_changed() != (process.returncode == 0):
        raise Failure(f"status {process.returncode}, but the file is "
                      f"{'new' if bench.has_changed() else 'old'}")


def check_export(bench, process):
    check_words(process)
    changed = bench.has_changed()
    if process.returncode == 0:
        json.loads((bench.folder / "old").read_bytes())
    elif changed:
        raise Failure("a failed export changed the old file")


def check_report(bench, process):
    check_words(process)
    if process.returncode == 0:
        bench.check_total(json.loads(process.stdout))


def check_monitor(_bench, process):
    check_words(process)


SCENARIOS = {
    "run": (["run", "--idle", "0", "-f", "-o", "old", "--", "sh", "-c",
             "echo ran > ran; sleep 0.3; exit 3"], check_run),
    "report": (["report", "x.jprof", "--json"], check_report),
    "export": (["export", "x.jprof", "--format", "chrome", "-f", "-o", "old"], check_export),
    "import": (["import", "log", "-f", "-o", "old"], check_new_recording),
    "monitor": (["monitor", "-d", "100ms", "-c", "2", "--format", "jsonl"], check_monitor),
}


def one(bench, scenario, fault):
    """Whether the fault happened. Raises Failure."""
    arguments, check = SCENARIOS[scenario]
    bench.prepare()
    process = bench.run(arguments, fault)
    check(bench, process)
    return bool(process.hits)


def all_cases(bench):
    for scenario, (arguments, _) in SCENARIOS.items():
        bench.prepare()
        calls = bench.run(arguments, ",".join(f"{c}:1000000000:EIO" for c in ERRORS)).calls
        for call, errors in ERRORS.items():
            for error in errors:
                for ever in ("", "+"):
                    if error == "EINTR" and ever:
                        continue  # a loop that repeats the call would not end
                    n = 1
                    while n <= calls.get(call, 0):
                        yield scenario, f"{call}:{n}{ever}:{error}"
                        n += max(1, n // 20)  # memory is asked for some ten thousand times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=int, default=50)
    options = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.build.resolve(), pathlib.Path(folder))
        cases = list(all_cases(bench))
        if not options.all:
            cases = random.Random(options.seed).sample(cases, min(options.samples, len(cases)))
        hit = 0
        for scenario, fault in cases:
            try:
                hit += one(bench, scenario, fault)
            except Failure as failure:
                failures += 1
                print(f"{scenario} with {fault}: {failure}", flush=True)
        print(f"{len(cases)} runs, {hit} with a fault, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
