#!/usr/bin/env python3
"""Joules per request against the truth, on a GPU: transformers' continuous batching of a random-weight Llama.

    python tests/gpu/serving_proof.py [--out FOLDER] [--seconds 420] [--tiny]

(a) identical requests: how far their joules are apart. (b) An arrival trace is replayed without one class of requests:
what is saved against what was predicted. (c) Random mixes: class means against least squares on the mixes' energies.
(d) Other rules of division on the traces of (b). (e) Throughput with and without recording. Writes serving_proof.json.
Needs torch, transformers and an installed jouleprof; --tiny is a test of the script itself on any machine."""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import time

# Prompt and answer in tokens, arrivals a second.
CLASSES = {"long_prefill": (2048, 8, 3.0), "long_decode": (64, 128, 3.0), "chat": (256, 32, 4.0)}
ARRIVALS = 4.0  # seconds of arrivals in a replay
SHARES = {"a": 0.06, "e": 0.16, "b": 0.56, "c": 0.22}  # of the time


def build(tiny):
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    # 7 billion parameters: of a smaller model the steps wait for the host, and idle power drifts by more than they draw.
    size = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
                num_key_value_heads=2) if tiny else dict(hidden_size=4096, intermediate_size=14336,
                                                         num_hidden_layers=32, num_attention_heads=32,
                                                         num_key_value_heads=8)
    config = LlamaConfig(vocab_size=32000, max_position_embeddings=8192, attn_implementation="paged|sdpa",
                         bos_token_id=None, eos_token_id=None, pad_token_id=None, **size)
    torch.manual_seed(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with torch.device(device):
        torch.set_default_dtype(torch.bfloat16 if device == "cuda" else torch.float32)
        model = LlamaForCausalLM(config).eval()
        torch.set_default_dtype(torch.float32)
    generation = GenerationConfig(do_sample=False, eos_token_id=-1, pad_token_id=0, max_new_tokens=16)
    return model, generation


class Engine:
    def __init__(self, tiny):
        import jouleprof
        import jouleprof.serving.transformers as adapter
        from transformers import ContinuousBatchingConfig

        self.tiny = tiny
        self.adapter = adapter
        self.recorder = adapter.attach(model="llama-random")
        self.model, generation = build(tiny)
        options = dict(block_size=32, num_blocks=256, max_batch_tokens=256) if tiny else dict(
            num_blocks=400, max_batch_tokens=4096)
        config = ContinuousBatchingConfig(allow_block_sharing=False, **options)
        self.manager = self.model.init_continuous_batching(generation_config=generation,
                                                           continuous_batching_config=config)
        self.manager.start()
        self.monitor = jouleprof.Monitor("gpu")
        self.gpu = next(d.device for d in self.monitor.domains if d.kind == "gpu")
        self.random = random.Random(7)
        self.now = jouleprof.now

    def prompt(self, tokens):
        if self.tiny:
            tokens = max(tokens // 16, 2)
        return [self.random.randrange(10, 31000) for _ in range(tokens)]

    def add(self, id, tokens_in, tokens_out, tenant):
        with self.adapter.tenant(tenant):
            self.manager.add_request(self.prompt(tokens_in), request_id=id,
                                     max_new_tokens=max(tokens_out // 16, 2) if self.tiny else tokens_out)

    def wait(self, count, seconds=60):
        end = time.monotonic() + seconds
        while count > 0 and time.monotonic() < end:
            result = self.manager.get_result(timeout=0.05)
            if result is not None and result.is_finished():
                count -= 1
        if count:
            raise RuntimeError(f"{count} requests did not finish in {seconds} s")

    def joules(self, begin, end):
        return self.monitor.between(begin, end)[self.gpu].joules


def batch(engine, phase, requests):
    """Requests that all arrive at once; the interval until the last has finished."""
    begin = engine.now()
    for i, (kind, tokens_in, tokens_out) in enumerate(requests):
        engine.add(f"{phase}/{kind}/{i}", tokens_in, tokens_out, f"{phase}|{kind}")
    engine.wait(len(requests))
    end = engine.now()
    time.sleep(0.5)
    return {"phase": phase, "begin": begin, "end": end}


def identical(engine, deadline):
    out = []
    while not out or (time.monotonic() < deadline and len(out) < 3):
        out.append(batch(engine, f"a{len(out)}", [("same", 256, 128)] * 64))
    return out


def overhead(engine, deadline):
    """Tokens a second, with and without; which of a pair is first alternates."""
    requests = [("e", 128, 48)] * 32
    pairs = []
    batch(engine, "e-warm", requests)
    while time.monotonic() < deadline and len(pairs) < 12:
        pair = {}
        for recorded in ((True, False) if len(pairs) % 2 else (False, True)):
            if recorded:
                engine.adapter.attach(engine.recorder, model="llama-random")
            else:
                engine.adapter.detach()
            took = batch(engine, f"e{len(pairs)}", requests)
            pair["with" if recorded else "without"] = 1e9 * sum(r[2] for r in requests) / (took["end"] - took["begin"])
        pairs.append(pair)
    engine.adapter.attach(engine.recorder, model="llama-random")
    return pairs


def arrivals():
    rng = random.Random(3)
    trace = []
    for kind, (_, _, rate) in CLASSES.items():
        at = rng.expovariate(rate)
        while at < ARRIVALS:
            trace.append((at, kind))
            at += rng.expovariate(rate)
    return sorted(trace)


def replay(engine, phase, trace, span):
    begin = engine.now()
    start = time.monotonic()
    for i, (at, kind) in enumerate(trace):
        time.sleep(max(0.0, start + at - time.monotonic()))
        tokens_in, tokens_out, _ = CLASSES[kind]
        engine.add(f"{phase}/{kind}/{i}", tokens_in, tokens_out, f"{phase}|{kind}")
    engine.wait(len(trace))
    last = engine.now()
    if span is not None:
        time.sleep(max(0.0, start + span - time.monotonic()))
    end = begin + int((span or (time.monotonic() - start)) * 1e9)
    return {"phase": phase, "begin": begin, "end": end, "drained": (last - begin) / 1e9, "requests": len(trace)}


def deletion(engine, deadline):
    trace = arrivals()
    probe = replay(engine, "b-probe", trace, None)
    span = 1.15 * probe["drained"] + 0.5
    rounds = []
    while True:
        begun = time.monotonic()
        n = len(rounds)
        order = ["full", *CLASSES]
        engine.random.shuffle(order)
        runs = {}
        for name in order:
            kept = [item for item in trace if item[1] != name]
            runs[name] = replay(engine, f"b{n}-{name}", kept, span)
        for run in runs.values():
            run["joules"] = engine.joules(run["begin"], run["end"])
        rounds.append(runs)
        if len(rounds) >= 10 or time.monotonic() + (time.monotonic() - begun) > deadline:
            return {"span": span, "rounds": rounds}


def mixes(engine, deadline):
    rng = random.Random(11)
    out = []
    while len(out) < 12 and (len(out) < 4 or time.monotonic() < deadline):
        counts = {kind: rng.randint(0, 16) for kind in CLASSES}
        if not any(counts.values()):
            continue
        requests = [(kind, *CLASSES[kind][:2]) for kind, count in counts.items() for _ in range(count)]
        rng.shuffle(requests)
        mix = batch(engine, f"c{len(out)}", requests)
        mix["counts"] = counts
        out.append(mix)
    return out


def work(path, seconds, tiny):
    began = time.monotonic()
    engine = Engine(tiny)
    batch(engine, "warm", [("warm", 256, 64)] * 8)
    batch(engine, "warm2", [(kind, *CLASSES[kind][:2]) for kind in CLASSES] * 4)
    idle_begin = engine.now()
    time.sleep(2)
    out = {"load_seconds": time.monotonic() - began, "idle": [idle_begin, engine.now()]}
    parts = {"a": identical, "e": overhead, "b": deletion, "c": mixes}
    end = time.monotonic()
    for name, part in parts.items():
        end = max(end, time.monotonic()) + seconds * SHARES[name]
        try:
            out[name] = part(engine, end)
        except Exception as error:  # the other parts are worth having
            out[name + "_error"] = repr(error)
        with open(path, "w") as file:
            json.dump(out, file)
    out["idle_watts"] = engine.joules(*out["idle"]) / ((out["idle"][1] - out["idle"][0]) / 1e9)
    for run in out.get("c", []):
        run["joules"] = engine.joules(run["begin"], run["end"])
    out["cuda_graphs"] = repr(getattr(engine.manager, "use_cuda_graph", None))
    processor = engine.manager.batch_processor
    out["asynchronous"] = bool(processor.use_async_batching)
    with contextlib.suppress(Exception):
        engine.manager.stop(block=True, timeout=5)
    engine.recorder.close()
    with open(path, "w") as file:
        json.dump(out, file)


def mean_and_half(values):
    """Mean and half of its 95 % interval (normal)."""
    mean = statistics.fmean(values)
    half = 1.96 * statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
    return {"mean": mean, "half": half, "values": values}


def least_squares(rows, values):
    """By the normal equations; a few unknowns."""
    n = len(rows[0])
    a = [[sum(r[i] * r[j] for r in rows) for j in range(n)] + [sum(r[i] * v for r, v in zip(rows, values))]
         for i in range(n)]
    for i in range(n):
        best = max(range(i, n), key=lambda r: abs(a[r][i]))
        a[i], a[best] = a[best], a[i]
        for r in range(n):
            if r != i and a[i][i]:
                factor = a[r][i] / a[i][i]
                a[r] = [x - factor * y for x, y in zip(a[r], a[i])]
    return [a[i][n] / a[i][i] if a[i][i] else None for i in range(n)]


def judge(out, report):
    requests = report["requests"]
    tenants = {t["tenant"]: t for t in report["tenants"]}
    by_phase = {}
    for r in requests:
        by_phase.setdefault(r["request"].split("/")[0], []).append(r)
    found = {"boards": report["boards"], "warnings": report["warnings"], "load_seconds": out["load_seconds"],
             "idle_watts": out["idle_watts"], "asynchronous": out["asynchronous"],
             "errors": {k: v for k, v in out.items() if k.endswith("_error")}}
    board = report["boards"][0]
    parts = sum(round(1e6 * board[k]) for k in ("idle_joules", "between_joules", "requests_joules",
                                                "unattributed_joules"))
    found["sum_minus_counter_microjoules"] = parts - round(1e6 * board["energy_joules"])
    found["sum_of_requests_minus_part_microjoules"] = (sum(round(1e6 * r["energy_joules"]) for r in requests)
                                                       - round(1e6 * board["requests_joules"]))
    found["a"] = []
    for run in out.get("a", []):
        joules = [r["energy_joules"] for r in by_phase.get(run["phase"], [])]
        if len(joules) > 1:
            mean = statistics.fmean(joules)
            found["a"].append({"requests": len(joules), "mean_joules": mean,
                               "spread_percent": 100 * statistics.pstdev(joules) / mean,
                               "range_percent": 100 * (max(joules) - min(joules)) / mean})
    pairs = out.get("e", [])
    if pairs:
        found["e"] = mean_and_half([100 * (1 - p["with"] / p["without"]) for p in pairs])
        found["e"]["tokens_per_second"] = statistics.fmean(p["without"] for p in pairs)
    deletion_of(out, tenants, by_phase, found)
    mixes_of(out, by_phase, found)
    return found


def deletion_of(out, tenants, by_phase, found):
    if "b" not in out:
        return
    rounds = out["b"]["rounds"]
    span = out["b"]["span"]
    full_active = [r["full"]["joules"] - out["idle_watts"] * span for r in rounds]
    found["b"] = {"rounds": len(rounds), "span_seconds": span,
                  "full_joules": mean_and_half([r["full"]["joules"] for r in rounds])}
    found["d"] = {}
    for kind in CLASSES:
        saved, marginal, fair = [], [], []
        rules = {"token_pool": [], "per_output_token": [], "life_of_request": []}
        for n, runs in enumerate(rounds):
            own = tenants.get(f"b{n}-full|{kind}")
            everyone = by_phase.get(f"b{n}-full", [])
            if own is None or not everyone:
                continue
            saved.append(runs["full"]["joules"] - runs[kind]["joules"])
            marginal.append(own["marginal_joules"])
            fair.append(own["energy_joules"])
            mine = [r for r in everyone if r["tenant"].endswith("|" + kind)]
            tokens = sum(r["tokens_in"] + r["tokens_out"] for r in everyone)
            answers = sum(r["tokens_out"] for r in everyone)
            active = full_active[n]
            rules["token_pool"].append(active * sum(r["tokens_in"] + r["tokens_out"] for r in mine) / tokens)
            rules["per_output_token"].append(active * sum(r["tokens_out"] for r in mine) / answers)
            mean_watts = runs["full"]["joules"] / span
            rules["life_of_request"].append(sum(
                mean_watts * (r["finish_nanoseconds"] - r["arrival_nanoseconds"]) / 1e9
                for r in mine if r["finish_nanoseconds"]))
        if not saved:
            continue
        mean_saved = statistics.fmean(saved)
        found["b"][kind] = {"saved": mean_and_half(saved), "marginal": mean_and_half(marginal),
                            "fair_share": mean_and_half(fair),
                            "marginal_error_percent": 100 * (statistics.fmean(marginal) / mean_saved - 1),
                            "fair_share_error_percent": 100 * (statistics.fmean(fair) / mean_saved - 1)}
        found["d"][kind] = {name: {"joules": statistics.fmean(values),
                                   "error_percent": 100 * (statistics.fmean(values) / mean_saved - 1)}
                            for name, values in rules.items()}


def mixes_of(out, by_phase, found):
    runs = [run for run in out.get("c", []) if run["phase"] in by_phase]
    if len(runs) < 4:
        return
    rows, values = [], []
    shares = {kind: [] for kind in CLASSES}
    marginals = {kind: [] for kind in CLASSES}
    for run in runs:
        rows.append([run["counts"][kind] for kind in CLASSES])
        values.append(run["joules"] - out["idle_watts"] * (run["end"] - run["begin"]) / 1e9)
        for r in by_phase[run["phase"]]:
            kind = r["tenant"].split("|")[1]
            shares[kind].append(r["energy_joules"])
            marginals[kind].append(r["marginal_joules"])
    fitted = least_squares(rows, values)
    found["c"] = {"mixes": len(runs)}
    for kind, truth in zip(CLASSES, fitted):
        if truth and shares[kind]:
            mean = statistics.fmean(shares[kind])
            found["c"][kind] = {"least_squares_joules": truth, "mean_share_joules": mean,
                                "mean_marginal_joules": statistics.fmean(marginals[kind]),
                                "error_percent": 100 * (mean / truth - 1)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", default=os.environ.get("OUT", "."))
    parser.add_argument("--seconds", type=float, default=360, help="of all parts together")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        return work(given.work, given.seconds, given.tiny)
    os.makedirs(given.out, exist_ok=True)
    recording = os.path.join(given.out, "serving.jprof")
    data = os.path.join(given.out, "serving_work.json")
    tool = [os.environ["JOULEPROF_TOOL"]] if "JOULEPROF_TOOL" in os.environ else [sys.executable, "-m", "jouleprof"]
    command = [sys.executable, os.path.abspath(__file__), "--work", data, "--seconds", str(given.seconds)]
    if given.tiny:
        command.append("--tiny")
    began = time.monotonic()
    ran = subprocess.run([*tool, "run", "--serving", "--force", "-o", recording, "--", *command])
    print(f"the work took {time.monotonic() - began:.0f} s, exit status {ran.returncode}", flush=True)
    began = time.monotonic()
    text = subprocess.run([*tool, "report", recording, "--by", "tenant", "--top", "30"], capture_output=True, text=True)
    print(text.stdout, text.stderr, flush=True)
    report = subprocess.run([*tool, "report", recording, "--by", "request", "--json"], capture_output=True, text=True)
    print(f"reports took {time.monotonic() - began:.1f} s", flush=True)
    if report.returncode:
        sys.exit(report.stderr)
    with open(os.path.join(given.out, "serving_requests.json"), "w") as file:
        file.write(report.stdout)
    with open(data) as file:
        found = judge(json.load(file), json.loads(report.stdout))
    with open(os.path.join(given.out, "serving_proof.json"), "w") as file:
        json.dump(found, file, indent=1)
    print(json.dumps(found, indent=1))
    return None


if __name__ == "__main__":
    main()
