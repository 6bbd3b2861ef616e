"""What is run while calls fail, and what must hold after each fault."""

import json
import pathlib
import signal

from bench import HERE, LOG_WATTS, PYTHON, UUID, WATTS, Failure, KnownLimit, check_words
from serving import Serving

STATUS = 3  # of the measured command
PROGRAM_STATUS = 5  # of a program that uses the library


class Scenario:
    """A command of the tool. `check(bench, process)` raises Failure."""

    def __init__(self, arguments, check):
        self.arguments = arguments
        self.check = check

    def is_possible(self, _bench):
        return True

    def run(self, bench, fault):
        process = bench.run([bench.tool, *self.arguments], fault)
        self.check(bench, process)
        return process


class Traced(Scenario):
    """The same, of a program that writes a trace of kernels."""

    def __init__(self):
        super().__init__([], check_run)

    def is_possible(self, bench):
        return self.program(bench) is not None

    @staticmethod
    def program(bench):
        return bench.find("src/recording/spool/jouleprof_traced_program")

    def run(self, bench, fault):
        script = f"{self.program(bench)} {UUID} 0.4 gemm:0.1:0.5:0; echo ran > ran; exit {STATUS}"
        process = bench.run([bench.tool, "run", "--kernels", "--idle", "0", "-f", "-o", "old", "--",
                             "sh", "-c", script], fault)
        self.check(bench, process)
        return process


class Program:
    """A program that uses the library. A language's class has is_possible() and command()."""

    def run(self, bench, fault):
        command = self.command(bench)
        process = bench.run([*command, "old"], fault, pathlib.Path(command[0]).name)
        check_program(bench, process)
        return process


class InC(Program):
    def is_possible(self, bench):
        return self.library(bench) is not None

    @staticmethod
    def library(bench):
        return bench.find("src/apps/lib/libjouleprof.so")

    def command(self, bench):
        program = bench.folder / "library_program"
        if not program.exists():
            folder = self.library(bench).parent
            bench.compile("-o", program, HERE / "library_program.c",
                          f"-I{HERE.parents[1] / 'include'}", f"-L{folder}", f"-Wl,-rpath,{folder}",
                          "-ljouleprof", "-ldl")
        return [program]


class InPython(Program):
    def is_possible(self, bench):
        return bench.find("python/jouleprof/__init__.py") is not None

    def command(self, _bench):
        return [PYTHON, HERE / "library_program.py"]


class UnderRun:
    """Such a program under `run`, which stores its windows. `in_tool`: the calls of `run` fail, not
    the program's."""

    def __init__(self, program, in_tool=False):
        self.program = program
        self.in_tool = in_tool

    def is_possible(self, bench):
        return self.program.is_possible(bench)

    def run(self, bench, fault):
        command = self.program.command(bench)
        name = None if self.in_tool else pathlib.Path(command[0]).name
        process = bench.run([bench.tool, "run", "-q", "--idle", "0", "-f", "-o", "old", "--",
                             *command], fault, name)
        if process.returncode == 125 and self.in_tool and "jouleprof: " in process.stderr:
            bench.check_old()  # the program was not started
        else:
            check_windows(check_program(bench, process, self.in_tool), bool(process.hits))
        return process


def check_program(bench, process, in_tool=False):
    """Its work is done and its status came back; energies hold the truth or are absent. Returns the
    report of the new file, as check_old()."""
    aborted = process.returncode in (-signal.SIGABRT, 128 + signal.SIGABRT)  # the latter under `run`
    if aborted and "std::bad_alloc" in process.stderr:
        raise KnownLimit("nlohmann's JSON objects need memory when they are destroyed")
    if not in_tool and "cannot allocate memory for thread-local data" in process.stderr:
        raise KnownLimit("the C library ends a program that has no memory for these data")
    if process.returncode != PROGRAM_STATUS:
        raise Failure(f"the program ended with {process.returncode}\n{process.stderr}")
    found = json.loads(process.stdout)
    if not found["sum"] > 0 and "error" not in found:
        raise Failure("the program did not do its work")
    truth = 1e6 * WATTS * found["seconds"]
    for energy, error in found["window"] + found["total"]:
        if abs(energy - truth) > error + 2:
            raise Failure(f"{1e-6 * truth} J is not in {1e-6 * energy} +- {1e-6 * error} J")
    if not (bench.folder / "old").exists() and not bench.has_second_name():
        raise Failure("the old log is gone")
    return bench.check_old()


def check_windows(report, any_fault):
    """The windows that `run` recorded hold the truth; without a fault they are there."""
    windows = report["windows"] if report else []
    if not windows and not any_fault:
        raise Failure("the window is not in the recording")
    for window in windows:
        for energy in window["energy"]:
            interval = energy["interval_joules"]
            truth = WATTS * window["total_seconds"]
            if energy["domain"] == "gpu" and interval and not interval[0] <= truth <= interval[1]:
                raise Failure(f"window: {truth:.1f} J is not in {interval}")


def check_run(bench, process):
    ran = (bench.folder / "ran").exists()
    if process.returncode == STATUS and ran:
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
    "run": Scenario(["run", "--idle", "0", "-f", "-o", "old", "--", "sh", "-c",
                     f"echo ran > ran; sleep 0.3; exit {STATUS}"], check_run),
    "run --kernels": Traced(),
    "report": Scenario(["report", "x.jprof", "--json"], check_report),
    "export": Scenario(["export", "x.jprof", "--format", "chrome", "-f", "-o", "old"],
                       check_export),
    "import": Scenario(["import", "log", "-f", "-o", "old"], check_new_recording),
    "monitor": Scenario(["monitor", "-d", "100ms", "-c", "2", "--format", "jsonl"], check_monitor),
    "serve": Serving(),
    "library in C": InC(),
    "library in Python": InPython(),
    "library in C under run": UnderRun(InC()),
    "library in Python under run": UnderRun(InPython()),
    "run of a library in C": UnderRun(InC(), in_tool=True),
}
