import { describe, expect, it } from "vitest";
import type { Row } from "../src/data";
import { folded, shortLayer, spreadOf, starred, treeRows } from "../src/fold";
import { parseTime } from "../src/quantity";
import { sharedBegin, windowColumns } from "../src/tables_view";
import { child, makeFrame } from "../src/tree";
import { domain, tracedPage } from "./fixture";

const row = (number: number, parent: number | null, name: string, inclusive: number, own = 0): Row => ({
  number, parent, name, detail: null, calls: 1, launches: 2, busy_seconds: 0.5, provenance: "measured",
  energy_joules: own, interval_joules: [own - 1, own + 1], inclusive_joules: inclusive,
  inclusive_interval_joules: [inclusive - 2, inclusive + 2], energy_per_launch_joules: null, mean_watts: null,
  share_ratio: inclusive / 100, resolvable: true, group: null, group_joules: null, reason: null,
});

const ROWS = [
  row(0, null, "model", 60), row(1, 0, "model.layers", 60), row(2, 1, "model.layers.0", 29), row(3, 1, "model.layers.1", 31),
  row(4, 2, "model.layers.0.mlp", 20, 20), row(5, 3, "model.layers.1.mlp", 22, 22), row(6, 3, "model.layers.1.only", 9, 9),
];

describe("alike layers", () => {
  it("are one row with mean and spread, whose parts are joined by their names", () => {
    const rows = treeRows(ROWS, true);
    expect(rows.map((r) => r.short)).toEqual(["model", "layers", "layers.* ×2", "mlp ×2", "only"]);
    const [, , layers, mlp, only] = rows;
    expect(layers.row.inclusive_joules).toBe(60);
    expect(layers.row.inclusive_interval_joules).toEqual([56, 64]);
    expect(layers.each).toEqual({ count: 2, mean: 30, deviation: Math.SQRT2 });
    expect(mlp.row.inclusive_joules).toBe(42);
    expect([mlp.parent, only.parent, mlp.depth]).toEqual([layers.id, layers.id, 3]);
  });

  it("are rows of their own where they are not folded", () => {
    const rows = treeRows(ROWS, false);
    expect(rows).toHaveLength(ROWS.length);
    expect(rows.map((r) => r.short)).toContain("layers.1");
  });

  it("are one frame whose energy is their sum", () => {
    const root = makeFrame({ name: "gpu0", kind: "device", joules: 60 });
    const list = child(root, { name: "model.layers", kind: "layer", joules: 60 });
    for (const [i, joules] of [[0, 29], [1, 31]]) {
      const layer = child(list, { name: `model.layers.${i}`, kind: "layer", joules });
      child(layer, { name: `model.layers.${i}.mlp`, kind: "layer", joules });
    }
    const [found] = folded(root, true).children[0].children;
    expect([found.name, found.full, found.joules, found.members?.length]).toEqual(["layers.* ×2", "model.layers.*", 60, 2]);
    expect([found.children.length, found.children[0].name, found.children[0].joules]).toEqual([1, "mlp ×2", 60]);
    expect(folded(root, false).children[0].children).toHaveLength(2);
  });

  it("have short names", () => {
    expect(shortLayer("model.layers.3", "model.layers")).toBe("layers.3");
    expect(shortLayer("model.norm", "model")).toBe("norm");
    expect(shortLayer("model2.norm", "model")).toBe("model2.norm");
    expect([starred("a.12"), starred("7"), starred("a.b2")]).toEqual(["a.*", "*", null]);
    expect(spreadOf([4]).deviation).toBe(0);
  });
});

describe("what a reader types or sees", () => {
  it("is a time in seconds, or with units", () => {
    for (const [text, seconds] of [["12.5", 12.5], ["28m35s", 1715], ["28 min 35 s", 1715], ["1h2m", 3720], ["500ms", 0.5], ["-2", -2], ["1d", 86400]] as const) {
      expect(parseTime(text), text).toBeCloseTo(seconds, 9);
    }
    for (const text of ["", "soon", "5x", "1m soon", "--3"]) expect(parseTime(text), text).toBeNull();
  });

  it("has what differs of many alike commands", () => {
    const begin = "python3 /opt/venv/bin/worker --config /etc/worker.yaml --shard ";
    expect(sharedBegin(["0", "1", "2"].map((n) => begin + n))).toBe(begin.length);
    expect(sharedBegin(["a 1", "a 2", "a 3"])).toBe(0);
    expect(sharedBegin([`${begin}0`, `${begin}1`])).toBe(0);
  });
});

describe("the reason of a window", () => {
  const energy = (id: number, joules: number | null, reason: string | null) => ({
    id, count: 1, provenance: "measured", energy_joules: joules, interval_joules: null, mean_joules: joules,
    mean_interval_joules: null, quartiles_joules: null, reason,
  });
  const reasons = (...windows: ReturnType<typeof energy>[][]) => {
    const page = tracedPage();
    page.labels = ["gpu0", "cpu", "gpu1"];
    page.profile.domains = [domain({ id: 0 }), domain({ id: 1 }), domain({ id: 2 })];
    page.profile.windows = windows.map((of, i) => ({
      name: `${i}`, imported: false, labels: [], count: 1, total_seconds: 1, mean_seconds: 1, energy: of,
    }));
    const column = windowColumns(page).find((c) => c.key === "reason")!;
    return column.hidden ? [] : page.profile.windows.map(column.value);
  };

  it("names the devices that have a figure in another row", () => {
    const none = energy(1, null, "no sensor");
    expect(reasons([energy(0, 1, null), none, energy(2, 1, null)], [energy(0, null, "lost"), none, energy(2, null, "lost")]))
      .toEqual([null, "gpu0, gpu1: lost"]);
  });
  it("is not that of a device without any figure, unless all are", () => {
    expect(reasons([energy(0, 1, null), energy(1, null, "no sensor")])).toEqual([]);
    expect(reasons([energy(1, null, "no sensor")])).toEqual(["cpu: no sensor"]);
  });
});
