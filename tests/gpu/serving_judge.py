"""What serving_proof.py has measured against what the report says. Intervals are of 95 %, by Student's t."""

import statistics

from jouleprof._student import quantile

GOALS = {"a": 1.0, "b": 5.0, "c": 3.0, "e": 1.0}  # percent


def mean_and_half(values):
    """Mean, and half of its interval."""
    half = quantile(len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
    return {"mean": statistics.fmean(values), "half": half, "values": values}


def ratio_of(said, truth):
    """By how many percent the sum of `said` is above that of `truth`, pair by pair, and half of its interval: a slow host
    makes both greater."""
    total = sum(truth)
    if not total:
        return float("nan"), None
    ratio = sum(said) / total
    if len(said) < 2:
        return 100 * (ratio - 1), None
    rest = [a - ratio * b for a, b in zip(said, truth)]
    half = quantile(len(rest) - 1) * statistics.stdev(rest) / len(rest) ** 0.5 / abs(statistics.fmean(truth))
    return 100 * (ratio - 1), 100 * half


def verdict(error, half, goal):
    """met: the interval of the error lies within the goal. missed: without it. Between them the test decides nothing."""
    if half is None:
        return "one value"
    if abs(error) + half <= goal:
        return "met"
    if abs(error) - half > goal:
        return "missed"
    return "met, but the interval reaches beyond" if abs(error) <= goal else "missed, but the interval reaches within"


def solve(matrix, right):
    """Gauss and Jordan, with pivots: of a few unknowns."""
    n = len(matrix)
    a = [list(row) + list(r) for row, r in zip(matrix, right)]
    for i in range(n):
        best = max(range(i, n), key=lambda r: abs(a[r][i]))
        a[i], a[best] = a[best], a[i]
        if a[i][i] == 0:
            return None
        a[i] = [x / a[i][i] for x in a[i]]
        for r in range(n):
            if r != i:
                a[r] = [x - a[r][i] * y for x, y in zip(a[r], a[i])]
    return [row[n:] for row in a]


def least_squares(rows, totals):
    """Of relative residuals. Each unknown with half of its interval, and the residuals' standard deviation in percent;
    None where the rows do not determine them."""
    n = len(rows[0])
    scaled = [[x / total for x in row] for row, total in zip(rows, totals)]
    normal = [[sum(r[i] * r[j] for r in scaled) for j in range(n)] for i in range(n)]
    inverse = solve(normal, [[float(i == j) for j in range(n)] for i in range(n)])
    if inverse is None or len(rows) <= n:
        return None
    right = [sum(r[i] for r in scaled) for i in range(n)]
    found = [sum(inverse[i][j] * right[j] for j in range(n)) for i in range(n)]
    freedom = len(rows) - n
    variance = sum((1 - sum(x * y for x, y in zip(found, r))) ** 2 for r in scaled) / freedom
    half = [quantile(freedom) * (variance * inverse[i][i]) ** 0.5 for i in range(n)]
    return {"values": found, "halves": half, "residual_percent": 100 * variance ** 0.5}


def identical_of(runs, by_phase):
    out = []
    for run in runs:
        joules = [r["energy_joules"] for r in by_phase.get(run["phase"], [])]
        if len(joules) > 1:
            mean = statistics.fmean(joules)
            spread = 100 * statistics.pstdev(joules) / mean
            out.append({"requests": len(joules), "mean_joules": mean, "spread_percent": spread,
                        "range_percent": 100 * (max(joules) - min(joules)) / mean,
                        "verdict": "met" if spread <= GOALS["a"] else "missed"})
    return out


def throughput_of(pairs):
    """What the recorder costs, in percent of the time of a step; pairs of blocks in a random order."""
    costs = sorted(100 * (p["with"] / p["without"] - 1) for p in pairs)
    out = {**mean_and_half(costs), "median": statistics.median(costs), "pairs": len(pairs),
           "step_milliseconds": 1e3 * statistics.median(p["without"] for p in pairs)}
    if len(costs) >= 6:
        # Order statistics around the median: of a binomial distribution, by the normal one.
        reach = int(0.98 * len(costs) ** 0.5 + 1)
        middle = len(costs) // 2
        out["median_interval"] = [costs[max(middle - reach, 0)], costs[min(middle + reach, len(costs) - 1)]]
        low, high = out["median_interval"]
        out["verdict"] = ("met" if high <= GOALS["e"] else "missed" if low > GOALS["e"]
                          else "the interval reaches across the goal")
    return out


def deletion_of(data, tenants, by_phase, idle_watts):
    """Each class: what its deletion saved against its marginal energy, its fair share, and what other rules say."""
    found = {}
    for kind, part in data.items():
        rounds = part["rounds"]
        saved, marginal, fair = [], [], []
        rules = {"token_pool": [], "per_output_token": [], "life_of_request": []}
        for runs in rounds:
            full = runs["full"]
            own = tenants.get(f"{full['phase']}|{kind}")
            everyone = by_phase.get(full["phase"], [])
            if own is None or not everyone or any(run["drained"] > part["span"] for run in runs.values()):
                continue  # a run that takes longer than its span has energy beyond it
            saved.append(full["joules"] - runs["without"]["joules"])
            marginal.append(own["marginal_joules"])
            fair.append(own["energy_joules"])
            mine = [r for r in everyone if r["tenant"].endswith("|" + kind)]
            tokens = sum(r["tokens_in"] + r["tokens_out"] for r in everyone)
            answers = sum(r["tokens_out"] for r in everyone)
            active = full["joules"] - idle_watts * part["span"]
            rules["token_pool"].append(active * sum(r["tokens_in"] + r["tokens_out"] for r in mine) / tokens)
            rules["per_output_token"].append(active * sum(r["tokens_out"] for r in mine) / answers)
            rules["life_of_request"].append(sum(
                full["joules"] / part["span"] * (r["finish_nanoseconds"] - r["arrival_nanoseconds"]) / 1e9
                for r in mine if r["finish_nanoseconds"]))
        if not saved:
            continue
        truth = mean_and_half(saved)
        said = mean_and_half(marginal)
        mean = truth["mean"]
        error, half = ratio_of(marginal, saved)
        found[kind] = {
            "pairs": len(saved), "span_seconds": part["span"], "requests": part["requests"], "late": part["late"],
            "saved": truth, "marginal": said, "fair_share": mean_and_half(fair),
            "marginal_error_percent": error, "half_percent": half, "verdict": verdict(error, half, GOALS["b"]),
            "fair_share_error_percent": 100 * (statistics.fmean(fair) / mean - 1),
            "rules": {name: {"joules": statistics.fmean(values), "error_percent": 100 * (statistics.fmean(values) / mean - 1)}
                      for name, values in rules.items()}}
    return found


def part_within(start, finish, begin, end):
    """What part of a request's time lies in [begin, end]."""
    if finish <= start:
        return float(begin <= start < end)
    return max(0, min(finish, end) - max(start, begin)) / (finish - start)


def mixes_of(data, requests, kinds):
    """Class means of the shares against least squares on the counter's energy above idle, of mixes with the same number
    of requests in flight."""
    windows = data["windows"]
    watts = statistics.fmean(data["idle_watts"])
    lives = []
    for r in requests:
        start = data["starts"].get(r["request"])
        if start is not None and r["finish_nanoseconds"] and r["request"].startswith("c/"):
            lives.append((r["request"].split("/")[1], start, r["finish_nanoseconds"], r))
    rows, totals, sums, by_mix = [], [], [], []
    for w in windows:
        parts = {kind: 0.0 for kind in kinds}
        energy = 0.0
        own = {kind: [] for kind in kinds}
        for kind, start, finish, r in lives:
            part = part_within(start, finish, w["begin"], w["end"])
            parts[kind] += part
            energy += part * r["energy_joules"]
            if part > 0.5:
                own[kind].append(r["energy_joules"])
        rows.append([parts[kind] for kind in kinds])
        totals.append(w["joules"] - watts * (w["end"] - w["begin"]) / 1e9)
        sums.append(energy)
        by_mix.append({kind: statistics.fmean(own[kind]) if own[kind] else None for kind in kinds})
    if any(total <= 0 for total in totals):
        return {"error": f"a mix has drawn nothing above idle: {totals}"}
    fitted = least_squares(rows, totals)
    out = {"mixes": len(windows), "in_flight": data["in_flight"],
           "in_a_step": [w["in_a_step"] for w in windows], "joules_above_idle": totals, "counts": rows,
           "shares_of_total_percent": [100 * s / t for s, t in zip(sums, totals)]}
    if fitted is None:
        return {**out, "error": "the mixes do not determine the classes"}
    out["residual_percent"] = fitted["residual_percent"]
    for i, kind in enumerate(kinds):
        weights = [row[i] for row in rows]
        means = [m[kind] for m in by_mix]
        shares = [r["energy_joules"] for k, start, finish, r in lives
                  if k == kind and start >= windows[0]["begin"] and finish <= windows[-1]["end"]]
        if not shares or fitted["values"][i] <= 0:
            continue
        truth = fitted["values"][i]
        error = 100 * (statistics.fmean(shares) / truth - 1)
        half = 100 * fitted["halves"][i] / truth
        known = [m for m in means if m is not None]
        out[kind] = {"least_squares_joules": truth, "half_percent": half, "mean_share_joules": statistics.fmean(shares),
                     "requests": sum(weights), "error_percent": error, "verdict": verdict(error, half, GOALS["c"]),
                     "mix_to_mix_percent": 100 * statistics.stdev(known) / statistics.fmean(known) if len(known) > 1
                     else None, "mean_share_by_mix": means}
    return out


def judge(out, report, kinds):
    requests = report["requests"]
    tenants = {t["tenant"]: t for t in report["tenants"]}
    by_phase = {}
    for r in requests:
        by_phase.setdefault(r["request"].split("/")[0], []).append(r)
    found = {"boards": report["boards"], "warnings": report["warnings"],
             **{key: out.get(key) for key in ("load_seconds", "idle_watts", "attention", "why_not_varlen")},
             "errors": {k: v for k, v in out.items() if k.endswith("_error")}}
    board = report["boards"][0]
    parts = sum(round(1e6 * board[k]) for k in ("idle_joules", "between_joules", "requests_joules",
                                                "unattributed_joules"))
    found["sum_minus_counter_microjoules"] = parts - round(1e6 * board["energy_joules"])
    found["sum_of_requests_minus_part_microjoules"] = (sum(round(1e6 * r["energy_joules"]) for r in requests)
                                                       - round(1e6 * board["requests_joules"]))
    if "a" in out:
        found["a"] = identical_of(out["a"], by_phase)
    if out.get("e"):
        found["e"] = throughput_of(out["e"])
    if "b" in out:
        found["b"] = deletion_of(out["b"], tenants, by_phase, out["idle_watts"])
    if "c" in out:
        found["c"] = mixes_of(out["c"], requests, kinds)
    return found


def lines(found):
    """The results in a few lines."""
    yield (f"attention {found['attention']} {found['why_not_varlen']}; idle {found['idle_watts']:.1f} W; "
           f"sum minus counter {found['sum_minus_counter_microjoules']} uJ")
    for key, error in found["errors"].items():
        yield f"{key}: {error}"
    for n, run in enumerate(found.get("a", [])):
        yield (f"a  identical {n}: {run['requests']} requests, {run['mean_joules']:.2f} J, standard deviation "
               f"{run['spread_percent']:.2f} % ({run['verdict']})")
    for kind, r in found.get("b", {}).items():
        half = f" +- {r['half_percent']:.1f}" if r["half_percent"] is not None else ""
        saved = f"{r['saved']['mean']:.1f}" + (f" +- {r['saved']['half']:.1f}" if r["saved"]["half"] is not None else "")
        rules = ", ".join(f"{name} {rule['error_percent']:+.0f} %" for name, rule in r["rules"].items())
        yield (f"b  without {kind}: {r['pairs']} pairs of {r['span_seconds']:.1f} s, {r['late']} late; saved {saved} J, "
               f"marginal {r['marginal']['mean']:.1f} J: {r['marginal_error_percent']:+.1f}{half} % ({r['verdict']}); "
               f"fair share {r['fair_share_error_percent']:+.0f} %, {rules}")
    mixes = found.get("c", {})
    if "error" in mixes:
        yield f"c  {mixes['error']}"
    elif mixes:
        sums = mixes["shares_of_total_percent"]
        sizes = mixes["in_a_step"]
        yield (f"c  {mixes['mixes']} mixes, {mixes['in_flight']} in flight (a step has {min(sizes):.1f} to "
               f"{max(sizes):.1f} on average): shares are {min(sums):.1f} to {max(sums):.1f} % "
               f"of the energy above idle; residuals of least squares {mixes['residual_percent']:.1f} %")
        for kind, r in mixes.items():
            if isinstance(r, dict):
                spread = f"{r['mix_to_mix_percent']:.1f} %" if r["mix_to_mix_percent"] is not None else "-"
                yield (f"c  {kind}: {r['requests']:.0f} requests, least squares {r['least_squares_joules']:.2f} J +- "
                       f"{r['half_percent']:.1f} %, mean share {r['mean_share_joules']:.2f} J: {r['error_percent']:+.1f} % "
                       f"({r['verdict']}); means of mixes differ by {spread}")
    if "e" in found:
        e = found["e"]
        low, high = e.get("median_interval", (None, None))
        interval = f" [{low:.2f}, {high:.2f}]" if low is not None else ""
        yield (f"e  {e['pairs']} pairs, a step takes {e['step_milliseconds']:.2f} ms: with the recorder {e['median']:+.2f}"
               f"{interval} % more (median), {e['mean']:+.2f} % (mean) ({e.get('verdict', '-')})")
