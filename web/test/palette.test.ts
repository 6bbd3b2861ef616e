// Whether people who see colours otherwise can distinguish those of the page: by the difference of CIE 1976
// after the simulation of Machado, Oliveira and Fernandes (2009).
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { PART_COLOURS } from "../src/balance";
import { IDLE_COLOUR, KIND_COLOURS } from "../src/kinds";

type Three = [number, number, number];
const SIGHTS: Record<string, Three[]> = {
  usual: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
};

function lab(hex: string, sight: Three[]): Three {
  const linear = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  const [r, g, b] = sight.map((row) => Math.min(Math.max(row.reduce((s, w, i) => s + w * linear[i], 0), 0), 1));
  const f = (t: number) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
  const y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
  const z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const difference = (a: string, b: string, sight: Three[]): number =>
  Math.hypot(...lab(a, sight).map((v, i) => v - lab(b, sight)[i]));

// Below 2.3 two colours look the same side by side; those of a legend are further apart.
const LEAST = 15;

describe("colours", () => {
  const sets: Record<string, string[]> = {
    kinds: [...Object.values(KIND_COLOURS), IDLE_COLOUR],
    "parts of the balance": [...new Set(Object.values(PART_COLOURS))],
  };
  for (const [name, colours] of Object.entries(sets)) {
    for (const [sight, matrix] of Object.entries(SIGHTS)) {
      it(`of ${name} differ to ${sight} sight`, () => {
        colours.forEach((a, i) => colours.slice(i + 1).forEach((b) =>
          expect(difference(a, b, matrix), `${a} and ${b}`).toBeGreaterThanOrEqual(LEAST)));
      });
    }
  }

  it("would not pass where two are alike", () => {
    expect(difference("#d28fb5", "#a9b0b8", SIGHTS.deuteranopia)).toBeLessThan(LEAST);
  });

  it("of the balance are those of the figure", () => {
    const source = readFileSync(new URL("../../src/report/figures.cpp", import.meta.url), "utf8");
    for (const colour of Object.values(PART_COLOURS)) expect(source).toContain(`"${colour}"`);
  });
});
