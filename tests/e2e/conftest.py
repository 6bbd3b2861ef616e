"""Runs the tool as a program, on a simulated GPU or without one."""

import json
import os
import pathlib
import subprocess

import pytest

TOOL = os.environ["JOULEPROF_TOOL"]
SIM = os.environ["JOULEPROF_SIM"]
SOURCE = pathlib.Path(__file__).resolve().parents[2]
PEERS = SOURCE.parent / "shared" / "data" / "peers"

# Files of a minute or longer begin first, so that no worker is alone with one at the end.
LONG = {f"test_{name}.py" for name in (
    "serve_accounting", "run", "files", "sweep", "wall_calibration", "board_left", "serve_history", "hostile",
    "wall_meter", "kernels")}

HOPPER_250W = {"devices": [{"generation": "hopper", "idle_watts": 250}]}


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.path.name not in LONG)


class Tool:
    """Runs jouleprof in a folder of its own."""

    started = []

    def __init__(self, folder):
        self.folder = folder
        self.environment = {
            **{k: v for k, v in os.environ.items()
               if not k.startswith(("JOULEPROF_", "CUDA_")) and k != "XDG_STATE_HOME"},
            "HOME": str(folder),
            "JOULEPROF_NVML_LIBRARY": "/nonexistent/libnvidia-ml.so.1",
            "LC_ALL": "C.UTF-8",
        }

    def simulate(self, scenario):
        """Simulates a machine with GPUs."""
        path = self.folder / "scenario.json"
        path.write_text(json.dumps(scenario))
        self.environment["JOULEPROF_NVML_LIBRARY"] = SIM
        self.environment["JOULEPROF_NVML_SCENARIO"] = str(path)
        return self

    def start(self, *arguments, **options):
        process = subprocess.Popen(
            [TOOL, *map(str, arguments)], cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.started.append(process)
        return process

    def __call__(self, *arguments, status=0, **options):
        process = self.start(*arguments, stdin=options.pop("stdin", subprocess.DEVNULL), **options)
        process.out, process.err = process.communicate(timeout=120)
        if status is not None:
            assert process.returncode == status, f"{process.returncode}\n{process.out}{process.err}"
        return process

    def report(self, name, *arguments):
        return json.loads(self("report", name, "--json", *arguments).out)


def domain(report, kind, device=None):
    """The one domain of a report that is of this kind."""
    found = [d for d in report["domains"]
             if d["domain"] == kind and device in (None, d["device"])]
    assert len(found) == 1, [(d["domain"], d["device"]) for d in report["domains"]]
    return found[0]


@pytest.fixture(autouse=True)
def nothing_stays_running():
    """A test that fails ends its services, too; those of its module's fixtures started before and go on."""
    of_module = len(Tool.started)
    yield
    for process in Tool.started[of_module:]:
        if process.poll() is None:
            process.terminate()
    del Tool.started[of_module:]


@pytest.fixture
def tool(tmp_path):
    return Tool(tmp_path)


@pytest.fixture
def gpu(tmp_path):
    """A machine with one simulated GPU that draws exactly 250 W."""
    return Tool(tmp_path).simulate(HOPPER_250W)


@pytest.fixture
def peers():
    if not PEERS.is_dir():
        pytest.skip(f"other tools' sample files are not at {PEERS}")
    return PEERS
