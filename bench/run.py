#!/usr/bin/env python3
"""Runs the benchmarks and prints their tables as Markdown.

    run.py BUILD [NAME ...] [--quick] [--json FILE]

BUILD is a release build with JOULEPROF_BENCH=ON. Without a NAME all run. Each also runs by itself:
the *_bench programs of BUILD/bench, and the other Python files of this folder, which all take
--build BUILD and --json FILE.

The contenders of a benchmark take turns, and the results are ratios: absolute times hold only for the
machine that they were measured on. Without a GPU, the simulated NVML replaces the driver; its calls take
as long as a driver's. --quick is for trying the benchmarks out.
"""

import argparse
import ctypes
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent
PROGRAMS = ["recording_bench", "timeline_bench", "window_pair_bench"]
SCRIPTS = ["sampling", "windows", "merging"]


def machine():
    """The machine that the figures were measured on."""
    model = platform.processor() or platform.machine()
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {os.cpu_count()} logical CPUs, {platform.system()} {platform.release()}"


def has_gpu():
    """Whether NVML finds a device here."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
        count = ctypes.c_uint(0)
        return nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0 \
            and count.value > 0
    except (OSError, AttributeError):
        return False


def quantity(name, value):
    if name.endswith("_bytes"):
        return f"{value / 1e6:.1f} MB"
    if name == "items_per_second":
        return f"{value:,.0f} readings/s"
    return f"{value:g}"


def run_program(build, name, quick, simulated):
    """A Google Benchmark program; returns (Markdown, results)."""
    program = build / "bench" / name
    if not program.exists():
        sys.exit(f"{program} does not exist; `make bench` builds it")
    command = [str(program), "--benchmark_format=json", "--benchmark_enable_random_interleaving=true"]
    command.append(f"--benchmark_repetitions={1 if quick else 5}")
    environment = dict(os.environ)
    if simulated:  # for the benchmarks that read a GPU
        environment["JOULEPROF_NVML_LIBRARY"] = str(
            build / "tests/nvml_sim/libjouleprof_nvml_sim.so")
        environment["JOULEPROF_NVML_SCENARIO"] = str(
            FOLDER / "h100_real_costs.json")
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=environment, text=True)
    if done.returncode != 0:
        sys.exit(f"{program} failed:\n{done.stderr}")
    output = json.loads(done.stdout)
    wanted = "iteration" if quick else "aggregate"
    lines = ["| what | CPU time | rate, size |", "|---|---|---|"]
    results = {}
    # Sorted by name: they ran in random order.
    for run in sorted(output["benchmarks"], key=lambda r: (len(r["run_name"]), r["run_name"])):
        if run["run_type"] != wanted or run.get("aggregate_name", "median") != "median":
            continue
        if run.get("error_occurred"):
            lines.append(f"| `{run['run_name']}` | not here: {run['error_message']} | |")
            continue
        known = {"items_per_second"} | {k for k in run if k.endswith("_bytes")}
        counters = {k: run[k] for k in known if k in run}
        results[run["run_name"]] = {"cpu_time": run["cpu_time"], "unit": run["time_unit"], **counters}
        rates = ", ".join(quantity(k, v) for k, v in counters.items())
        lines.append(f"| `{run['run_name']}` | {run['cpu_time']:,.4g} {run['time_unit']} | {rates} |")
    return "\n".join(lines), results


def run_script(build, name, quick, simulated):
    """A Python benchmark of this folder; returns (Markdown, results)."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "results.json"
        command = [sys.executable, str(FOLDER / f"{name}.py"), "--build", str(build),
                   "--json", str(file)]
        if name == "sampling":
            command += ["--simulated"] if simulated else []
            command += ["--rounds", "1", "--seconds", "5"] if quick else []
        elif quick:
            command += ["--rounds", "1"]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"bench/{name}.py failed")
        return done.stdout.strip(), json.loads(file.read_text()) if file.exists() else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    scripts = [name for name in SCRIPTS if (FOLDER / f"{name}.py").exists()]
    names = [*(p.removesuffix("_bench") for p in PROGRAMS), *scripts]
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="one short round, to try the benchmarks out; do not use its figures")
    parser.add_argument("--json", type=pathlib.Path)
    args = parser.parse_args()
    unknown = set(args.names) - set(names)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    build = args.build.resolve()
    simulated = not has_gpu()
    print(f"On {machine()}{', with a simulated GPU' if simulated else ''}.")
    if args.quick:
        print("One short round: do not use these figures.")
    results = {"machine": machine(), "quick": args.quick}
    for name in args.names or names:
        if f"{name}_bench" in PROGRAMS:
            text, results[name] = run_program(build, f"{name}_bench", args.quick, simulated)
        else:
            text, results[name] = run_script(build, name, args.quick, simulated)
        print(f"\n## {name}\n\n{text}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
