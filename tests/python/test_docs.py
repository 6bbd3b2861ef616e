"""Each Python block of docs/ and README.md runs by itself, without a GPU; what it needs more is in its first line."""

import importlib
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import CONSTANT

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md")


def blocks():
    found = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for block in re.finditer(r"^```python\n(.*?)^```", text, flags=re.M | re.S):
            found[f"{page.name}:{text.count(chr(10), 0, block.start()) + 2}"] = block[1]
    return found


def served_recording(machine):
    """server.jprof, of a toy server."""
    if not os.path.exists(os.environ.get("JOULEPROF_TOOL", "")):
        pytest.skip("JOULEPROF_TOOL is not built")
    from test_serving import ENGINE

    machine.gpus(CONSTANT)
    (machine.folder / "engine.py").write_text(ENGINE)
    subprocess.run([os.environ["JOULEPROF_TOOL"], "run", "--serving", "-o", "server.jprof", "--", sys.executable,
                    "engine.py"], check=True, capture_output=True)


@pytest.mark.parametrize("place", blocks())
def test_a_block(machine, place, monkeypatch):
    from fake_frameworks import install
    from marks_cases import Host

    block = blocks()[place]
    needs = (re.match(r"# needs (.*)\n", block) or ["", ""])[1]
    monkeypatch.chdir(machine.folder)
    monkeypatch.setenv("JOULEPROF_CONTROL_FOLDER", str(machine.folder / "control"))
    if "NVIDIA GPU" in needs:
        machine.gpus(CONSTANT)
    if "transformers" in needs or "lightning" in needs or "torchrun" in needs:
        machine.gpus(CONSTANT)
        install(monkeypatch, Host.torch())
    if "recording" in needs:
        served_recording(machine)
    for name in set(re.findall(r"\w+", needs)) & {"torch", "pyspark", "pytest"}:
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"the Python module {name} is missing (pip install {name})")
    if re.search(r"\btorch\b", needs) and "NVIDIA GPU" in needs and not importlib.import_module("torch").cuda.is_available():
        pytest.skip("this PyTorch has no GPU")
    try:
        exec(compile(block, place, "exec"), {"__name__": "__main__"})
    finally:
        from jouleprof._live.monitor import _open_monitors

        for monitor in list(_open_monitors):
            monitor.close()
        sys.modules.pop("jouleprof.callbacks.huggingface", None)
        sys.modules.pop("jouleprof.callbacks.lightning", None)


def test_most_blocks_need_nothing():
    needing = [place for place, block in blocks().items() if block.startswith("# needs ")]
    assert len(blocks()) >= 20 and len(needing) <= len(blocks()) / 2 + 2
