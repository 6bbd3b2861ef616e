#!/usr/bin/env python3
"""How much of the energy of a program's layers and kernels is resolved, on a real NVIDIA GPU.

    resolved.py JOULEPROF OUT [--seconds 8] [--models deit,bert,llama] [--work inference,training,generate]
                [--runs first,re-runs,remembered] [--cpp REPLAY]

Runs each program (random weights) three times under `run --kernels --layers`: without anything remembered, with
isolated re-runs (`--replay`), and again without re-runs, with the kernels that the second run has
remembered. Prints a Markdown table: the share of the active energy in rows that are resolved, by layer and by
kernel; the widest interval of rows with 5 % of the energy or more; seconds and joules of the re-runs; how the
kernels' energies compare with those of their own loops by the sensors; the sum of all parts against the
counter; and the energy-weighted difference of the third run's kernels from the second's, by launch. Other models:
blocks (work: training, compile, reduce), wide (a Llama of 12 layers of 2048), jax, cupy, triton, numba, ranks (two on two
GPUs, a line for each), and cpp (graph, streams), which needs the program that `nvcc replay.cu` makes.

    resolved.py JOULEPROF OUT --broken [--cpp REPLAY]

Programs whose kernels cannot be run again, and ends that take no re-runs: their status and output have to be
what they are without `--replay`, and their recordings readable. Changes no setting of the card.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from replay_loops import loops
from replay_run import kernel_key

BIG = 0.05  # of the energy
SAME_CLOCK = 0.03  # relative
STATUS = 3  # of all programs; the tool must return it


def deit(torch):
    import timm

    model = timm.create_model("deit_base_patch16_224")
    return model, lambda n: {"x": torch.randn(n, 3, 224, 224, device="cuda", dtype=torch.bfloat16)}


def bert(torch):
    import transformers

    model = transformers.BertModel(transformers.BertConfig())
    return model, lambda n: {"input_ids": torch.randint(0, 30000, (n, 128), device="cuda")}


def llama(torch):
    import transformers

    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=12, num_attention_heads=16,
        num_key_value_heads=16))
    return model, lambda n: {"input_ids": torch.randint(0, 32000, (n, 128), device="cuda")}


def wide(torch):
    import transformers

    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=32000, hidden_size=2048, intermediate_size=5632, num_hidden_layers=12, num_attention_heads=16,
        num_key_value_heads=16))
    return model, lambda n: {"input_ids": torch.randint(0, 32000, (8, 256), device="cuda")}


MODELS = {"deit": deit, "bert": bert, "llama": llama, "wide": wide}


def repeat(seconds, step, wait):
    step()
    wait()
    end = time.time() + seconds
    while time.time() < end:
        for _ in range(5):
            step()
        wait()


def blocks(work, seconds):
    """Eight transformer blocks of 1024: training (eager), compile (training), reduce (CUDA graphs)."""
    import torch

    from replay_run import blocks as make

    torch.manual_seed(0)
    model, inputs = make(torch)
    model, x = model.cuda().bfloat16(), inputs()
    if work == "reduce":
        run = torch.compile(model.eval(), mode="reduce-overhead")

        def step():
            with torch.no_grad():
                torch.compiler.cudagraph_mark_step_begin()
                run(x)
    else:
        run = torch.compile(model) if work == "compile" else model
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)

        def step():
            run(x).float().square().mean().backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
    for _ in range(4):
        step()
    repeat(seconds, step, torch.cuda.synchronize)


def jax(work, seconds):
    """A perceptron of 8 blocks of 1024, flax and optax."""
    import flax.linen as nn
    import jax
    import jax.numpy as jnp
    import optax

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            for _ in range(8):
                y = nn.gelu(nn.Dense(4096, dtype=jnp.bfloat16)(nn.LayerNorm(dtype=jnp.bfloat16)(x)))
                x = x + nn.Dense(1024, dtype=jnp.bfloat16)(y)
            return nn.Dense(1000, dtype=jnp.float32)(x.mean(1))

    net, key = Net(), jax.random.PRNGKey(0)
    x, y = jax.random.normal(key, (64, 256, 1024)), jax.random.randint(key, (64,), 0, 1000)
    state = {"p": net.init(key, x)}
    optimizer = optax.adamw(1e-4)
    state["s"] = optimizer.init(state["p"])

    def loss(p):
        return optax.softmax_cross_entropy_with_integer_labels(net.apply(p, x), y).mean()

    @jax.jit
    def train(p, s):
        value, gradient = jax.value_and_grad(loss)(p)
        updates, s = optimizer.update(gradient, s, p)
        return optax.apply_updates(p, updates), s, value

    infer = jax.jit(net.apply)

    def step():
        if work == "training":
            state["p"], state["s"], state["last"] = train(state["p"], state["s"])
        else:
            state["last"] = infer(state["p"], x)

    repeat(seconds, step, lambda: state["last"].block_until_ready())


def cupy(work, seconds):
    """Elementwise, reduction and gemm; work=flag: with a kernel that waits for a flag that is set once."""
    import cupy

    a = cupy.random.rand(4096, 4096, dtype=cupy.float32)
    b = cupy.random.rand(4096, 4096, dtype=cupy.float32)
    waits = cupy.RawKernel("""extern "C" __global__ void waits(volatile int* flag) {
        long long begin = clock64(); while (clock64() - begin < 300000) {} while (*flag == 0) {} *flag = 0; }""",
                           "waits")
    flag = cupy.zeros(1, dtype=cupy.int32)

    def step():
        cupy.tanh(a) * b + a
        a.sum(axis=1)
        a @ b
        if work == "flag":
            flag.fill(1)
            waits((1,), (1,), (flag,))

    repeat(seconds, step, cupy.cuda.Device().synchronize)


def triton(work, seconds):
    """Two kernels of its compiler's."""
    import torch
    import triton
    import triton.language

    globals()["tl"] = triton.language  # where kernels look for names

    @triton.jit
    def gelu(x, y, n, SIZE: tl.constexpr):
        at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        v = tl.load(x + at, mask=at < n)
        tl.store(y + at, v * tl.sigmoid(1.702 * v), mask=at < n)

    @triton.jit
    def softmax(x, y, SIZE: tl.constexpr):
        at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
        v = tl.exp(tl.load(x + at) - 4.0)
        tl.store(y + at, v / tl.sum(v))

    x = torch.randn(16384, 4096, device="cuda")
    y = torch.empty_like(x)

    def step():
        gelu[(x.numel() // 1024,)](x, y, x.numel(), SIZE=1024)
        softmax[(x.shape[0],)](x, y, SIZE=4096)

    repeat(seconds, step, torch.cuda.synchronize)


def numba(work, seconds):
    """Two kernels of its compiler's: a Mandelbrot set and a stencil."""
    import numpy

    if not hasattr(numpy, "row_stack"):  # which older versions of Numba look for
        numpy.row_stack = numpy.vstack
    import numba
    from numba import cuda

    @cuda.jit
    def mandelbrot(image, most):
        x, y = cuda.grid(2)
        if x < image.shape[0] and y < image.shape[1]:
            c = complex(3.0 * x / image.shape[0] - 2.0, 2.0 * y / image.shape[1] - 1.0)
            z = 0j
            count = 0
            while count < most and z.real * z.real + z.imag * z.imag < 4.0:
                z = z * z + c
                count += 1
            image[x, y] = count

    @cuda.jit
    def stencil(a, b):
        x, y = cuda.grid(2)
        if 0 < x < a.shape[0] - 1 and 0 < y < a.shape[1] - 1:
            b[x, y] = numba.float32(0.25) * (a[x - 1, y] + a[x + 1, y] + a[x, y - 1] + a[x, y + 1])

    image = cuda.device_array((4096, 4096), dtype=numpy.int32)
    a = cuda.to_device(numpy.random.rand(8192, 8192).astype(numpy.float32))
    b = cuda.device_array_like(a)

    def step():
        mandelbrot[(256, 256), (16, 16)](image, 64)
        stencil[(512, 512), (16, 16)](a, b)

    repeat(seconds, step, cuda.synchronize)


def ranks(work, seconds):
    """Six blocks of 1024 under DistributedDataParallel, by two ranks on two GPUs: about 60 steps a second."""
    if "LOCAL_RANK" not in os.environ:
        subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2",
                        *sys.argv], check=True)
        return
    import torch

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.LayerNorm(1024)
            self.up, self.down = torch.nn.Linear(1024, 4096), torch.nn.Linear(4096, 1024)

        def forward(self, x):
            return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))

    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    torch.distributed.init_process_group("nccl")
    torch.manual_seed(0)
    model = torch.nn.Sequential(*[Block() for _ in range(6)]).cuda().bfloat16()
    model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    x = torch.randn(8192, 1024, device="cuda", dtype=torch.bfloat16)
    for _ in range(int(60 * seconds)):
        loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    print(f"rank {rank} loss {loss.item():.9f}", file=sys.stderr)
    torch.distributed.destroy_process_group()
    sys.exit(0)


