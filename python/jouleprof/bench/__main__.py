"""Started by `jouleprof bench`: runs each case and writes what was done to a JSON file, in which the
tool finds the windows whose energies it adds."""

import argparse
import json
import os
import platform
import sys
import traceback

from .. import Monitor
from . import _case
from ._workload import Refused

SCHEMA = "jouleprof.bench.workload/1"

def main():
    options = _options()
    # The tool writes the data to stdout; what the workload prints is talk.
    os.dup2(2, 1)
    document = {"schema": SCHEMA, "versions": {}, "cases": []}
    monitor = Monitor(cuda=False)
    status = 0
    try:
        for batch in options.batch:
            document["cases"].append(_case.run(monitor, options, batch, is_first=not document["cases"]))
    except Refused as refusal:
        print(f"jouleprof bench: {refusal}", file=sys.stderr)
        status = 2
    except KeyboardInterrupt:
        status = 130
    except Exception:  # of the workload; the cases before it are kept
        traceback.print_exc()
        status = 1
    if status and not document["cases"]:
        return status
    document["versions"] = _versions()
    with open(options.result, "w", encoding="utf-8") as file:
        json.dump(document, file, allow_nan=False)
    return status


def _options():
    parser = argparse.ArgumentParser(prog="python -m jouleprof.bench",
                                     description="Started by the tool: jouleprof bench")
    parser.add_argument("workload")
    parser.add_argument("--result", required=True)
    parser.add_argument("--mode", default="eager")
    parser.add_argument("--batch", type=lambda text: [int(word) for word in text.split(",")], default=[1])
    parser.add_argument("--seq-length", type=int)
    parser.add_argument("--new-tokens", type=int, default=128)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--min-time", type=float, default=3.0)
    parser.add_argument("--max-time", type=float, default=30.0)
    parser.add_argument("--target-rel", type=float)
    parser.add_argument("--max-warm-up", type=float, default=15.0)
    parser.add_argument("--torch-timer", action="store_true")
    # Of a sweep: neither the model card nor the power that a context holds.
    parser.add_argument("--only-work", action="store_true")
    return parser.parse_args()


def _versions():
    found = {"python": platform.python_version()}
    for name in ("torch", "transformers"):
        module = sys.modules.get(name)
        if module is not None:
            found[name] = str(module.__version__)
    torch = sys.modules.get("torch")
    if torch is not None:
        found["cuda"] = torch.version.cuda
    return found


if __name__ == "__main__":
    sys.exit(main())
