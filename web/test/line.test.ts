import { describe, expect, it } from "vitest";
import { indexAt, timeTicks, topOf } from "../src/chart";

describe("timeTicks", () => {
  it("are round, and at most as many as fit", () => {
    expect(timeTicks({ begin: -2, end: 31 }, 7)).toEqual([0, 5, 10, 15, 20, 25, 30]);
    expect(timeTicks({ begin: 0, end: 3600 }, 7)).toEqual([0, 600, 1200, 1800, 2400, 3000, 3600]);
    expect(timeTicks({ begin: 1, end: 1.05 }, 6)).toHaveLength(6);
    expect(timeTicks({ begin: 0, end: 1 }, 0.2).length).toBeGreaterThan(0);
  });
});

describe("indexAt", () => {
  it("is the last time at or before", () => {
    const times = [0, 1, 2, 5];
    expect([-1, 0, 1.5, 2, 4.9, 9].map((t) => indexAt(times, t))).toEqual([0, 0, 1, 2, 2, 3]);
  });
});

describe("topOf", () => {
  const line = { times: [0, 1, 2], values: [100, null, 200] };
  it("has room for the line and its extremes, and for a band that is not much wider", () => {
    expect(topOf(line)).toBeCloseTo(212, 9);
    expect(topOf({ ...line, extremes: [[90, null, 150], [110, null, 500]] })).toBeCloseTo(530, 9);
    expect(topOf({ ...line, high: [120, null, 230] })).toBeCloseTo(1.06 * 230, 9);
    expect(topOf({ ...line, high: [900, null, 900] })).toBeCloseTo(1.06 * 320, 9);
    expect(topOf(line, { times: [0], values: [300] })).toBeCloseTo(318, 9);
  });
});
