#!/usr/bin/env python3
"""Compares the settings that `jouleprof recommend` chooses with those of Zeus's four selectors, on a
table of power-limit sweeps as Zeus publishes them; prints a Markdown table.

    zeus_selectors.py JOULEPROF summary_power_v100.csv

A choice's regret is its energy above the least one of its sweep within the same constraint. A sweep
without a choice is an error.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile


def energy(points):
    return min(points, key=lambda p: p["energy_joules"])


def time(points):
    return min(points, key=lambda p: p["seconds"])


def zeus_cost(points):
    """eta 0.5."""
    most = max(p["setting"] for p in points)
    return min(points, key=lambda p: 0.5 * p["energy_joules"] + 0.5 * most * p["seconds"])


def within(points, slowdown):
    """Points that are at most so much slower than the highest limit."""
    longest = max(points, key=lambda p: p["setting"])["seconds"] * (1 + slowdown)
    return [p for p in points if p["seconds"] <= longest]


def max_slowdown(slowdown):
    """Zeus takes the lowest limit, whatever its energy."""
    return lambda points: min(within(points, slowdown), key=lambda p: p["setting"])


# Name, Zeus's choice, the options of `recommend`, the constraint.
RULES = [
    ("`Energy`", energy, [], None),
    ("`Time`", time, ["--objective", "time"], None),
    ("`ZeusCost(0.5)`", zeus_cost, ["--objective", "cost"], None),
    ("`MaxSlowdownConstraint(1.05)`", max_slowdown(0.05), ["--max-slowdown", "5%"], 0.05),
    ("`MaxSlowdownConstraint(1.1)`", max_slowdown(0.1), ["--max-slowdown", "10%"], 0.1),
    (None, None, ["--objective", "edp"], None),
]


def recommend(tool, recording, options):
    text = subprocess.run([tool, "recommend", recording, "--json", *options], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return json.loads(text)["sweeps"]


def figures(sweeps, choices, constraint):
    """(saving, slowdown, mean regret, worst regret), in percent."""
    savings, slowdowns, regrets = [], [], []
    for sweep, chosen in zip(sweeps, choices):
        points = sweep["points"]
        reference = max(points, key=lambda p: p["setting"])
        allowed = points if constraint is None else within(points, constraint)
        savings.append(1 - chosen["energy_joules"] / reference["energy_joules"])
        slowdowns.append(chosen["seconds"] / reference["seconds"] - 1)
        regrets.append(chosen["energy_joules"] / energy(allowed)["energy_joules"] - 1)
    n = len(savings)
    return [100 * value for value in (sum(savings) / n, sum(slowdowns) / n, sum(regrets) / n, max(regrets))]


def recommended(sweep):
    return next(p for p in sweep["points"] if p["setting"] == sweep["recommended"])


def row(name, sweeps, choices, constraint):
    saving, slowdown, mean, worst = figures(sweeps, choices, constraint)
    return f"| {name} | {saving:.2f} % | {slowdown:.2f} % | {mean:.2f} % | {worst:.2f} % |"


def table(tool, csv):
    lines = ["| choice | saving | slowdown | regret, mean | regret, worst |", "|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory() as folder:
        recording = str(pathlib.Path(folder) / "sweeps.jprof")
        subprocess.run([tool, "import", csv, "-o", recording], check=True, stderr=subprocess.DEVNULL)
        for name, select, options, constraint in RULES:
            sweeps = recommend(tool, recording, options)
            if name is not None:
                lines.append(row(f"Zeus, {name}", sweeps, [select(s["points"]) for s in sweeps], constraint))
            words = " ".join(["`recommend`", *(f"`{' '.join(options)}`" for _ in options[:1])])
            lines.append(row(words, sweeps, list(map(recommended, sweeps)), constraint))
    return len(sweeps), lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool")
    parser.add_argument("csv")
    args = parser.parse_args()
    count, lines = table(args.tool, args.csv)
    print(f"{count} sweeps\n\n" + "\n".join(lines))


if __name__ == "__main__":
    main()
