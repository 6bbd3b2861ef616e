#!/usr/bin/env python3
"""What a tool costs: CPU and memory of a process that only runs it, seconds to the first number, and slow-down.

    costs.py tool NAME SECONDS     one tool around a sleep, as a script of its own; prints the joules, or why it cannot
"""

import math
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import tools
from loads import load

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import sampling  # noqa: E402

T95 = [12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262]  # Student's t by degrees of freedom


def one_tool(name, seconds):
    kind = next(kind for kind in tools.JOB_TOOLS if kind.name == name)
    tool = kind()
    tool.begin()
    time.sleep(seconds)
    joules = tool.end()
    print(f"{joules() if callable(joules) else joules:.3f} J", flush=True)
    tool.close()


def commands(seconds, folder):
    """name -> the command of a tool that measures a sleep."""
    sleep = f"{seconds:g}"
    found = {kind.name: [sys.executable, str(HERE / "costs.py"), "tool", kind.name, sleep] for kind in tools.JOB_TOOLS}
    found["jouleprof run"] = [*tools.command_line(), "run", "--devices", "gpu0", "-o", f"{folder}/x.jprof", "--", "sleep", sleep]
    return found


def of_tools(seconds):
    """name -> seconds beyond the sleep, CPU seconds, memory, the last line printed; or why it cannot."""
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, command in commands(seconds, folder).items():
            begin = time.monotonic()
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            cpu = memory = 0
            while process.poll() is None and time.monotonic() < begin + 40:
                cpu = max(cpu, sampling.tree_cpu(process.pid))
                memory = max(memory, sampling.tree_memory(process.pid))
                time.sleep(0.05)
            process.kill()
            total = time.monotonic() - begin
            lines = process.communicate()[0].strip().splitlines() or ["it printed nothing"]
            if process.returncode:
                results[name] = {"cannot": lines[-1][:120]}
            else:
                results[name] = {"seconds_beyond_sleep": total - seconds, "cpu_seconds": cpu, "memory_bytes": memory,
                                 "sleep_seconds": seconds, "line": lines[-1]}
            print(name, results[name], file=sys.stderr, flush=True)
    return results


def slow_down(rounds, seconds):
    """name -> mean ratio of the time of a step to that without a tool, and the half-width of its 95 % interval."""
    step, size = steps()

    def timed():
        end, count = time.perf_counter() + seconds, 0
        begin = time.perf_counter()
        while time.perf_counter() < end:
            for _ in range(size):
                step()
            load_.wait()
            count += size
        return (time.perf_counter() - begin) / count

    load_ = load()
    timed()
    logs, results = {}, {}
    for turn in range(rounds):
        kinds = [kind for kind in tools.JOB_TOOLS if kind is not tools.ZeusInstant]
        for kind in kinds[turn % len(kinds):] + kinds[:turn % len(kinds)]:
            plain = timed()
            opened, cannot = tools.open_tools([kind])
            if cannot:
                results[kind.name] = {"cannot": cannot[kind.name]}
                continue
            (tool,) = opened
            tool.begin()
            measured = timed()
            joules = tool.end()
            joules() if callable(joules) else joules
            tool.close()
            logs.setdefault(kind.name, []).append(math.log(measured / ((plain + timed()) / 2)))
    for name, values in logs.items():
        half = T95[len(values) - 2] * statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else math.nan
        results[name] = {"slower_ratio": math.expm1(statistics.mean(values)), "half_width_ratio": half}
    return results


def steps():
    """(a step of inference, how many between two waits): twelve transformer layers at batch 1, bound by the host."""
    work = load()
    try:
        import torch

        if torch.cuda.is_available():
            layer = torch.nn.TransformerEncoderLayer(768, 12, 3072, batch_first=True)
            model = torch.nn.TransformerEncoder(layer, 12, enable_nested_tensor=False).cuda().bfloat16().eval()
            x = torch.randn(1, 197, 768, device="cuda", dtype=torch.bfloat16)

            def step():
                with torch.inference_mode():
                    model(x)
            return step, 20
    except ImportError:
        pass
    return lambda: work.repeat(10), 20


if __name__ == "__main__":
    one_tool(sys.argv[2], float(sys.argv[3]))
