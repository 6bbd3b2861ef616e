#!/usr/bin/env python3
"""Loops at a fixed rate on a real NVIDIA GPU: what the energy counter makes of them, and what jouleprof does.

    fixed_rate.py truth OUT            joules of a frame, not locked and locked: 8 periods, 3 duties, 10 phases
    fixed_rate.py traced OUT JOULEPROF [--periods 10,20] [--phases 10] [--seconds 2]
                                       each locked loop under `run --kernels`, as a recording of its own
    fixed_rate.py compare OUT JOULEPROF [--truth OUT/truth.json]
                                       tables of what a tool makes of these recordings; needs no GPU

Needs nvcc. A frame is `multiply` on all multiprocessors, then `copy` and `spin` (one multiprocessor). The
truth comes from loops that are not locked: their period is longer by so much that they pass once a second
through all phases of a sampler of 20 ms. Locked loops begin at ten phases of what repeats (the greatest
common divisor of the period and 20 ms). The energy of a segment is that between two of the counter's steps
in the pauses around it, above the held power of long pauses. Changes no setting of the card.
"""

import argparse
import json
import pathlib
import statistics
import subprocess

from compare import nanoseconds

HERE = pathlib.Path(__file__).resolve().parent
PERIODS = ("10", "16.667", "20", "25", "33.333", "40", "50", "100")  # ms
REPEATS = {"10": 10, "16.667": 10 / 3, "20": 20, "25": 5, "33.333": 20 / 3, "40": 20, "50": 10, "100": 20}
DUTIES = {10: (0.1, 0.2, 0.2), 40: (0.4, 0.2, 0.2), 70: (0.7, 0.1, 0.1)}  # of the period, by kernel
KERNELS = ("multiply", "copy", "spin")
LAUNCH = 100e-6  # seconds, about


def exact(period):
    """Nanoseconds."""
    return {"16.667": 50e6 / 3, "33.333": 100e6 / 3}.get(period, float(period) * 1e6)


def launches(period, duty, kernels=KERNELS):
    return [max(1, round(share * exact(period) / 1e9 / LAUNCH)) if name in kernels else 0
            for name, share in zip(KERNELS, DUTIES[duty])]


def segment(period, duty, seconds, phase=0, locked=True, kernels=KERNELS):
    length = exact(period) * (1 if locked else 1 + REPEATS[period] / 1e3)
    frames = max(1, round(seconds * 1e9 / length))
    return {"period": period, "duty": duty, "phase": phase, "locked": locked, "kernels": list(kernels),
            "nanoseconds": length, "frames": frames, "launches": launches(period, duty, kernels),
            "delay": round(REPEATS[period] * 1e6 * phase / 10)}


def pause(seconds):
    return {"period": None, "nanoseconds": 100e6, "frames": round(seconds * 10), "launches": [0, 0, 0],
            "delay": 0}


def build(out):
    binary = out / "fixed_rate"
    subprocess.run(["nvcc", "-O2", "-o", binary, HERE / "fixed_rate.cu", "-ldl"], check=True)
    return binary


