import { describe, expect, it } from "vitest";
import { partOf } from "../src/part";
import { buildPartTree, REST_OF_PART } from "../src/tree";
import { layOut } from "../src/tree";
import { slicedPage } from "./fixture";

describe("buildPartTree", () => {
  const page = slicedPage();
  page.slices[0].layer = [[0, 1e6, [0, 10, 20, 40], 0.1, 0, null], [1, 1e6, [0, 5, 15, 30], 0.1, 0, null]];
  const part = partOf(page, { begin: 1, end: 3 })!;

  it("is the measured energy of the same time, divided as the tables divide it", () => {
    const root = buildPartTree(page, part, "kernel")!;
    expect(root.joules).toBeCloseTo(200, 9); // 4 steps of 50 J
    expect(root.children.map((c) => [c.name, c.joules])).toEqual([
      ["gemm_a", 50], ["copy", expect.closeTo(-0.005, 9)], [REST_OF_PART, expect.closeTo(150.005, 9)],
    ]);
    expect(root.children[0].part!.error).toBeCloseTo(6, 9);
    expect(root.children[1].resolvable).toBe(false);
    expect(layOut(root, "energy").map((f) => f.name)).toEqual(["gpu0", "gemm_a", REST_OF_PART]);
  });
  it("holds layers within layers, whose energies contain their parts", () => {
    const root = buildPartTree(page, part, "layer")!;
    const model = root.children[0];
    expect([model.name, model.joules]).toEqual(["model", 60]);
    expect(model.children.map((c) => [c.name, c.joules])).toEqual([["model.block", 45]]);
    expect(root.children[1]).toMatchObject({ name: REST_OF_PART, joules: 140 });
  });
  it("is absent where no device's energies are held by time", () => {
    expect(buildPartTree(page, { ...part, wholes: [null] }, "kernel")).toBeNull();
  });
  it("survives a layer that is its own parent", () => {
    const odd = slicedPage();
    odd.slices[0].layer = page.slices[0].layer;
    odd.activity!.layer[0].rows[0].parent = 1;
    expect(buildPartTree(odd, partOf(odd, { begin: 1, end: 3 })!, "layer")!.joules).toBeCloseTo(200, 9);
  });
});