PROGRAMS = {"blocks": blocks, "jax": jax, "cupy": cupy, "triton": triton, "numba": numba, "ranks": ranks}


def tensor_of(output):
    for name in ("logits", "last_hidden_state"):
        if hasattr(output, name):
            return getattr(output, name)
    return output


def load(name, work, seconds):
    if name in PROGRAMS:
        PROGRAMS[name](work, seconds)
        print(f"{name} {work} ended")
        sys.exit(STATUS)
    import torch

    torch.manual_seed(0)
    model, make = MODELS[name](torch)
    model = model.cuda().to(torch.bfloat16).train(work == "training")
    inputs = make(4 if work == "generate" else 32)
    args = (inputs.pop("x"),) if "x" in inputs else ()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    end, count = time.time() + seconds, 0
    while time.time() < end:
        if work == "training":
            tensor_of(model(*args, **inputs)).float().pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        else:
            with torch.no_grad():
                if work == "generate":
                    model.generate(**inputs, max_new_tokens=64, do_sample=False)
                else:
                    model(*args, **inputs)
        torch.cuda.synchronize()
        count += 1
    print(f"{name} {work} ended")
    sys.exit(STATUS)


def report(tool, file, *more):
    done = subprocess.run([tool, "report", str(file), "--json", *more], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return [device for device in json.loads(done.stdout)["devices"] if device["domain"] == "gpu"]


def program(args, model, work):
    if model == "cpp":
        return [args.cpp, str(args.seconds), work]
    return [sys.executable, __file__, "--load", str(args.seconds), "--models", model, "--work", work]


def measured(args, model, work, kind, home, *options):
    file = args.out / f"{model}-{work}-{kind}.jprof"
    command = [args.tool, "run", "--kernels", "--layers", *options, "-q", "--force", "-o", str(file), "--",
               *program(args, model, work)]
    begin = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ, HOME=str(home)))
    wall = time.monotonic() - begin
    wrong = []
    if done.returncode != STATUS:
        wrong.append(f"status {done.returncode}")
    if work + " ended" not in done.stdout or len(done.stdout.splitlines()) != 1:
        wrong.append(f"output {done.stdout!r}")
    if wrong or args.verbose:
        print(f"{model} {work} {kind}: {', '.join(wrong)} {done.stderr[-1500:]}", flush=True)
    try:
        return wall, report(args.tool, file, "--by", "layer"), report(args.tool, file, "--by", "kernel"), file
    except (SystemExit, IndexError, KeyError) as error:
        print(f"{model} {work} {kind}: no report: {error!r} {done.stderr[-800:]}", flush=True)
        return None


