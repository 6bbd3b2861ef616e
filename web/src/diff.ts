// Two sides as one icicle: what the whole is made of, and by how much each part changed.
import { shortName } from "./kinds";
import type { Comparison, Difference, Verdict } from "./results";

export type DiffWidth = "after" | "before" | "change";

export interface DiffFrame {
  name: string;
  label: string; // the name within its parent
  detail: string | null;
  before: number; // joules; 0: not on this side
  after: number;
  low: number | null; // ends of the interval of the change, in joules
  high: number | null;
  ratio: number | null;
  verdict: Verdict | "new" | "gone" | "rest";
  children: DiffFrame[];
  x: number;
  width: number;
  depth: number;
}

const frame = (of: Partial<DiffFrame> & Pick<DiffFrame, "name" | "before" | "after" | "verdict">): DiffFrame => ({
  label: of.name, detail: null, low: null, high: null, ratio: null, children: [], x: 0, width: 0, depth: 0, ...of,
});

function ofDifference(d: Difference): DiffFrame {
  const before = d.before_joules ?? 0;
  return frame({
    name: d.name, detail: d.detail, before, after: d.after_joules ?? 0, ratio: d.change_ratio, verdict: d.verdict,
    low: d.interval_ratio ? before * d.interval_ratio[0] : null,
    high: d.interval_ratio ? before * d.interval_ratio[1] : null,
  });
}

// The row that holds one of this name: that of the longest prefix up to a dot.
function holderOf(name: string, known: Map<string, DiffFrame>): DiffFrame | undefined {
  for (let at = name.lastIndexOf("."); at > 0; at = name.lastIndexOf(".", at - 1)) {
    const holder = known.get(name.slice(0, at));
    if (holder) return holder;
  }
  return undefined;
}

// Rows below the whole, layers below the layers that hold them. What no row has is a frame of its
// own, so that the widths are those of the whole.
export function buildDiff(comparison: Comparison): DiffFrame {
  const root = ofDifference(comparison.energy);
  root.name = root.label = "total";
  const isTree = comparison.by === "layer";
  const frames = comparison.rows.filter((d) => d.before_joules != null && d.after_joules != null).map(ofDifference);
  for (const row of comparison.unmatched) {
    if (row.energy_joules === null) continue;
    const isNew = row.side === "after";
    frames.push(frame({
      name: row.name, detail: row.detail, before: isNew ? 0 : row.energy_joules,
      after: isNew ? row.energy_joules : 0, verdict: isNew ? "new" : "gone",
    }));
  }
  const known = new Map(frames.map((f) => [f.name, f]));
  for (const f of frames) {
    const holder = isTree ? holderOf(f.name, known) : undefined;
    if (holder) f.label = f.name.slice(holder.name.length + 1);
    else if (comparison.by === "kernel") f.label = shortName(f.name);
    (holder ?? root).children.push(f);
  }
  if (frames.length > 0 && comparison.by !== "window") {
    const rest = (side: "before" | "after") =>
      Math.max(0, root[side] - root.children.reduce((sum, child) => sum + child[side], 0));
    const before = rest("before");
    const after = rest("after");
    if (before > 0 || after > 0) {
      root.children.push(frame({ name: "other energy", before, after, verdict: "rest" }));
    }
  }
  return root;
}

export const changeOf = (f: DiffFrame): number => f.after - f.before;

export function diffWeight(f: DiffFrame, width: DiffWidth): number {
  return width === "after" ? f.after : width === "before" ? f.before : Math.abs(changeOf(f));
}

// Whether a change is larger than its error.
export const isClear = (f: DiffFrame): boolean =>
  f.verdict === "lower" || f.verdict === "higher" || f.verdict === "new" || f.verdict === "gone";

// Places the frames below the root: a parent is at least as wide as its children.
export function layOutDiff(root: DiffFrame, width: DiffWidth): DiffFrame[] {
  const placed: DiffFrame[] = [];
  const visit = (f: DiffFrame, x: number, w: number, depth: number) => {
    Object.assign(f, { x, width: w, depth });
    placed.push(f);
    const shown = f.children.filter((c) => diffWeight(c, width) > 0)
      .sort((a, b) => Number(a.verdict === "rest") - Number(b.verdict === "rest") || diffWeight(b, width) - diffWeight(a, width));
    const sum = shown.reduce((s, c) => s + diffWeight(c, width), 0);
    const whole = Math.max(width === "change" ? 0 : diffWeight(f, width), sum);
    let at = x;
    for (const child of shown) {
      const part = (w * diffWeight(child, width)) / whole;
      visit(child, at, part, depth + 1);
      at += part;
    }
  };
  visit(root, 0, 1, 0);
  return placed;
}
