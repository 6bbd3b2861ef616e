import { describe, expect, it } from "vitest";
import { grow } from "../src/balance";
import { energyCurves, main } from "../src/bench_view";
import { changeText } from "../src/comparison_view";
import { readPage, SCHEMA } from "../src/data";
import { buildDiff, isClear, layOutDiff } from "../src/comparison_view";
import { histogram, paddedAxis, place, ticks } from "../src/plot";
import type { BenchCase, Comparison, Difference, Sweep } from "../src/results";
import { panelsOf } from "../src/sweep_view";

function difference(name: string, before: number, after: number, verdict: Difference["verdict"]): Difference {
  const ratio = after / before - 1;
  return {
    name, detail: null, before_joules: before, after_joules: after, change_ratio: ratio,
    interval_ratio: [ratio - 0.02, ratio + 0.02], sensor_noise_ratio: 0.001, p: 0.01, verdict, reason: "",
  };
}

const comparison: Comparison = {
  energy: difference("energy", 200, 150, "lower"), time: difference("time", 10, 10, "same"),
  power: difference("power", 20, 15, "lower"), by: "layer", same_within_ratio: 0.01,
  rows: [
    difference("model", 120, 80, "lower"), difference("model.block", 100, 60, "lower"),
    difference("model.block.norm", 10, 10.1, "inconclusive"), difference("head", 20, 21, "same"),
  ],
  unmatched: [{ side: "after", name: "model.extra", detail: null, count: 1, energy_joules: 8, reason: null }],
};

describe("the differential icicle", () => {
  it("puts layers below the layers that hold them, and sums to the whole on each side", () => {
    const root = buildDiff(comparison);
    expect(root.children.map((f) => f.name)).toEqual(["model", "head", "other energy"]);
    const [model, , rest] = root.children;
    expect(model.children.map((f) => f.name)).toEqual(["model.block", "model.extra"]);
    expect(model.children[0].children[0].name).toBe("model.block.norm");
    expect(model.children[0].children[0].label).toBe("norm");
    expect([rest.before, rest.after]).toEqual([60, 49]);
    for (const side of ["before", "after"] as const) {
      expect(root.children.reduce((s, f) => s + f[side], 0)).toBeCloseTo(root[side], 9);
    }
  });
  it("draws widths by energy, and changes in joules with their interval", () => {
    const root = buildDiff(comparison);
    const frames = layOutDiff(root, "after");
    const model = frames.find((f) => f.name === "model")!;
    expect(model.width).toBeCloseTo(80 / 150, 9);
    expect(frames.find((f) => f.name === "model.extra")!.width).toBeCloseTo(8 / 150, 9);
    expect(model.low).toBeCloseTo(120 * (80 / 120 - 1 - 0.02), 9);
    expect(model.high).toBeCloseTo(120 * (80 / 120 - 1 + 0.02), 9);
    const before = layOutDiff(root, "before");
    expect(before.map((f) => f.name)).not.toContain("model.extra");
  });
  it("keeps children within their parents where they sum to more", () => {
    const frames = layOutDiff(buildDiff({ ...comparison, energy: difference("energy", 50, 50, "same") }), "after");
    const below = frames.filter((f) => f.depth === 1);
    expect(below.reduce((s, f) => s + f.width, 0)).toBeCloseTo(1, 9);
  });
  it("greys what is within error", () => {
    const frames = layOutDiff(buildDiff(comparison), "after");
    const clear = Object.fromEntries(frames.map((f) => [f.name, isClear(f)]));
    expect(clear).toMatchObject({ "model.block": true, "model.block.norm": false, head: false, "model.extra": true, "other energy": false });
  });
  it("leaves out rows without a figure", () => {
    const row = { ...difference("model", 1, 1, "inconclusive"), before_joules: null };
    expect(buildDiff({ ...comparison, rows: [row], unmatched: [] }).children).toEqual([]);
  });
});

describe("changes in words", () => {
  it("have the tool's digits", () => {
    expect([0.123, -0.0491, 0.00001, null].map(changeText)).toEqual(["+12.3 %", "-4.91 %", "+0.00 %", "-"]);
  });
});

