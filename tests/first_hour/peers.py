#!/usr/bin/env python3
"""The first number with jouleprof, CodeCarbon, Zeus and perun: a Markdown table of steps, lines, seconds and outputs.

    peers.py WHEEL [--keep FOLDER]

Each tool is installed with pip into an environment of its own (jouleprof from WHEEL), and measures the same training
script as its own first page says: as a command where it has one, else with the lines that the page adds. `lines` are
those that are added to the script. Of what a tool prints, or perun writes, the table has the first lines with a figure
of energy, or the last line.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import time

TRAIN = """\
def train():
    return sum(i * i for i in range(20_000_000))

train()
"""

CODECARBON = """\
from codecarbon import EmissionsTracker
tracker = EmissionsTracker()
tracker.start()
{train}
print(tracker.stop())
"""

ZEUS = """\
from zeus.monitor import ZeusMonitor
monitor = ZeusMonitor()
monitor.begin_window("training")
{train}
measurement = monitor.end_window("training")
print(f"Training: {{measurement.time}} s, {{measurement.total_energy}} J")
"""

# name -> (what pip installs, lines around the script or None, the command)
TOOLS = {
    "jouleprof": (None, None, ["jouleprof", "run", "--", "python", "train.py"]),
    "CodeCarbon": ("codecarbon==3.3.2", CODECARBON, ["python", "train.py"]),
    "Zeus": ("zeus==0.16.0", ZEUS, ["python", "train.py"]),
    "perun": ("perun==1.0.0", None, ["perun", "monitor", "train.py"]),
}
FIGURE = re.compile(r"\d ?[kmµ]?(J|Wh)\b|^[0-9.]+e?-?\d*$")
NOISE = re.compile(r"FutureWarning|libamd_smi|^\s*$|^\s*import |^\|-")


def first_output(done, files):
    """Of the output and the text files that it says it wrote."""
    text = "\n".join([done.stdout, *(file.read_text() for file in files), done.stderr])
    lines = [line.strip() for line in text.splitlines() if not NOISE.search(line)]
    if done.returncode:
        return "cannot: " + (lines[-1] if lines else "it printed nothing")
    figures = [line for line in lines if FIGURE.search(line)][:2]
    tables = [line for line in lines if line.startswith("|")][:2]
    return " / ".join(figures or ["no energy", *(tables or lines[-1:])]).replace("|", "\\|")


def measure(folder, name, wheel):
    package, around, command = TOOLS[name]
    folder.mkdir(parents=True)
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "venv", "venv"], cwd=folder, check=True)
    subprocess.run(["venv/bin/pip", "install", "-q", package or str(wheel)], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    installed = time.monotonic() - began
    script = around.format(train=TRAIN.rstrip()) if around else TRAIN
    (folder / "train.py").write_text(script)
    lines = len(script.splitlines()) - len(TRAIN.splitlines())
    path = f"{folder}/venv/bin"
    began = time.monotonic()
    done = subprocess.run([f"{path}/{command[0]}", *command[1:]], cwd=folder, capture_output=True, text=True, check=False,
                          env={"PATH": f"{path}:/usr/bin:/bin", "HOME": str(folder)})
    seconds = time.monotonic() - began
    (folder / "output.txt").write_text(done.stdout + done.stderr)
    # To install, to change the script where lines are added, to run.
    return 3 if lines else 2, lines, installed, seconds, first_output(done, folder.glob("*_results/*.txt"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("wheel", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path, help="a new folder for the environments and outputs")
    parser.add_argument("--only", default=",".join(TOOLS))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        began = time.monotonic()
        subprocess.run([sys.executable, "-c", TRAIN], check=True)
        print(f"The script alone: {time.monotonic() - began:.1f} s\n")
        print("| tool | steps | lines | install | run | first output |\n|---|---|---|---|---|---|")
        for name in args.only.split(","):
            steps, lines, installed, seconds, output = measure(
                (args.keep or pathlib.Path(temporary)) / name, name, args.wheel.resolve())
            print(f"| {name} | {steps} | {lines} | {installed:.1f} s | {seconds:.1f} s | `{output[:400]}` |", flush=True)


if __name__ == "__main__":
    main()
