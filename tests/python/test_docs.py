"""Every Python block of docs/python.md and README.md runs, in order, as one script a heading."""

import pathlib
import re
import sys

import pytest

from conftest import CONSTANT

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = (ROOT / "docs" / "python.md", ROOT / "README.md")


def examples():
    blocks = {}
    for page in PAGES:
        heading = ""
        for part in re.split(r"^(## .*)$", page.read_text(encoding="utf-8"), flags=re.M):
            if part.startswith("## "):
                heading = f"{page.name}: {part[3:]}"
            else:
                for block in re.findall(r"^```python\n(.*?)^```", part, flags=re.M | re.S):
                    blocks.setdefault(heading, []).append(block)
    return blocks


@pytest.mark.parametrize("heading", examples())
def test_examples(machine, heading, monkeypatch):
    import jouleprof
    from fake_frameworks import install
    from marks_cases import Host

    monkeypatch.chdir(machine.folder)
    machine.gpus(CONSTANT)
    monkeypatch.setenv("JOULEPROF_CONTROL_FOLDER", str(machine.folder / "control"))
    install(monkeypatch, Host.torch())
    try:
        exec("\n".join(examples()[heading]), {"__name__": "__main__"})
    finally:
        from jouleprof._live.monitor import _open_monitors

        for monitor in list(_open_monitors):
            monitor.close()
        sys.modules.pop("jouleprof.callbacks.huggingface", None)
        sys.modules.pop("jouleprof.callbacks.lightning", None)
    assert jouleprof


def test_there_are_examples():
    assert sum(map(len, examples().values())) >= 7
