#!/usr/bin/env python3
"""`jouleprof run --layers --replay` on a real GPU: the effect of the replay, and that its energy is in no figure.

    replay_run.py JOULEPROF OUT [--model blocks|deit|bert] [--seconds 20] [--loop 0.4]

Runs a model of random weights, which repeats one forward pass, without and with replay. Compares the
energy of its layers and kernels in place with that of their loops by the sensors. Prints Markdown, and
exits with 1 on an error.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

from replay_loops import loops

STATUS = 3  # of the load; the tool must return it


def blocks(torch):
    """Twelve transformer blocks of 768, batch 32."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.fc1, self.act, self.fc2 = nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)

        def forward(self, x):
            b, n, width = x.shape
            q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            y = nn.functional.scaled_dot_product_attention(q, k, v)
            x = x + self.proj(y.transpose(1, 2).reshape(b, n, width))
            return x + self.fc2(self.act(self.fc1(self.norm2(x))))

    model = nn.Sequential(*[Block(768, 12) for _ in range(12)], nn.Linear(768, 1000))
    return model, lambda: torch.randn(32, 198, 768, device="cuda", dtype=torch.bfloat16)


def deit(torch):
    """DeiT-B, batch 32."""
    import timm

    model = timm.create_model("deit_base_patch16_224")
    return model, lambda: torch.randn(32, 3, 224, 224, device="cuda", dtype=torch.bfloat16)


def bert(torch):
    """BERT-B, 16 texts of 128 tokens."""
    import transformers

    model = transformers.BertModel(transformers.BertConfig())
    return model, lambda: torch.randint(0, 30000, (16, 128), device="cuda")


MODELS = {"blocks": blocks, "deit": deit, "bert": bert}


def load(name, seconds):
    import torch

    torch.manual_seed(0)
    model, make = MODELS[name](torch)
    model = model.cuda().to(torch.bfloat16).eval()
    inputs = make()
    end, count = time.time() + seconds, 0
    with torch.no_grad():
        while time.time() < end:
            model(inputs)
            torch.cuda.synchronize()
            count += 1
    print(f"{count} forward passes")
    sys.exit(STATUS)


def measured(args, name, *options):
    file = args.out / f"{args.model}-{name}.jprof"
    command = [args.tool, "run", "--kernels", "--layers", *options, "--force", "-o", file, "--idle",
               "2s", "--", sys.executable, __file__, "--load", str(args.seconds), "--model", args.model]
    done = subprocess.run(command, capture_output=True, text=True)
    print(f"{name}: status {done.returncode}, {done.stdout.strip()}")
    if done.returncode != STATUS:
        print(done.stderr)
        sys.exit(1)

    def report(*more):
        return json.loads(subprocess.run([args.tool, "report", file, "--json", *more], check=True,
                                         capture_output=True, text=True).stdout)

    return file, report(), *(report("--by", by)["devices"][0] for by in ("layer", "kernel"))


def micro(joules):
    return round(joules * 1e6)


def by_type(device):
    """Rows, joules, the widest interval as a part of its energy, of each type of layer."""
    found = {}
    for row in device["rows"]:
        if row["energy_joules"] is None or not row["detail"]:
            continue
        kind = row["name"].split(".")[-1]
        rows, joules, unresolved, worst = found.get(kind, (0, 0.0, 0, 0.0))
        part = row["repeatability_joules"] / row["energy_joules"] if row["energy_joules"] else 0
        found[kind] = (rows + 1, joules + row["energy_joules"],
                       unresolved + (row["resolvable"] is False), max(worst, part))
    return found


