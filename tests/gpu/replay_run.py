#!/usr/bin/env python3
"""`jouleprof run --layers --replay` on a real GPU: what it adds, and that it is in no figure.

    replay_run.py JOULEPROF OUT [--seconds 20]

Runs a transformer of random weights, which repeats one forward pass, without and with replay; prints
Markdown, and exits with 1 where something is not as it should be.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

STATUS = 3  # of the load, to see that it is handed on


def load(seconds):
    import torch
    from torch import nn

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

    torch.manual_seed(0)
    model = nn.Sequential(*[Block(768, 12) for _ in range(12)], nn.Linear(768, 1000))
    model = model.cuda().to(torch.bfloat16).eval()
    inputs = torch.randn(32, 198, 768, device="cuda", dtype=torch.bfloat16)
    end, count = time.time() + seconds, 0
    with torch.no_grad():
        while time.time() < end:
            model(inputs)
            torch.cuda.synchronize()
            count += 1
    print(f"{count} forward passes")
    sys.exit(STATUS)


def measured(args, name, *options):
    file = args.out / f"{name}.jprof"
    command = [args.tool, "run", "--kernels", "--layers", *options, "--force", "-o", file, "--idle",
               "2s", "--", sys.executable, __file__, "--load", str(args.seconds)]
    done = subprocess.run(command, capture_output=True, text=True)
    print(f"{name}: status {done.returncode}, {done.stdout.strip()}")
    if done.returncode != STATUS:
        print(done.stderr)
        sys.exit(1)

    def report(*more):
        return json.loads(subprocess.run([args.tool, "report", file, "--json", *more], check=True,
                                         capture_output=True, text=True).stdout)

    return report(), report("--by", "layer")["devices"][0]


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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool", nargs="?")
    parser.add_argument("out", nargs="?", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--load", type=float)
    args = parser.parse_args()
    if args.load:
        load(args.load)
    args.out.mkdir(parents=True, exist_ok=True)
    whole0, without = measured(args, "without")
    whole1, replayed = measured(args, "with", "--replay")
    print("\n| layers | rows | joules without | not resolvable | with replay, J | not resolvable "
          "| widest interval |\n|---|---|---|---|---|---|---|")
    before, after = by_type(without), by_type(replayed)
    for kind in sorted(after, key=lambda kind: -after[kind][1]):
        rows, joules, unresolved, worst = after[kind]
        _, joules0, unresolved0, _ = before.get(kind, (0, 0.0, 0, 0.0))
        print(f"| {kind} | {rows} | {joules0:.1f} | {unresolved0} | {joules:.1f} | {unresolved} "
              f"| {100 * worst:.0f} % |")
    print(f"\nreplay: {replayed['replay_joules']} J over {replayed['replay_seconds']} s")
    for text in [*whole1["warnings"], *replayed["warnings"]]:
        print(f"warning: {text}")
    wrong = []
    for device in (without, replayed):
        parts = sum(micro(device[f"{part}_joules"])
                    for part in ("idle", "kernels", "gaps", "unattributed"))
        if parts != micro(device["measured_joules"]):
            wrong.append("the parts do not sum to the whole")
    if not replayed["replay_joules"] or without["replay_joules"] is not None:
        wrong.append("there was no replay, or one that nobody asked for")
    if abs(replayed["duration_seconds"] - without["duration_seconds"]) > 0.05 * args.seconds + 0.5:
        wrong.append("the program's own time is another with replay")
    if abs(whole1["duration_seconds"] - whole0["duration_seconds"]) > 0.05 * args.seconds + 3:
        wrong.append("the summary's time is another with replay")
    for text in wrong:
        print(f"WRONG: {text}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
