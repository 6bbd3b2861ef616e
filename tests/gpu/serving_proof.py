#!/usr/bin/env python3
"""Joules per request against the truth, on a GPU: transformers' continuous batching of a random-weight Llama.

    python tests/gpu/serving_proof.py [--parts abce] [--classes chat,...] [--seconds 420] [--out FOLDER] [--tiny]

(a) Identical requests: how far their joules are apart. (b) An arrival trace is replayed without one class of requests,
in pairs: what is saved against what was predicted, and against other rules of division. (c) Random mixes on a server
that always has the same number of requests in flight, so that each step's fixed part goes to as many: class means
against least squares on the counter's energy. (e) The time of a step with and without recording, in alternating blocks.

One part in a call has the more pairs: --parts ae --seconds 200; --parts c --seconds 400; --parts b --classes chat
--seconds 450. Writes serving_proof.json. Needs torch, transformers 5.17 and an installed jouleprof; --tiny is a test of
the script itself on any machine."""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import time

from serving_engine import Engine, Starts

# Prompt and answer in tokens, and about the joules of one on an H100: mixes are random in energy.
CLASSES = {"long_prefill": (2048, 8, 60), "long_decode": (64, 128, 25), "chat": (256, 32, 8)}
# Arrivals a second of each class in the trace from which one is deleted: about half of the energy is its own.
TRACES = {"long_prefill": {"long_prefill": 3, "long_decode": 3, "chat": 4},
          "long_decode": {"long_prefill": 1.5, "long_decode": 6, "chat": 3},
          "chat": {"long_prefill": 1, "long_decode": 1, "chat": 12}}
SHARES = {"a": 0.08, "e": 0.3, "b": 0.9, "c": 0.8}  # of the time, relative to each other
PAIRS = 10
MIXES = 12
IN_FLIGHT = 32
BLOCKS = (64, 64, 40)  # of (e): requests, their prompt and answer


def batch(engine, phase, requests):
    """Requests that all arrive at once; the interval until the last has finished."""
    prompts = [engine.prompt(tokens_in) for _, tokens_in, _ in requests]  # made before: all are to be in one step
    begin = engine.now()
    for i, ((kind, _, tokens_out), prompt) in enumerate(zip(requests, prompts)):
        engine.add(f"{phase}/{kind}/{i}", prompt, tokens_out, f"{phase}|{kind}")
    engine.wait(len(requests))
    return {"phase": phase, "begin": begin, "end": engine.now()}


def identical(engine, end, _):
    same = [("same", 256, 128)] * 64
    batch(engine, "a-warm", same)
    out = []
    while not out or (time.monotonic() < end and len(out) < 3):
        time.sleep(0.5)
        out.append(batch(engine, f"a{len(out)}", same))
    return out


def overhead(engine, end, _):
    """Seconds a step, with and without, of blocks in which all requests decode; which is first is random."""
    count, tokens_in, tokens_out = BLOCKS
    pairs = []
    batch(engine, "e-warm", [("e", tokens_in, tokens_out)] * count)
    while len(pairs) < 2 or (time.monotonic() < end and len(pairs) < 60):
        pair = {}
        order = [True, False]
        engine.random.shuffle(order)
        for recorded in order:
            if recorded:
                engine.adapter.attach(engine.recorder, model="llama-random")
            else:
                engine.adapter.detach()
            del engine.submitted[:]
            batch(engine, f"e{len(pairs)}", [("e", tokens_in, tokens_out)] * count)
            stamps = engine.submitted[-(2 if engine.tiny else tokens_out - 8):]
            pair["with" if recorded else "without"] = (stamps[-1] - stamps[0]) / 1e9 / (len(stamps) - 1)
        pairs.append(pair)
    engine.adapter.attach(engine.recorder, model="llama-random")
    return pairs


def arrivals(rates, seconds, seed):
    rng = random.Random(seed)
    trace = []
    for kind, rate in rates.items():
        at = rng.expovariate(rate)
        while at < seconds:
            trace.append((at, kind))
            at += rng.expovariate(rate)
    return sorted(trace)


def replay(engine, phase, trace, span):
    begin = engine.now()
    start = time.monotonic()
    for i, (at, kind) in enumerate(trace):
        tokens_in, tokens_out, _ = CLASSES[kind]
        time.sleep(max(0.0, start + at - time.monotonic()))
        engine.add(f"{phase}/{kind}/{i}", engine.prompt(tokens_in), tokens_out, f"{phase}|{kind}")
    engine.wait(len(trace))
    drained = (engine.now() - begin) / 1e9
    if span is not None:
        time.sleep(max(0.0, start + span - time.monotonic()))
    return {"phase": phase, "begin": begin, "end": begin + int((span or drained) * 1e9), "drained": drained}


def deletion(engine, end, kinds):
    """Traces as long as ten pairs of each class have the time for: the first probe corrects the guess."""
    each = (end - time.monotonic()) / len(kinds) / (2 * PAIRS + 2)
    seconds = dict.fromkeys(kinds, 0.4 * each)
    traces, spans = {}, {}
    for attempt in range(2):
        for kind in kinds:
            traces[kind] = arrivals(TRACES[kind], seconds[kind], 3)
            drained = replay(engine, f"b-probe{attempt}", traces[kind], None)["drained"]
            spans[kind] = 1.15 * max(drained, seconds[kind]) + 0.3
            if attempt == 0:
                seconds[kind] *= min(max(0.75 * each / spans[kind], 0.3), 3)
    out = {kind: {"span": spans[kind], "requests": len(traces[kind]), "rounds": [], "late": 0} for kind in kinds}
    took = 0.0
    while all(len(part["rounds"]) < PAIRS for part in out.values()) and (
            took == 0 or time.monotonic() + took < end):
        began = time.monotonic()
        for kind in engine.random.sample(kinds, len(kinds)):
            n = len(out[kind]["rounds"])
            order = ["full", "without"]
            engine.random.shuffle(order)
            runs = {}
            for name in order:
                kept = [item for item in traces[kind] if name == "full" or item[1] != kind]
                runs[name] = replay(engine, f"b{n}-{kind}-{name}", kept, spans[kind])
                out[kind]["late"] += runs[name]["drained"] > spans[kind]
            out[kind]["rounds"].append(runs)
        for part in out.values():
            for run in part["rounds"][-1].values():
                run["joules"] = engine.joules(run["begin"], run["end"])
        took = time.monotonic() - began
    return out


