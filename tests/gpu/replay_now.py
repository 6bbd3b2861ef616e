#!/usr/bin/env python3
"""Isolated re-runs of a program that goes on, on a real NVIDIA GPU: are its results bit for bit those without?

    replay_now.py JOULEPROF OUT [--steps 40] [--model wide] [--served]

Trains a model with random weights under `run --kernels --replay`, three times: without a request, with
`jouleprof.replay()` in the middle (through libjouleprof_inject.so), and with `jouleprof replay --pid` while it
pauses. Compares the losses of all steps, and prints what was re-run, and which share of the kernels' energy is
resolved. Changes no setting of the card.

`--served`: an HTTP server instead, whose answers come from a Llama in threads of its own. Two rounds of requests, with
`jouleprof replay --pid` between them, and SIGTERM at the end; the answers are compared.
"""

import argparse
import ctypes
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

from resolved import MODELS, shares, tensor_of, width_text


def train(model_name, steps, at, how):
    import torch

    torch.manual_seed(0)
    model, make = MODELS[model_name](torch)
    model = model.cuda().to(torch.bfloat16)
    inputs = make(32)
    args = (inputs.pop("x"),) if "x" in inputs else ()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(steps):
        loss = tensor_of(model(*args, **inputs)).float().pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        print(f"loss {step} {loss.item().hex()}", flush=True)
        if step == at and how == "call":
            torch.cuda.synchronize()
            now = ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).jouleprof_replay_now
            now.argtypes = [ctypes.c_double, ctypes.c_double, ctypes.c_char_p, ctypes.c_size_t]
            said = ctypes.create_string_buffer(4096)
            begin = time.monotonic()
            status = now(0.0, 30.0, said, 4096)
            print(f"said {status} {time.monotonic() - begin:.1f} s: {said.value.decode()}", file=sys.stderr)
        elif step == at and how == "pause":
            torch.cuda.synchronize()
            print(f"pid {os.getpid()}", file=sys.stderr, flush=True)
            time.sleep(8)  # less than re-runs take: the next step waits


def serve():
    """Prints its port; answers /?REQUEST with the tokens of a greedy answer."""
    import http.server
    import threading

    import torch

    torch.manual_seed(0)
    model, make = MODELS["llama"](torch)
    model = model.cuda().to(torch.bfloat16).eval()
    lock = threading.Lock()

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            torch.manual_seed(int(self.path.rsplit("?", 1)[-1]))
            inputs = make(4)
            with lock, torch.no_grad():
                tokens = model.generate(**inputs, max_new_tokens=32, do_sample=False)[:, 128:].tolist()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(tokens).encode())

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    print(server.server_port, flush=True)
    server.serve_forever()


def served(args):
    file = args.out / "replay-served.jprof"
    program = [sys.executable, __file__, "--load", "serve"]
    child = subprocess.Popen([args.tool, "run", "--kernels", "--replay", "-q", "--force", "-o", str(file), "--", *program],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    port = child.stdout.readline().strip()

    def answers():
        found = []
        for request in range(12):
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/?{request}", timeout=120) as answer:
                found.append(answer.read())
        return found

    first = answers()
    pid = subprocess.run(["pgrep", "-n", "-f", "replay_now.py --load serve"], capture_output=True, text=True).stdout.split()[-1]
    asked = subprocess.run([args.tool, "replay", "--pid", pid], capture_output=True, text=True)
    print(f"replay --pid: {(asked.stdout + asked.stderr).strip()} (status {asked.returncode})")
    second = answers()
    os.kill(int(pid), signal.SIGTERM)
    _, err = child.communicate(timeout=90)
    done = subprocess.run([args.tool, "report", str(file), "--by", "kernel", "--json"], capture_output=True, text=True)
    device = json.loads(done.stdout)["devices"][0]
    share, widest = shares(device)[:2]
    print(f"served: status {child.returncode}; {sum(a == b for a, b in zip(first, second))} of 12 answers the same as before "
          f"the re-runs; resolved {100 * share:.0f} %, widest of 5 % {width_text(widest)}; {err.strip()[-600:]}")


def run(args, how):
    file = args.out / f"replay-{how}.jprof"
    program = [sys.executable, __file__, "--load", how, "--model", args.model, "--steps", str(args.steps)]
    child = subprocess.Popen([args.tool, "run", "--kernels", "--replay", "-q", "--force", "-o", str(file), "--", *program],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = []
    for line in child.stderr:
        said.append(line.rstrip())
        if line.startswith("pid "):
            pid = line.split()[1]
            asked = subprocess.Popen([args.tool, "replay", "--pid", pid], stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True)
    out = child.stdout.read()
    status = child.wait()
    if how == "pause":
        said.append(f"replay --pid: {asked.communicate()[0].strip()} (status {asked.returncode})")
    losses = [line for line in out.splitlines() if line.startswith("loss ")]
    done = subprocess.run([args.tool, "report", str(file), "--by", "kernel", "--json"], capture_output=True, text=True)
    device = json.loads(done.stdout)["devices"][0]
    share, widest = shares(device)[:2]
    print(f"{how}: status {status}, {len(losses)} losses, last {losses[-1] if losses else '-'}; resolved "
          f"{100 * share:.0f} %, widest of 5 % {width_text(widest)}; {'; '.join(said)[:1500]}", flush=True)
    return losses


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", nargs="?")
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--model", default="wide")
    parser.add_argument("--load")
    parser.add_argument("--served", action="store_true")
    args = parser.parse_args()
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
    if args.load == "serve":
        return serve()
    if args.served:
        return served(args)
    if args.load:
        return train(args.model, args.steps, args.steps // 2, args.load)
    all_losses = {how: run(args, how) for how in ("none", "call", "pause")}
    for how in ("call", "pause"):
        same = sum(a == b for a, b in zip(all_losses["none"], all_losses[how]))
        print(f"{how}: {same} of {len(all_losses['none'])} losses are those without re-runs, bit for bit")


if __name__ == "__main__":
    main()
