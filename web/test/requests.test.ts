import { describe, expect, it } from "vitest";
import { readPage, type Page } from "../src/data";
import { boardParts, half } from "../src/requests_view";
import { tracedPage } from "./fixture";

const board = {
  device: "gpu0", provenance: "measured", energy_joules: 100, rest_joules: 40, held_joules: 10, idle_joules: 50,
  between_joules: 5, requests_joules: 47, unattributed_joules: -2,
};

describe("requests", () => {
  it("have their columns again", () => {
    const page = tracedPage() as unknown as Record<string, unknown>;
    page.activity = null;
    page.serving = { boards: [board], tenants: [], warnings: [], requests: { keys: ["request", "energy_joules"], rows: [["a", 3], ["b", 2]] } };
    const read = readPage(JSON.stringify(page)) as Page;
    expect(read.serving!.requests.map((r) => [r.request, r.energy_joules])).toEqual([["a", 3], ["b", 2]]);
  });
  it("sum with the other parts to the board", () => {
    const sum = (b: typeof board | (Omit<typeof board, "rest_joules"> & { rest_joules: null })) =>
      boardParts(b).reduce((s, part) => s + part[2], 0);
    expect(sum(board)).toBe(100);
    expect(sum({ ...board, rest_joules: null })).toBe(100);
  });
  it("have the error of the upper bound, where the lower one is zero", () => {
    expect(half({ energy_joules: 8, interval_joules: [0, 20] } as never)).toBe(12);
    expect(half({ energy_joules: null, interval_joules: null } as never)).toBe(null);
  });
});
