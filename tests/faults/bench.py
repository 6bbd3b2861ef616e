"""A folder with a recording, a log and an old file, in which a program runs while its calls fail."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
WATTS = 250  # of the simulated GPU
LOG_WATTS = 61
LONGEST_SECONDS = 25  # a driver or a lock is waited for up to 10 s
PLAIN_RUNS = 30  # a loaded machine: as long as so many runs without a fault take
LOG = "# gpu   pwr\n# Idx     W\n" + 20 * f"    0    {LOG_WATTS}\n"
UUID = "GPU-12345678-1234-1234-1234-123456789abc"


class Failure(Exception):
    """What a user relies on did not hold."""


class KnownLimit(Exception):
    """Did not hold either, for a reason that docs/validation.md names."""


class Bench:
    def __init__(self, build, folder):
        self.build = build
        self.tool = build / "src/apps/cli/jouleprof"
        self.folder = folder
        self.library = folder / "faults.so"
        self.compile("-shared", "-fPIC", "-o", self.library, HERE / "fault_library.c", "-ldl",
                     "-lpthread")
        scenario = folder / "scenario.json"
        scenario.write_text(json.dumps(
            {"devices": [{"generation": "hopper", "idle_watts": WATTS, "uuid": UUID}]}))
        (folder / "libjouleprof_inject.so").write_bytes(b"")
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("JOULEPROF_")},
            "HOME": str(folder), "LC_ALL": "C.UTF-8", "JOULEPROF_NVML_SCENARIO": str(scenario),
            "JOULEPROF_NVML_LIBRARY": str(build / "tests/nvml_sim/libjouleprof_nvml_sim.so"),
            # Stands for the library that is injected into programs; the traced one here does without.
            "JOULEPROF_INJECT_LIBRARY": str(folder / "libjouleprof_inject.so"),
            "PYTHONPATH": str(build / "python"), "PYTHONDONTWRITEBYTECODE": "1",
        }
        (folder / "log").write_text(LOG)
        self.plain = None  # what measures a run without a fault
        self.run([self.tool, "run", "-q", "--idle", "0", "-o", "x.jprof", "--", "sleep", "1"])

    @staticmethod
    def compile(*arguments):
        subprocess.run(["cc", "-O1", *arguments], check=True)

    def find(self, *places):
        """The first of these files of the build that is there; None."""
        return next((self.build / p for p in places if (self.build / p).exists()), None)

    def start(self, command, fault=None, program=None, **options):
        """`program`: the name of the one whose calls fail, if it is not the tool."""
        environment = dict(self.environment)
        (self.folder / "faults.log").unlink(missing_ok=True)
        if fault:
            environment.update(LD_PRELOAD=str(self.library), JOULEPROF_FAULTS=fault,
                               JOULEPROF_FAULT_LOG=str(self.folder / "faults.log"))
        if program:
            environment["JOULEPROF_FAULT_PROGRAM"] = program
        return subprocess.Popen(list(map(str, command)), cwd=self.folder, env=environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, errors="replace", **options)

    def run(self, command, fault=None, program=None):
        process = self.start(command, fault, program)
        self.finish(process)
        return process

    def finish(self, process, seconds=LONGEST_SECONDS):
        """Waits for its end; it then has stdout, stderr, the faults that it met and its calls."""
        try:
            process.stdout, process.stderr = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.finish_late(process, seconds)
        process.hits, process.calls = self.log()

    def finish_late(self, process, seconds):
        """A machine with much else to do makes a run long, and one without a fault as well: that one
        is measured now, at the same time."""
        try:
            plain = self.plain() if self.plain else 0
        except Failure:
            plain = 0
        try:
            process.stdout, process.stderr = process.communicate(timeout=PLAIN_RUNS * plain + 1)
        except subprocess.TimeoutExpired:
            waits = where_it_waits(process.pid)
            process.kill()
            process.communicate()
            raise Failure(f"it hangs: not ended after {seconds} s and {PLAIN_RUNS} times the "
                          f"{plain:.1f} s of a run without a fault\n{waits}") from None

    def log(self):
        log = self.folder / "faults.log"
        lines = log.read_text().split("\n") if log.exists() else []
        return ([line for line in lines if line and not line.startswith("calls")],
                {line.split()[1].split(":")[0]: int(line.rpartition(":")[2])
                 for line in lines if line.startswith("calls")})

    def prepare(self):
        for path in (self.folder / "ran", self.folder / "old", *self.folder.glob(".jouleprof-*")):
            path.unlink(missing_ok=True)
        shutil.copy(self.folder / "x.jprof", self.folder / "old")
        shutil.rmtree(self.folder / "days", ignore_errors=True)
        (self.folder / "days").mkdir()
        shutil.copy(self.folder / "x.jprof", self.folder / "days" / "another.jprof")

    def is_old(self, path):
        return path.read_bytes() == (self.folder / "x.jprof").read_bytes()

    def has_changed(self):
        old = self.folder / "old"
        if not old.exists():
            raise Failure("the old file is gone")
        return not self.is_old(old)

    def has_second_name(self):
        """Whether the old file is there under its second name."""
        return any(self.is_old(path) for path in self.folder.glob(".jouleprof-*.old"))

    def check_old(self, watts=WATTS):
        """It is as it was, or a valid new one, of this power. Returns the report of a new one, else None."""
        if not self.has_changed():
            return None
        reported = self.report("old")
        if reported.returncode != 0 and self.has_second_name():
            return None  # the tool gave up before the new one was a recording
        if reported.returncode != 0:
            raise Failure(f"the old file is gone, and what is there is no recording: "
                          f"{reported.stderr}")
        report = json.loads(reported.stdout)
        self.check_total(report, watts)
        return report

    def report(self, name):
        return self.run([self.tool, "report", name, "--json"])

    @staticmethod
    def check_total(report, watts=WATTS):
        for domain in report["domains"]:
            if domain["domain"] != "gpu" or domain["energy_joules"] is None:
                continue
            low, high = domain["interval_joules"]
            truth = watts * report["duration_seconds"]
            if not low <= truth <= high:
                raise Failure(f"{truth:.1f} J is not in [{low}, {high}]")


def where_it_waits(pid):
    """The threads of the process and of its children, each with its state and system call."""
    lines = []
    for task in sorted(pathlib.Path(f"/proc/{pid}/task").glob("*")):
        try:
            name = (task / "comm").read_text().strip()
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            call = (task / "syscall").read_text().split()
            lines.append(f"  {name} ({task.name}): {state}, call {' '.join(call[:3])}")
            children = (task / "children").read_text().split()
        except OSError:
            continue
        lines += [where_it_waits(child) for child in children]
    debugger = shutil.which("gdb")
    if debugger and lines:
        found = subprocess.run([debugger, "-p", str(pid), "-batch", "-ex", "thread apply all bt 12"],
                               capture_output=True, text=True, check=False, timeout=60)
        lines.append(found.stdout[-6000:])
    return "\n".join(lines)


def check_words(process):
    if process.returncode < 0 or process.returncode >= 128:
        raise Failure(f"it died: {process.returncode}\n{process.stderr}")
    words = ("jouleprof: ", "cannot allocate memory for thread-local data")  # the C library's own
    if process.returncode != 0 and not any(w in process.stderr for w in words):
        raise Failure(f"status {process.returncode} without words")


PYTHON = sys.executable