def types_table(without, replayed):
    print("\n| layers | rows | joules without | not resolvable | with replay, J | not resolvable "
          "| widest interval |\n|---|---|---|---|---|---|---|")
    before, after = by_type(without), by_type(replayed)
    for kind in sorted(after, key=lambda kind: -after[kind][1]):
        rows, joules, unresolved, worst = after[kind]
        _, joules0, unresolved0, _ = before.get(kind, (0, 0.0, 0, 0.0))
        print(f"| {kind} | {rows} | {joules0:.1f} | {unresolved0} | {joules:.1f} | {unresolved} "
              f"| {100 * worst:.0f} % |")


def kernel_key(row):
    """As replay_loops names kernels: the name, and six numbers of grid and block."""
    digits = "".join(c if c.isdigit() else " " for c in row["detail"] or "").split()
    return (row["symbol"] or row["name"], *(int(number) for number in digits))


def loops_table(title, found, rows, count):
    """Energy of one call in place, and in the loop; of what has both. `rows`: by the loop's name."""
    print(f"\n| {title} | of the energy | in place, mJ | 95 % | looped, mJ | difference |"
          "\n|---|---|---|---|---|---|")
    whole = sum(row["energy_joules"] or 0 for row in rows.values())
    off = looped = covered = pairs = 0
    for loop in sorted(found, key=lambda loop: -((rows.get(loop.name) or {}).get("energy_joules") or 0)):
        row = rows.get(loop.name)
        if not row or not row["energy_joules"] or not row[count]:
            continue
        here, there = row["energy_joules"] / row[count], loop.joules / loop.calls
        half = row["repeatability_joules"] / row[count]
        total = there * row[count]
        pairs, looped, off = pairs + 1, looped + total, off + abs(row["energy_joules"] - total)
        covered += abs(here - there) <= half
        print(f"| {row['name'][:70]} | {100 * row['energy_joules'] / whole:.1f} % | {1e3 * here:.4f} "
              f"| +-{100 * half / here:.0f} % | {1e3 * there:.4f} | {100 * (here / there - 1):+.1f} % |")
    if looped:
        print(f"\nenergy-weighted difference {100 * off / looped:.1f} %, within the interval {covered} of {pairs}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", nargs="?")
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--model", choices=list(MODELS), default="blocks")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--loop", type=float, default=0.4)
    parser.add_argument("--load", type=float)
    args = parser.parse_args()
    if args.load:
        load(args.model, args.load)
    args.out.mkdir(parents=True, exist_ok=True)
    print(f"### {MODELS[args.model].__doc__}\n")
    _, whole0, without, _ = measured(args, "without")
    file, whole1, replayed, kernels = measured(args, "with", f"--replay={args.loop}s")
    types_table(without, replayed)
    kernel_loops = loops(args.tool, file, replayed["idle_watts"])
    loops_table("kernel", kernel_loops, {kernel_key(row): row for row in kernels["rows"]}, "launches")
    print(f"\nreplay: {replayed['replay_joules']} J over {replayed['replay_seconds']} s; "
          f"measured {replayed['measured_joules']} J, unattributed {replayed['unattributed_joules']} J")
    for text in [*whole1["warnings"], *replayed["warnings"]]:
        print(f"warning: {text}")
    wrong = []
    for device in (without, replayed):
        parts = sum(micro(device[f"{part}_joules"])
                    for part in ("idle", "kernels", "idle_between_launches", "unattributed"))
        if parts != micro(device["measured_joules"]):
            wrong.append("the parts do not sum to the whole")
    if not replayed["replay_joules"] or without["replay_joules"] is not None:
        wrong.append("the replay is missing, or was not requested")
    if not kernel_loops:
        wrong.append("no kernel was run alone")
    if abs(replayed["duration_seconds"] - without["duration_seconds"]) > 0.05 * args.seconds + 0.5:
        wrong.append("the program's own time is another with replay")
    # The first of the two may have waited for files that the second finds in memory.
    if whole1["duration_seconds"] > whole0["duration_seconds"] + 0.05 * args.seconds + 3:
        wrong.append("the summary's time is another with replay")
    for text in wrong:
        print(f"WRONG: {text}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
