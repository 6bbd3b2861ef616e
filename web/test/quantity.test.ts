// Figures are in the same words as the tool's (src/report/quantity.cpp).
import { describe, expect, it } from "vitest";
import { axisText, bytesText, countText, cpuText, errorOf, errorText, intervalErrorText, joulesText, numberText, percentText, roundText, secondsText } from "../src/quantity";

describe("numbers", () => {
  it("have four digits and never a negative zero", () => {
    expect([1234.5, 12.345, 0.1234, -0.0001, 0].map(numberText)).toEqual(["1235", "12.35", "0.123", "0", "0"]);
    expect(numberText(NaN)).toBe("-");
  });
  it("of energy have a prefix", () => {
    expect([0, 0.0001, 0.5, 1, 999.96, 9443, 1.2e6, -5].map(joulesText)).toEqual(
      ["0 J", "0.100 mJ", "500.0 mJ", "1.000 J", "1.000 kJ", "9.443 kJ", "1.200 MJ", "-5.000 J"]);
  });
  it("of time change their unit", () => {
    expect([0.02, 2, 99.999, 125, 3600, 7260, -1].map(secondsText)).toEqual(
      ["20.00 ms", "2.000 s", "1 min 40 s", "2 min 5 s", "1 h 0 min", "2 h 1 min", "-1.000 s"]);
    expect([0.02, 2, 1.5, 20, 120].map(roundText)).toEqual(["20 ms", "2 s", "1.5 s", "20 s", "2 min 0 s"]);
  });
  it("of ratios are never 0 % unless they are 0", () => {
    expect([0, 0.00001, 0.0123, 0.5, -0.5].map(percentText)).toEqual(["0 %", "0.01 %", "1.2 %", "50 %", "50 %"]);
  });
  it("of counts, bytes and errors", () => {
    expect(countText(1234567)).toBe("1\u202f234\u202f567");
    expect([12, 1536, 5 * 2 ** 30].map(bytesText)).toEqual(["12 B", "1.5 KiB", "5.0 GiB"]);
    expect([errorText(5, 100), errorText(5, 0), errorText(5, -1), errorText(1.217, 0.04)]).toEqual(["±5.0 %", "±5.000 J", "±5.000 J", "±1.217 J"]);
  });
  it("of intervals have both sides where these differ", () => {
    const text = (low: number, high: number, of = 100) => intervalErrorText([low, high], of);
    expect([text(95, 105), text(95, 105.4), text(96, 109.4), text(102, 108)]).toEqual(["±5.0 %", "±5.4 %", "-4.0 % +9.4 %", "+2.0 % +8.0 %"]);
    // Cut off at 0: no energy is negative.
    expect([text(0, 3148), text(0, 192), text(0, 150)]).toEqual(["±3.048 kJ", "±100 %", "-100 % +50 %"]);
    expect(text(0, 3, 0)).toBe("±3.000 J");
    expect([errorOf([96, 109.4], 100), errorOf([0, 3148], 100)]).toEqual([expect.closeTo(9.4), 3048]);
  });
  it("of CPU time are no 0 ms: it is read in ticks", () => {
    expect([0, 0.04].map(cpuText)).toEqual(["<40 ms", "40.00 ms"]);
  });
});

describe("times of an axis", () => {
  it("have one unit", () => {
    const text = (ticks: number[]) => ticks.map((t) => axisText(t, ticks));
    expect(text([-0.5, 0, 0.25])).toEqual(["-500 ms", "0 ms", "250 ms"]);
    expect(text([-1, 0, 0.5, 2.25])).toEqual(["-1 s", "0 s", "0.5 s", "2.25 s"]);
    expect(text([0, 60, 150])).toEqual(["0", "60 s", "2 min 30 s"]);
    expect(text([-600, 0, 600, 3600])).toEqual(["-10 min", "0", "10 min", "1 h"]);
  });
});