def against_loops(args, file, kernels):
    """Of kernels against their own loops by the sensors, by energy and by power: "energy-weighted difference,
    how many lie within their intervals of how many". In the program a launch takes longer, and its clock may be
    another: by power the loops of about the program's clock count, for the time that launches take there."""
    rows = {kernel_key(row): row for row in kernels["rows"]}
    own = loops(args.tool, file, kernels["idle_watts"])
    texts = []
    for by_power in False, True:
        off = whole = within = pairs = 0
        for loop in own:
            row = rows.get(loop.name)
            if not row or not row["energy_joules"] or not row["launches"]:
                continue
            if by_power and (loop.clock is None or abs(loop.clock - 1) > SAME_CLOCK):
                continue
            there = loop.joules / loop.calls * row["launches"] * (loop.longer if by_power else 1)
            off += abs(row["energy_joules"] - there)
            whole += there
            pairs += 1
            within += abs(row["energy_joules"] - there) <= row["repeatability_joules"]
        texts.append(f"{100 * off / whole:.1f} %, {within} of {pairs}" if whole else "-")
    return "; ".join(texts)


def shares(device):
    """(resolved share of the rows' energy, widest relative interval of large rows or None where none is)."""
    rows = [row for row in device["rows"] if row["energy_joules"] is not None]
    whole = sum(row["energy_joules"] for row in rows) + sum(
        row.get("group_joules") or 0 for row in device["rows"] if row["energy_joules"] is None)
    whole = max(whole, device["kernels_joules"], 1e-9)
    resolved = sum(row["energy_joules"] for row in rows if row["resolvable"] is not False)
    widest = max((row["repeatability_joules"] / row["energy_joules"] for row in rows
                  if row["energy_joules"] >= BIG * whole), default=None)
    return resolved / whole, widest


