#!/usr/bin/env python3
"""Whose energy is it: `run` and `serve` against loads of known owners on a real NVIDIA GPU.

    owners.py JOULEPROF OUT

1. One job whose processes follow each other, each 0.5, 2, 4, 15 or 60 s of work: the share of the board's energy
   above rest that `run` charges to the command, and that `serve` charges to the job's user (no job mapping).
2. The same work on a cold board, right after a burn, and while an idle program holds a context.
3. Two programs with known amounts of the same work at the same time, one under `run`, both under `serve`.
Needs nvcc. Changes no setting of the card.
"""

import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
LOOP = "n=$1; shift; i=0; while [ $i -lt $n ]; do \"$@\" >/dev/null; i=$((i+1)); done"
ROUNDS = {2: 8, 4: 5, 15: 2, 60: 1, 0.5: 40}  # the shortest last: the service learns rest from the others


def metrics(port):
    text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30).read().decode()
    out = {}
    for line in text.splitlines():
        found = re.match(r"(jouleprof_\w+)\{(.*)\} ([0-9.eE+-]+)", line)
        if found:
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', found[2]))
            out.setdefault(found[1], []).append((labels, float(found[3])))
    return out


def of_gpu(all_, name, **want):
    return sum(value for labels, value in all_.get(name, []) if labels.get("domain") == "gpu"
               and all(labels.get(k) == v for k, v in want.items()))


class Service:
    def __init__(self, tool, levels):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        self.process = subprocess.Popen([tool, "serve", "--listen", f"127.0.0.1:{self.port}", "--share", "off",
                                         "--level", levels])
        time.sleep(8)
        self.before = metrics(self.port)

    def end(self):
        time.sleep(12)
        metrics(self.port)  # a series begins at zero
        time.sleep(3)
        after = metrics(self.port)
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        return after

    def used(self, after, name, **want):
        return of_gpu(after, name, **want) - of_gpu(self.before, name, **want)


def measured(tool, out, name, command):
    """The GPU's figures of a recorded command."""
    path = out / f"{name}.json"
    subprocess.run([tool, "run", "--no-record", "--json", str(path), "--", *command], check=True,
                   stdout=subprocess.DEVNULL, stderr=open(out / f"{name}.txt", "w"))
    report = json.loads(path.read_text())
    gpu = next(d for d in report["domains"] if d["domain"] == "gpu")
    balance = gpu["balance"]
    above = gpu["energy_joules"] - (balance["rest_joules"] or balance["idle_joules"] or 0)
    return {"energy": gpu["energy_joules"], "above_rest": above, "held": gpu["held_joules"], "active": gpu["active_joules"],
            "command": balance["processes_joules"], "within": gpu.get("within_command_joules"),
            "others": balance["others_joules"], "unowned": balance.get("held_unowned_joules"),
            "unattributed": balance["unattributed_joules"], "division": gpu.get("command_division_interval_joules"),
            "warnings": report.get("warnings")}


def show(name, r):
    print(f"{name:28} energy {r['energy']:8.1f} J, above rest {r['above_rest']:8.1f} (held {r['held']}, active {r['active']}); "
          f"command {r['command']:8.1f} = {100 * r['command'] / r['above_rest']:5.1f} %, others {r['others']:.1f}, "
          f"held unowned {r['unowned']}, unattributed {r['unattributed']:.1f}, bounds {r['division']}", flush=True)


def main():
    tool, out = sys.argv[1], pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    duty = out / "duty"
    subprocess.run(["nvcc", "-O2", "-o", duty, HERE / "duty.cu"], check=True)
    results = {}

    print("1. processes that follow each other")
    for life, rounds in ROUNDS.items():
        service = Service(tool, "user,process,node")
        r = measured(tool, out, f"back_to_back_{life}", ["sh", "-c", LOOP, "loop", str(rounds), str(duty), str(life), "100"])
        after = service.end()
        total = service.used(after, "jouleprof_energy_joules_total")
        rest = service.used(after, "jouleprof_energy_joules_total", level="rest") or None  # not known yet
        user = service.used(after, "jouleprof_user_energy_joules_total", uid=str(os.getuid()))
        none = service.used(after, "jouleprof_unattributed_energy_joules_total")
        r["serve"] = {"energy": total, "rest": rest, "user": user, "unattributed": none}
        results[f"life {life}"] = r
        show(f"run, {rounds} x {life} s", r)
        share = "rest is not known" if rest is None else (
            f"rest {rest:.1f}, of the energy above it {100 * user / max(total - rest, 1e-9):.1f} %")
        print(f"{'serve':28} energy {total:8.1f} J, user {user:8.1f}, unattributed {none:.1f}; {share}", flush=True)

    print("2. the same work on three boards")
    for state in ("cold", "warm", "held"):
        time.sleep(15 if state != "warm" else 0)
        holder = None
        if state == "warm":
            subprocess.run([duty, "10", "100"], check=True, stdout=subprocess.DEVNULL)
        if state == "held":
            holder = subprocess.Popen([duty, "60", "0"], stdout=subprocess.DEVNULL)
            time.sleep(6)
        results[state] = measured(tool, out, state, [str(duty), "1.9", "90"])
        if holder:
            holder.kill()
            holder.wait()
        show(state, results[state])

    print("3. two programs at once")
    service = Service(tool, "process,node")
    other = subprocess.Popen([duty, "24", "30"], stdout=subprocess.PIPE, text=True)
    time.sleep(2)
    own = subprocess.run([tool, "run", "--no-record", "--json", str(out / "two.json"), "--", str(duty), "16", "60"],
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    report = json.loads((out / "two.json").read_text())
    work = int(own.stdout.split()[0]), int(other.communicate()[0])
    after = service.end()
    by_process = {labels["pid"]: value for labels, value in after["jouleprof_process_energy_joules_total"]
                  if labels.get("domain") == "gpu" and "pid" in labels and value > 1}
    gpu = next(d for d in report["domains"] if d["domain"] == "gpu")
    results["two"] = {"launches": work, "gpu": gpu, "serve": by_process}
    total = sum(by_process.values())
    print(f"launches {work}: {100 * work[0] / sum(work):.1f} % are of the first; serve: "
          f"{ {p: f'{v:.1f} J, {100 * v / total:.1f} %' for p, v in by_process.items()} } (the other ran for 24 s)")
    print("run:", {k: gpu[k] for k in ("energy_joules", "held_joules", "active_joules", "balance",
                                       "command_division_interval_joules")}, flush=True)
    (out / "owners.json").write_text(json.dumps(results, indent=1))
    duty.unlink()


if __name__ == "__main__":
    main()