def mixes(engine, end, _):
    """A closed loop: a request that ends makes room for the next of the mix, of which some always wait."""
    rng = random.Random(11)
    in_flight = 4 if engine.tiny else IN_FLIGHT
    before = engine.limit(in_flight)
    starts = Starts()
    engine.recorder.listen(starts)
    idle = [engine.idle_watts(2)]
    sent = done = 0
    seconds = (end - time.monotonic() - 10) / (MIXES + 0.5)
    windows = []
    for n in range(-1, MIXES):
        energies = [rng.expovariate(1) for _ in CLASSES]
        weights = [energy / CLASSES[kind][2] for energy, kind in zip(energies, CLASSES)]
        begin = engine.now()
        until = time.monotonic() + (seconds if n >= 0 else 0.5 * seconds)  # the first one fills the server
        while time.monotonic() < until:
            while sent - done < in_flight + 8:
                kind = rng.choices(list(CLASSES), weights)[0]
                tokens_in, tokens_out, _ = CLASSES[kind]
                engine.add(f"c/{kind}/{sent}", engine.prompt(tokens_in), tokens_out, "c|" + kind)
                sent += 1
            done += engine.finished(0.02)
        if n >= 0:
            windows.append({"begin": begin, "end": engine.now(), "weights": dict(zip(CLASSES, weights))})
    engine.wait(sent - done)
    engine.limit(before)
    idle.append(engine.idle_watts(2))
    for w in windows:
        w["joules"] = engine.joules(w["begin"], w["end"])
        w["in_a_step"] = statistics.fmean(n for begin, n in starts.sizes if w["begin"] <= begin < w["end"])
    starts = {id: at for id, at in starts.first.items() if id.startswith("c/")}
    return {"windows": windows, "idle_watts": idle, "in_flight": in_flight, "starts": starts}


def work(given):
    began = time.monotonic()
    engine = Engine(given.tiny)
    batch(engine, "warm", [("warm", 256, 64)] * 8)
    batch(engine, "warm2", [(kind, *CLASSES[kind][:2]) for kind in CLASSES] * 4)
    out = {"attention": engine.attention, "why_not_varlen": engine.why_not, "load_seconds": time.monotonic() - began}
    idle = [engine.idle_watts(2)]
    parts = {"a": identical, "e": overhead, "b": deletion, "c": mixes}
    chosen = [name for name in parts if name in given.parts]
    end = time.monotonic()
    for name in chosen:
        end = max(end, time.monotonic()) + given.seconds * SHARES[name] / sum(SHARES[n] for n in chosen)
        try:
            out[name] = parts[name](engine, end, given.classes.split(","))
        except Exception as error:  # the other parts are worth having
            out[name + "_error"] = repr(error)
        with open(given.work, "w") as file:
            json.dump(out, file)
    idle.append(engine.idle_watts(2))
    out["idle_watts"] = statistics.fmean(idle)
    with contextlib.suppress(Exception):
        engine.manager.stop(block=True, timeout=5)
    engine.recorder.close()
    with open(given.work, "w") as file:
        json.dump(out, file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.environ.get("OUT", "."))
    parser.add_argument("--parts", default="aebc")
    parser.add_argument("--classes", default=",".join(CLASSES), help="of (b)")
    parser.add_argument("--seconds", type=float, default=420, help="of all parts together")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        return work(given)
    from serving_judge import judge, lines

    os.makedirs(given.out, exist_ok=True)
    recording = os.path.join(given.out, "serving.jprof")
    data = os.path.join(given.out, "serving_work.json")
    tool = [os.environ["JOULEPROF_TOOL"]] if "JOULEPROF_TOOL" in os.environ else [sys.executable, "-m", "jouleprof"]
    command = [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--work", data]
    began = time.monotonic()
    ran = subprocess.run([*tool, "run", "--serving", "--force", "-o", recording, "--", *command])
    print(f"the work took {time.monotonic() - began:.0f} s, exit status {ran.returncode}", flush=True)
    began = time.monotonic()
    report = subprocess.run([*tool, "report", recording, "--by", "request", "--json"], capture_output=True, text=True)
    print(f"the report took {time.monotonic() - began:.1f} s", flush=True)
    if report.returncode:
        sys.exit(report.stderr)
    with open(os.path.join(given.out, "serving_requests.json"), "w") as file:
        file.write(report.stdout)
    with open(data) as file:
        found = judge(json.load(file), json.loads(report.stdout), list(CLASSES))
    with open(os.path.join(given.out, "serving_proof.json"), "w") as file:
        json.dump(found, file, indent=1)
    print(json.dumps({"boards": found["boards"], "warnings": found["warnings"]}, indent=1))
    print(*lines(found), sep="\n")
    return None


if __name__ == "__main__":
    main()