describe("charts", () => {
  it("have round numbers within their axis", () => {
    expect(ticks(0, 100)).toEqual([0, 50, 100]);
    expect(ticks(-0.013, 0.021)).toEqual([-0.01, 0, 0.01, 0.02]);
    expect(place({ low: 0, high: 10, from: 100, to: 0 }, 4)).toBe(60);
    const one = paddedAxis([5], 0, 1);
    expect(one.low).toBeLessThan(5);
    expect(one.high).toBeGreaterThan(5);
  });
  it("count every value in one bin", () => {
    const values = Array.from({ length: 100 }, (_, i) => i / 10);
    const bins = histogram(values, 10);
    expect(bins.reduce((s, b) => s + b.count, 0)).toBe(100);
    expect(bins[9].count).toBe(10);
    expect(histogram([2, 2, 2], 4).reduce((s, b) => s + b.count, 0)).toBe(3);
  });
});

describe("a distribution of latencies", () => {
  it("leaves out a long tail and says how many it has", () => {
    const values = [...Array.from({ length: 98 }, (_, i) => 1 + i / 1000), 5, 9];
    const { shown, beyond } = main(values, 1.05, 1.09);
    expect([shown.length, beyond, shown[97]]).toEqual([98, 2, 1.097]);
    expect(main([1, 9], 0.1, 0.2)).toEqual({ shown: [1, 9], beyond: 0 });
  });
  it("has bars that fill their width below one joule, too", () => {
    expect(grow(1e-6, 2e-6) + grow(1e-6, 2e-6)).toBeGreaterThanOrEqual(1);
  });
});

describe("panels of a sweep", () => {
  const point = (setting: number, samples: [number, number][]) => ({
    setting, samples: samples.map(([seconds, energy_joules]) => ({ seconds, energy_joules })), seconds: 1, energy_joules: 1,
    mean_watts: 1, slowdown_ratio: 0, slowdown_interval_ratio: null, saving_ratio: 0, saving_interval_ratio: null,
    feasible: true, on_pareto_front: true, probability_of_best_ratio: null,
  });
  const sweep: Sweep = {
    knob: "power_limit_watts", labels: [], recommended: 200, reference: 300, equal_within_error: [],
    points: [point(300, [[10, 3000], [10.1, 3010]]), point(200, [[12, 2400]])],
  };
  it("have every run as a point, and no quantity that was not read", () => {
    const run = { setting: 300, sm_clock_megahertz: 1980, temperature_celsius: null, sm_utilisation_ratio: 0.5, memory_utilisation_ratio: null };
    const panels = panelsOf(sweep, [run, { ...run, setting: 250 }]);
    expect(panels.map((p) => p.title)).toEqual([
      "Energy (J)", "Time (s)", "Throughput (1/s)", "Mean power (W)", "SM clock (MHz)", "Utilisation of compute (%)",
    ]);
    expect(panels[0].raw).toEqual([[300, 3000], [300, 3010], [200, 2400]]);
    expect(panels[3].raw[2][1]).toBe(200);
    expect(panels[4].raw).toEqual([[300, 1980]]); // a setting without a point is left out
    expect(panels[5].raw).toEqual([[300, 50]]);
  });
});

describe("a page without a run", () => {
  it("is read where it has results", () => {
    expect(readPage(JSON.stringify({ schema: SCHEMA, comparison }))).toMatchObject({ comparison: { by: "layer" } });
    expect(() => readPage(JSON.stringify({ schema: SCHEMA, other: 1 }))).toThrow(/is not of the kind/);
  });
});

describe("the curve of energy against the batch size", () => {
  const per = (joules: number) => ({ energy_joules: joules, interval_joules: [0.9 * joules, 1.1 * joules] as [number, number], provenance: "measured" });
  const of = (batch: number, joules: number | null): BenchCase => ({
    workload: "deit-b", mode: "eager", batch, energy_device: "gpu0", energy_reason: null,
    latency: { median_seconds: 1, p50_seconds: 1, p90_seconds: 1, p99_seconds: 1, quantiles_of_iterations: 1 },
    energy: joules === null ? null : {
      profile: {} as never,
      per: [{ phase: null, unit: "sample", count: 1, device: per(joules), total: per(2 * joules), rest: null, held: null, active: null }],
    },
  });
  it("has a point with its interval for each batch, in their order, and none where no energy is known", () => {
    const [curve, ...others] = energyCurves([of(8, 0.4), of(1, 1.5), of(64, null)]);
    expect(others).toEqual([]);
    expect(curve.name).toBe("deit-b, eager: one sample, gpu0");
    expect(curve.points).toEqual([
      { batch: 1, joules: 1.5, low: 0.9 * 1.5, high: 1.1 * 1.5, provenance: "measured" },
      { batch: 8, joules: 0.4, low: 0.9 * 0.4, high: 1.1 * 0.4, provenance: "measured" },
    ]);
  });
  it("is absent for one batch", () => {
    expect(energyCurves([of(8, 0.4)])).toEqual([]);
  });
});
