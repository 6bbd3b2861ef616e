import { describe, expect, it } from "vitest";
import { isResolved, partOf, reasonOf, windowsOf } from "../src/part";
import { row, slicedPage } from "./fixture";

describe("partOf", () => {
  it("sums the slices of which half is selected, with an upper bound of the error", () => {
    const part = partOf(slicedPage(), { begin: 0.6, end: 2.9 })!;
    expect([part.begin, part.end]).toEqual([1, 3]);
    const first = part.rows.kernel[0].get(0)!;
    expect(first.joules).toBe(50);
    expect(first.error).toBeCloseTo(0.1 * 50 + 1, 9);
    expect(first.share).toBeCloseTo(50 / 200, 9); // 4 steps of 50 J
    expect(isResolved(first)).toBe(true);
  });
  it("adds the errors of slices where they are held one by one", () => {
    const second = partOf(slicedPage(), { begin: -1, end: 3 })!.rows.kernel[0].get(1)!;
    expect(second.joules).toBe(0);
    expect(second.error).toBeCloseTo(0.036, 9);
    expect(isResolved(second)).toBe(false);
  });
  it("takes absolute energies for the error, so that none cancels", () => {
    const page = slicedPage();
    page.slices[0].kernel = [[0, 1e6, [10, -10, 0, 0], 0.1, 0, null]];
    expect(partOf(page, { begin: -1, end: 1 })!.rows.kernel[0].get(0)!.error).toBeCloseTo(2, 9);
  });
  it("is absent where no slice is covered", () => {
    expect(partOf(slicedPage(), { begin: 0.6, end: 0.9 })).toBeNull();
    expect(partOf(slicedPage(), { begin: 50, end: 60 })).toBeNull();
    expect(partOf({ ...slicedPage(), slices: [] }, { begin: 0, end: 3 })).toBeNull();
  });
  it("says why a row has none", () => {
    const page = slicedPage();
    const device = page.activity!.kernel[0];
    expect(reasonOf(page, device, row({ energy_joules: 1 }))).toMatch(/too little/);
    expect(reasonOf(page, device, row({ reason: "no sensor" }))).toBe("no sensor");
    expect(reasonOf(page, { ...device, device: "cpu" }, row({ energy_joules: 1 }))).toMatch(/whole run only/);
  });
});

describe("windowsOf", () => {
  it("takes windows that begin in the selection as a whole", () => {
    const page = slicedPage();
    page.timeline!.windows.blocks = [
      [0, 0, 0, 1, 1, [[0, 10e6, 1e6]]], [0, 0, 1, 1, 1, [[0, 20e6, 1e6]]], [0, 1, 1, 0.5, 3, [[0, 6e6, 3e6]], 0.4], [0, 0, 2, 1, 1, [[0, 40e6, 1e6]]],
    ];
    const found = windowsOf(page, { begin: 0.5, end: 2 });
    expect([...found.keys()]).toEqual(["a", "b"]);
    expect(found.get("a")).toMatchObject({ count: 1, seconds: 1 });
    expect(found.get("a")!.energies.get(0)).toEqual({ joules: 20, error: 1, count: 1 });
    expect(found.get("b")).toMatchObject({ count: 3, seconds: 0.4 });
    expect(found.get("b")!.energies.get(0)!.error).toBe(3);
  });
  it("keeps the sums of devices next to one that lacks a window, in any order", () => {
    const page = slicedPage();
    for (const lost of [0, 1]) {
      const kept: [number, number, number] = [1 - lost, 20e6, 1e6];
      const both: [number, number, number][] = [[0, 20e6, 1e6], [1, 20e6, 1e6]];
      page.timeline!.windows.blocks = [[0, 0, 0, 1, 1, both], [0, 0, 1, 1, 1, [kept]]];
      const found = windowsOf(page, { begin: 0, end: 3 }).get("a")!;
      expect([...found.energies.keys()]).toEqual([1 - lost]);
      expect(found.reason).toMatch(/did not measure all/);
    }
  });
  it("has no sum of windows that overlap, lack an energy, or are held with others", () => {
    const page = slicedPage();
    const blocks = page.timeline!.windows.blocks;
    blocks.push([0, 0, 0, 1, 1, [[0, 10e6, 1e6]]], [1, 0, 0.5, 1, 1, [[0, 10e6, 1e6]]]);
    expect(windowsOf(page, { begin: 0, end: 3 }).get("a")).toMatchObject({ count: 2, reason: expect.stringMatching(/overlap/) });
    expect(windowsOf(page, { begin: 0, end: 3 }).get("a")!.energies.size).toBe(0);
    blocks[1] = [0, 0, 1, 1, 1, []];
    expect(windowsOf(page, { begin: 0, end: 3 }).get("a")!.energies.size).toBe(0);
    blocks[1] = [0, -1, 1, 1, 5, null];
    expect(windowsOf(page, { begin: 0, end: 3 }).get("a")!.reason).toMatch(/several names/);
  });
});