def run(binary, out, name, plan, prefix=()):
    """The plan's segments with their times, and the counter's steps."""
    lines = [f"{round(s['nanoseconds'])} {s['delay']} {s['frames']} " + " ".join(map(str, s["launches"]))
             for s in plan]
    (out / f"{name}.plan").write_text("\n".join(lines) + "\n")
    done = subprocess.run([*prefix, str(binary), str(out / f"{name}.plan"), str(out / f"{name}.json")],
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{name}: {done.stderr[-800:]}")
    got = json.loads((out / f"{name}.json").read_text())
    got["segments"] = [{**s, **times} for s, times in zip(plan, got["segments"])]
    return got


def step_before(counter, at):
    """The last step that was seen before a time: (its time, joules)."""
    seen = [c for c in counter if c[1] <= at]
    return seen[-1][1], seen[-1][2] / 1e3


def energies(got):
    """Joules of a frame above held power, for each segment that is not a pause; W held."""
    counter = got["counter"]
    held = []
    for s in got["segments"]:
        if s["period"] is None:
            a, b = step_before(counter, s["begin"] + 100e6), step_before(counter, s["begin"] + 100e6 * s["frames"])
            held.append(((a[0] + b[0]) / 2, (b[1] - a[1]) / (b[0] - a[0]) * 1e9))
    out = []
    for s in got["segments"]:
        if s["period"] is None:
            continue
        a, b = step_before(counter, s["begin"]), step_before(counter, s["end"] + 260e6)
        near = min(held, key=lambda h: abs(h[0] - s["begin"]))[1] if held else float("nan")
        out.append({**s, "held_watts": near,
                    "joules": (b[1] - a[1] - near * (b[0] - a[0]) / 1e9) / s["frames"]})
    return out


def truth(args):
    binary = build(args.out)
    plan = []
    for period in PERIODS:
        plan.append(pause(1.2))
        plan.append(segment(period, 40, 2.0, locked=False))
        for name in KERNELS[:2]:
            plan.append(segment(period, 40, 2.0, locked=False, kernels=(name,)))
        for duty in (10, 70):
            plan.append(segment(period, duty, 1.0, locked=False))
            plan += [segment(period, duty, 0.6, phase) for phase in range(10)]
    plan += [pause(1.2), segment("50", 40, 3.0, locked=False, kernels=("spin",)), pause(1.2)]
    got = run(binary, args.out, "truth_run", plan)
    rows = energies(got)
    (args.out / "truth.json").write_text(json.dumps({"microseconds": got["microseconds"], "rows": rows}, indent=1))
    print("microseconds of a launch:", dict(zip(KERNELS, got["microseconds"])))
    characterise(rows)


def characterise(rows):
    """The counter's error by phase."""
    true = {(r["period"], r["duty"]): r["joules"] for r in rows if not r["locked"] and len(r["kernels"]) == 3}
    print("| period, ms | duty | true J a frame | counter, by phase | least, most |\n|---|---|---|---|---|")
    for (period, duty), joules in true.items():
        off = [r["joules"] / joules - 1 for r in rows
               if r["locked"] and (r["period"], r["duty"]) == (period, duty)]
        if off:
            print(f"| {period} | {duty} % | {joules:.4f} | {' '.join(f'{100 * o:+.0f}' for o in off)} "
                  f"| {min(off):+.1%} {max(off):+.1%} |")


def traced(args):
    binary = build(args.out)
    rows = []
    for period in args.periods.split(","):
        for phase in range(args.phases):
            name = f"loop_{period}_{phase}"
            plan = [pause(0.4), segment(period, 40, args.seconds, phase), pause(0.4)]
            got = run(binary, args.out, name, plan,
                      [args.tool, "run", "--kernels", "--no-memory", "--idle", "0.3s", "-q", "-f", "-o",
                       str(args.out / f"{name}.jprof"), "--"])
            rows += energies(got)
            (args.out / "traced.json").write_text(json.dumps(rows, indent=1))
    compare(args)


def report(tool, recording, *more):
    done = subprocess.run([tool, "report", str(recording), "--json", *more], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{recording}: {done.stderr[-800:]}")
    return json.loads(done.stdout)


def is_inside(true, low, high):
    return low <= true <= high


def compare(args):
    true = json.loads((args.truth or args.out / "truth.json").read_text())["rows"]
    frame = {r["period"]: r["joules"] for r in true
             if not r["locked"] and r["duty"] == 40 and len(r["kernels"]) == 3}
    alone = {(r["period"], r["kernels"][0]): r["joules"] / max(r["launches"]) for r in true
             if not r["locked"] and len(r["kernels"]) == 1}
    spin = statistics.mean(v for (_, name), v in alone.items() if name == "spin")
    rows = json.loads((args.out / "traced.json").read_text())
    print("| period, ms | phase | counter | total by kernels | total | inside | multiply | copy | spin | R2 |\n"
          "|---|---|---|---|---|---|---|---|---|---|")
    inside = {"total": [0, 0], "rows": [0, 0]}
    worst = 0
    for r in rows:
        path = args.out / f"loop_{r['period']}_{r['phase']}.jprof"
        start = nanoseconds(report(args.tool, path)["start_time"])
        ends = (r["begin"] - start - 0.1e9) / 1e9, (r["end"] - start + 0.2e9) / 1e9
        part = ["--from", f"{ends[0]:.6f}s", "--to", f"{ends[1]:.6f}s"]
        gpu = next(d for d in report(args.tool, path, *part)["domains"] if d["domain"] == "gpu")
        device = report(args.tool, path, "--by", "kernel")["devices"][0]
        joules = frame[r["period"]] * r["frames"]
        whole = r["held_watts"] * (ends[1] - ends[0]) + joules
        ok = is_inside(whole, *gpu["interval_joules"])
        inside["total"][0] += ok
        inside["total"][1] += 1
        by_model = device["kernels_joules"]
        worst = max(worst, abs(by_model / joules - 1))
        cells = []
        for name in KERNELS:
            row = next((x for x in device["rows"] if x["name"].rsplit("::", 1)[-1].split("(")[0] == name), None)
            each = spin if name == "spin" else alone[r["period"], name]
            real = each * r["launches"][KERNELS.index(name)] * r["frames"]
            if row is None or row["energy_joules"] is None:
                cells.append("absent")
                continue
            if row["resolvable"] is False:
                cells.append("not resolvable")
                continue
            good = is_inside(real, *row["interval_joules"])
            inside["rows"][0] += good
            inside["rows"][1] += 1
            cells.append(f"{row['energy_joules']:.1f} of {real:.1f} J ±{row['repeatability_joules']:.1f}"
                         + ("" if good else " **out**"))
        print(f"| {r['period']} | {r['phase']} | {r['joules'] / frame[r['period']] - 1:+.1%} | {by_model / joules - 1:+.1%} "
              f"| {gpu['energy_joules']:.1f} of {whole:.1f} J ±{(gpu['interval_joules'][1] - gpu['interval_joules'][0]) / 2:.1f} | {'yes' if ok else '**no**'} "
              f"| {' | '.join(cells)} | {device['explained_ratio']:.3f} |")
    print(f"\ntotals inside: {inside['total'][0]} of {inside['total'][1]}; resolvable rows inside: {inside['rows'][0]} "
          f"of {inside['rows'][1]}; energy of all kernels, worst: {worst:.1%}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("truth", "traced", "compare"))
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("tool", nargs="?")
    parser.add_argument("--periods", default=",".join(PERIODS))
    parser.add_argument("--phases", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--truth", type=pathlib.Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    {"truth": truth, "traced": traced, "compare": compare}[args.what](args)


if __name__ == "__main__":
    main()
