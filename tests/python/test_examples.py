"""Every script of examples/ runs, on a simulated GPU of 250 W, and prints what it is for."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import pytest

from conftest import CONSTANT

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
TOOL = os.environ.get("JOULEPROF_TOOL", "")
TABLE = """max_watt,tokens_per_sec,total_power_draw,temperature,gpu_utilization,memory_utilization
300,100,290,70,99,50
200,80,200,60,95,40
100,25,100,50,90,40
"""


def run(machine, script, *arguments, needs=()):
    for name in needs:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"the Python module {name} is missing (pip install {name})")
    machine.gpus(CONSTANT)
    done = subprocess.run([sys.executable, str(EXAMPLES / script), *map(str, arguments)], cwd=machine.folder,
                          env={**os.environ, "JOULEPROF_TOOL": TOOL, "CUDA_VISIBLE_DEVICES": "0"}, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_plain_loop(machine):
    out = run(machine, "train_pytorch.py", needs=["torch"])
    assert out.count("epoch: ") == 2 and "20 windows" in out


def test_hugging_face(machine):
    out = run(machine, "train_hugging_face.py", machine.folder / "out", needs=["torch", "transformers", "accelerate"])
    for name in ("step_joules", "epoch_joules", "epoch_joules_per_token", "evaluation_joules"):
        assert f"'energy/{name}'" in out, name


def test_lightning(machine):
    out = run(machine, "train_lightning.py", needs=["torch", "lightning"])
    assert re.search(r"[\d.]+ J in the last epoch", out)


def test_zeus(machine):
    out = run(machine, "train_zeus.py")
    seconds, joules = map(float, re.search(r"training: ([\d.]+) s, ([\d.]+) J", out).groups())
    assert seconds > 1 and joules == pytest.approx(250 * seconds, rel=0.1) and "SIMULATED" in out
    assert len((machine.folder / "zeus_log.csv").read_text().splitlines()) == 7


def test_nested_windows(machine):
    out = run(machine, "nested_windows.py")
    seconds, joules = map(float, re.search(r"both: ([\d.]+) s, ([\d.]+) J", out).groups())
    assert joules == pytest.approx(250 * seconds, rel=0.05)


def test_inference(machine):
    out = run(machine, "inference.py")
    each, above = map(float, re.search(r"gpu0: ([\d.]+) mJ an inference, (-?[\d.]+) mJ above idle", out).groups())
    assert each > 5000 and abs(above) < 0.05 * each


def test_layers(machine):
    if "JOULEPROF_INJECT" not in os.environ or not TOOL:
        pytest.skip("JOULEPROF_INJECT or JOULEPROF_TOOL is not set")
    out = run(machine, "layers.py", needs=["torch"])
    assert "Top 10 Energy Consumers" in out and "Example 1: Layer Profiler (Simple Forward Pass)" in out
    assert "Running warmup (Layer Profiler)...\nRunning 10 profiling run(s) (Layer Profiler)...\n" in out
    rows = (machine.folder / "layer_demo_profile_top10_energy.csv").read_text().splitlines()[1:]
    assert {row.split(",")[0] for row in rows} >= {"0", "1", "2", "Sequential"}


@pytest.mark.skipif(not TOOL, reason="JOULEPROF_TOOL is not set")
def test_an_experiment(machine):
    out = run(machine, "experiment.py", EXAMPLES / "h200-kernels.jprof")
    assert "5.346 kJ" in out and "deit.py 900" in out
    if importlib.util.find_spec("matplotlib"):
        assert (machine.folder / "power.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.skipif(not TOOL, reason="JOULEPROF_TOOL is not set")
def test_power_limits(machine):
    (machine.folder / "stats.csv").write_text(TABLE)
    out = run(machine, "power_limits.py", "stats.csv", needs=["matplotlib"])
    assert "200 W is the recommended power limit" in out
    assert (machine.folder / "report.png").exists()


@pytest.mark.skipif(not TOOL, reason="JOULEPROF_TOOL is not set")
def test_cpp(machine):
    library = pathlib.Path(TOOL).resolve().parents[1] / "lib" / "libjouleprof.so"
    compiler = shutil.which("c++")
    if compiler is None or not library.exists():
        pytest.skip(f"needs c++ and {library}")
    program = machine.folder / "windows"
    subprocess.run([compiler, "-std=c++17", f"-I{ROOT / 'include'}", str(EXAMPLES / "cpp" / "windows.cpp"), str(library),
                    f"-Wl,-rpath,{library.parent}", "-o", str(program)], check=True, timeout=300)
    machine.gpus(CONSTANT)
    begin = time.monotonic()
    out = subprocess.run([str(program)], check=True, stdout=subprocess.PIPE, text=True).stdout
    longest = time.monotonic() - begin
    joules = float(re.search(r"gpu0 gpu: ([\d.]+) J, 95 % interval \+-[\d.]+ J, SIMULATED", out).group(1))
    assert 0.95 * 250 * 0.5 < joules < 1.05 * 250 * longest  # it sleeps 0.5 s, or longer on a busy machine


def test_no_example_is_left_out():
    tested = set(re.findall(r'"([a-z_]+\.(?:py|cpp))"', pathlib.Path(__file__).read_text()))
    elsewhere = {"deit.py", "simulated_work.py"}  # of the README's figures, which need a GPU; of tools/demo
    assert {path.name for path in EXAMPLES.rglob("*") if path.suffix in (".py", ".cpp")} == tested | elsewhere