def width_text(ratio):
    return "-" if ratio is None else f"±{100 * ratio:.0f} %"


def resolved_rows(device):
    """Of kernels by their grid and block, too: of several of one name each is its own."""
    return {(row["name"], row["detail"]): row for row in device["rows"]
            if row["energy_joules"] and row["resolvable"] is not False}


def difference(one, other):
    """Of the energy of a launch, of each kernel that both resolve: (weighted by its energy in `one`, how many lie
    within both intervals, how many there are)."""
    a, b = resolved_rows(one), resolved_rows(other)
    off = whole = within = pairs = 0
    for key in a.keys() & b.keys():
        joules, there = (row["energy_joules"] / row["launches"] for row in (a[key], b[key]))
        errors = sum((row["interval_joules"][1] - row["energy_joules"]) / row["launches"] for row in (a[key], b[key]))
        off += abs(joules - there) * a[key]["launches"]
        whole += a[key]["energy_joules"]
        pairs += 1
        within += abs(joules - there) <= errors
    return (off / whole if whole else float("nan")), within, pairs


def line(args, name, kind, wall, layers, kernels, file, again):
    """Prints a board's line of the table, and its warnings; without `file` no comparison with the loops."""
    (share, widest), (layer_share, layer_widest) = shares(kernels), shares(layers)
    replay, loop = "-", "-"
    if layers["replay_joules"] is not None:
        replay = f"{layers['replay_seconds']:.1f} s, {layers['replay_joules']:.0f} J"
    if file and layers["replay_joules"] is not None:
        loop = against_loops(args, file, kernels)
    apart = "-"
    if again:
        off, within, pairs = difference(again, kernels)
        apart = f"{100 * off:.1f} %, {within} of {pairs}"
    print(f"| {name} | {kind} | {100 * share:.0f} % | {width_text(widest)} "
          f"| {100 * layer_share:.0f} % | {width_text(layer_widest)} | {replay} | {wall:.0f} s "
          f"| {loop} | {1 - kernels['unattributed_joules'] / kernels['measured_joules']:.3f} "
          f"| {apart} |", flush=True)
    if args.verbose:
        for text in kernels["warnings"]:
            print(f"    {text[:600]}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", nargs="?")
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--models", default="deit,bert,llama")
    parser.add_argument("--work", default="inference,training,generate")
    parser.add_argument("--runs", default="first,re-runs,remembered")
    parser.add_argument("--load", type=float)
    parser.add_argument("--cpp")
    parser.add_argument("--broken", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    if args.load:
        load(args.models, args.work, args.load)
        return
    args.out.mkdir(parents=True, exist_ok=True)
    if args.broken:
        sys.exit(broken(args))
    print("| program | run | kernels resolved | widest, kernels of 5 % | layers resolved | widest | re-runs | wall "
          "| against own loops, within; by power at the same clock | sum/counter | launches against the run with re-runs, within |\n"
          "|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for model in args.models.split(","):
        for work in args.work.split(","):
            if work not in WORK.get(model, ("inference", "training")):
                continue
            home = args.out / f"home-{model}-{work}"
            home.mkdir(exist_ok=True)
            again = None
            for kind, options in (("first", ["--no-memory"]), ("re-runs", ["--replay"]), ("remembered", [])):
                found = measured(args, model, work, kind, home, *options) if kind in args.runs.split(",") else None
                if found is None:
                    continue
                wall, layers, kernels, file = found
                again = kernels if kind == "re-runs" else again
                for n, (layer, kernel) in enumerate(zip(layers, kernels)):
                    line(args, f"{model} {work}" + (f", gpu{n}" if n else ""), kind, wall, layer, kernel,
                         file if len(kernels) == 1 else None, again[n] if kind == "remembered" and again else None)


WORK = {"llama": ("inference", "training", "generate"), "blocks": ("training", "compile", "reduce"),
        "wide": ("training",), "ranks": ("training",), "cupy": ("loop",), "triton": ("loop",), "numba": ("loop",),
        "cpp": ("graph", "streams")}


def broken(args):
    """Programs that are no good to run again. Returns how many did not end as they do alone."""
    wrong = 0
    # What runs, the signal that is sent, and after which text on stderr or how many seconds.
    for model, work, sent in (("cpp", "flag", None), ("cpp", "assert", None), ("cpp", "leave", None),
                              ("cpp", "abort", None), ("cupy", "flag", None), ("cpp", "streams", signal.SIGTERM)):
        file = args.out / f"{model}-{work}-broken.jprof"
        alone = subprocess.run(program(args, model, work), capture_output=True, text=True)
        begin = time.monotonic()
        child = subprocess.Popen(
            [args.tool, "run", "--kernels", "--replay", "--no-memory", "-q", "--force", "-o", str(file), "--",
             *program(args, model, work)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if sent:
            time.sleep(args.seconds + 6)  # re-runs are under way
            child.send_signal(sent)
        try:
            out, err = child.communicate(timeout=90)
        except subprocess.TimeoutExpired:
            child.kill()
            out, err = child.communicate()
        expected = 128 + sent if sent else alone.returncode if alone.returncode >= 0 else 128 - alone.returncode
        same = child.returncode in (expected, -(sent or 0)) and (out == alone.stdout or sent)
        readable = subprocess.run([args.tool, "report", str(file), "--by", "kernel"], capture_output=True).returncode
        wrong += not same or readable != 0
        print(f"| {model} {work}{f', signal {int(sent)}' if sent else ''} | status {child.returncode}, alone "
              f"{alone.returncode} | output {'same' if out == alone.stdout else repr(out)} | recording "
              f"{'valid' if readable == 0 else 'NOT READABLE'} | {time.monotonic() - begin:.0f} s |", flush=True)
        print("   ", err.strip().replace("\n", "\n    ")[-900:], flush=True)
    return wrong


if __name__ == "__main__":
    main()
