import { describe, expect, it } from "vitest";
import { buildTimeTree, buildTree, layOut, matches, outermostMatches, wattsOf, type Frame } from "../src/tree";
import { process, tracedPage } from "./fixture";

const find = (root: Frame, name: string): Frame =>
  layOut(root, "energy").find((f) => f.name === name)!;

describe("buildTree", () => {
  it("sums to the measured energy", () => {
    for (const view of ["layer", "range", "process", "kernel"] as const) {
      const root = buildTree(tracedPage(), view);
      expect(root.joules).toBeCloseTo(100, 9);
      const below = root.children.reduce((sum, child) => sum + child.joules, 0);
      expect(below).toBeCloseTo(100, 9);
    }
  });

  it("holds phase, layer within layer, and kernel", () => {
    const root = buildTree(tracedPage(), "layer");
    const forward = find(root, "forward");
    expect(forward.joules).toBeCloseTo(35, 9);
    expect(forward.children[0].name).toBe("model");
    const block = find(root, "model.block");
    expect(block.joules).toBeCloseTo(30, 9);
    expect(block.parent!.joules).toBeCloseTo(35, 9);
    expect(find(root, "gemm_a").launches).toBe(10);
    expect(wattsOf(block)).toBeCloseTo(30, 9);
  });

  it("holds process and kernel, with the idle time between launches of each", () => {
    const page = tracedPage();
    page.profile.processes = [process({ pid: 7, name: "train" }), process({ pid: 8 }), process({ pid: 8 })];
    page.stacks[0].processes = [
      { pid: 7, rank: 0, idle_between_microjoules: 4_000_000, kernels: [[0, 10, 1_000_000_000, 40_000_000]] },
      { pid: 8, rank: null, idle_between_microjoules: 1_000_000, kernels: [[0, 5, 500_000_000, 5_000_000], [1, 2, 500_000_000, 5_000_000]] },
    ];
    const root = buildTree(page, "process");
    expect(root.joules).toBeCloseTo(100, 9);
    const first = find(root, "rank 0: train, pid 7");
    expect(first.joules).toBeCloseTo(44, 9);
    expect(first.children.map((c) => [c.name, c.joules])).toEqual([["gemm_a", 40], ["idle between launches", 4]]);
    // The pid was given out twice.
    expect(find(root, "pid 8").launches).toBe(7);
  });

  it("marks what is not resolvable", () => {
    expect(find(buildTree(tracedPage(), "kernel"), "copy").resolvable).toBe(false);
    expect(find(buildTree(tracedPage(), "kernel"), "gemm_a").resolvable).toBe(true);
  });

  it("joins devices below one root", () => {
    const page = tracedPage();
    page.stacks.push({ ...page.stacks[0], id: 1, device: "gpu1" });
    for (const tables of Object.values(page.activity!)) tables.push({ ...tables[0], device: "gpu1" });
    const root = buildTree(page, "kernel");
    expect(root.children.map((c) => c.name)).toEqual(["gpu0", "gpu1"]);
    expect(root.joules).toBeCloseTo(200, 9);
  });

  it("survives a layer that is its own parent", () => {
    const page = tracedPage();
    page.activity!.layer[0].rows[0].parent = 1;
    expect(buildTree(page, "layer").joules).toBeCloseTo(100, 9);
  });
});

describe("layOut", () => {
  it("gives children their part of the parent, greatest first, idle and unattributed last", () => {
    const root = buildTree(tracedPage(), "kernel");
    const frames = layOut(root, "energy").filter((f) => f.depth === 1);
    expect(frames.map((f) => f.kind)).toEqual(["gemm", "copy", "idle", "idle", "unattributed"]);
    expect(frames[0].width).toBeCloseTo(0.45, 9);
    expect(frames[1].x).toBeCloseTo(0.45, 9);
    expect(frames.reduce((sum, f) => sum + f.width, 0)).toBeCloseTo(1, 9);
  });

  it("never exceeds the parent where a part is negative", () => {
    const page = tracedPage();
    for (const tables of Object.values(page.activity!)) tables[0].unattributed_joules = -20;
    const root = buildTree(page, "kernel");
    const frames = layOut(root, "energy");
    for (const f of frames) expect(f.x + f.width).toBeLessThanOrEqual(1 + 1e-9);
    expect(frames.some((f) => f.kind === "unattributed")).toBe(false);
  });

  it("has no idle energy where width is time or number", () => {
    for (const measure of ["time", "number"] as const) {
      const kinds = layOut(buildTree(tracedPage(), "kernel"), measure).map((f) => f.kind);
      expect(kinds).toEqual(["device", "gemm", "copy"]);
    }
  });
});

describe("narrow frames", () => {
  const many = () => {
    const page = tracedPage();
    const rows = page.activity!.kernel[0].rows;
    page.activity!.kernel[0].rows = Array.from({ length: 5000 }, (_, i) => ({ ...rows[0], number: i, name: `k${i}` }));
    page.stacks[0].stacks = Array.from({ length: 5000 }, (_, i) => [1, null, null, i, 1, 10_000, 10_000]);
    return page;
  };
  it("are one frame, so that no width stays blank, and open on a zoom", () => {
    const root = buildTree(many(), "kernel");
    const frames = layOut(root, "energy", 1 / 800).filter((f) => f.depth === 1);
    expect(frames.map((f) => f.name)).toContain("+5000 small");
    expect(frames.reduce((sum, f) => sum + f.width, 0)).toBeCloseTo(1, 9);
    const joined = frames.find((f) => f.kind === "small")!;
    expect(joined.joules).toBeCloseTo(50, 6);
    expect(joined.launches).toBe(5000);
    expect(joined.parent).toBe(root);
    expect(layOut(joined, "energy").filter((f) => f.depth === 1)).toHaveLength(5000);
    // On a screen it opens by parts.
    const parts = layOut(joined, "energy", 1 / 800).filter((f) => f.depth === 1);
    expect(parts).toHaveLength(40);
    expect(parts.reduce((sum, f) => sum + f.launches, 0)).toBe(5000);
  });
});

describe("width by time", () => {
  it("has the time of GPUs alone where there are any", () => {
    const page = tracedPage();
    page.stacks.push({ ...page.stacks[0], id: 1, device: "package-0" });
    for (const tables of Object.values(page.activity!)) tables.push({ ...tables[0], device: "package-0", domain: "cpu" });
    expect(buildTree(page, "kernel").seconds).toBeCloseTo(4, 9);
    expect(buildTimeTree(page, "kernel")).toMatchObject({ name: "gpu0", seconds: 2 });
    page.activity!.kernel.forEach((d) => (d.domain = "cpu"));
    expect(buildTimeTree(page, "kernel").seconds).toBeCloseTo(4, 9);
  });
});

describe("search", () => {
  it("needs every word, and counts nothing twice", () => {
    const root = buildTree(tracedPage(), "layer");
    const found = outermostMatches(root, "model");
    expect(found.map((f) => f.name)).toEqual(["model"]);
    expect(matches(find(root, "gemm_a"), "gemm a")).toBe(true);
    expect(matches(find(root, "gemm_a"), "gemm x")).toBe(false);
    expect(matches(root, "  ")).toBe(false);
  });
});
