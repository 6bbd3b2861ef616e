// Short names of layers, and alike ones as one: "layers.0" to "layers.11" are "layers.* ×12".
import type { Row } from "./data";
import type { Frame } from "./tree";

const lastWord = (path: string): string => path.slice(path.lastIndexOf(".") + 1);

// A layer's name within the one that holds it; a number alone has its list's name before it.
export function shortLayer(name: string, holder: string | null): string {
  const inside = holder && name.startsWith(`${holder}.`) ? name.slice(holder.length + 1) : name;
  return /^[\d*]+$/.test(inside) && holder ? `${lastWord(holder)}.${inside}` : inside;
}

// The name with a star for its last number; absent where it does not end in one.
export function starred(name: string): string | null {
  const found = /^(.*\.)?\d+$/.exec(name);
  return found ? `${found[1] ?? ""}*` : null;
}

export const isLayer = (frame: Frame): boolean => frame.kind === "layer" || frame.kind === "range";

export interface Spread {
  count: number;
  mean: number;
  deviation: number; // of one from another, of a sample
}

export function spreadOf(values: number[]): Spread {
  const mean = values.reduce((s, v) => s + v, 0) / values.length;
  const squares = values.reduce((s, v) => s + (v - mean) ** 2, 0);
  return { count: values.length, mean, deviation: values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : 0 };
}

// What several frames are together: their children are joined by their names within them.
function joined(name: string, frames: Frame[], parent: Frame | null): Frame {
  const sum = (of: (f: Frame) => number) => frames.reduce((s, f) => s + of(f), 0);
  const [first] = frames;
  const out: Frame = {
    ...first, full: name, parent, joules: sum((f) => f.joules), seconds: sum((f) => f.seconds),
    launches: sum((f) => f.launches), children: [], members: frames.flatMap((f) => f.members ?? [f]),
    resolvable: frames.every((f) => f.resolvable), row: frames.length > 1 ? null : first.row, part: null,
  };
  const groups = new Map<string, Frame[]>();
  for (const frame of frames) {
    for (const child of frame.children) {
      const own = isLayer(child) && child.full.startsWith(`${frame.full}.`)
        ? name + child.full.slice(frame.full.length) : child.full;
      const key = `${child.kind} ${own} ${child.by === "kernel" ? child.row?.detail ?? "" : ""}`;
      groups.set(key, [...(groups.get(key) ?? []), child]);
    }
  }
  for (const [key, group] of groups) {
    const child = group[0];
    const own = isLayer(child) ? key.slice(child.kind.length + 1).trimEnd() : child.full;
    out.children.push(group.length === 1 ? { ...child, full: own, parent: out } : joined(own, group, out));
  }
  return out;
}

// The tree with alike layers as one frame, which has them as members, and with short names. `fold`
// false: short names alone.
export function folded(root: Frame, fold: boolean): Frame {
  const visit = (frame: Frame, parent: Frame | null): Frame => {
    const copy: Frame = { ...frame, parent, children: [] };
    let children = frame.children;
    if (fold) {
      const groups = new Map<string, Frame[]>();
      for (const child of children) {
        const star = isLayer(child) ? starred(child.full) : null;
        const key = star === null ? `=${groups.size}` : star;
        groups.set(key, [...(groups.get(key) ?? []), child]);
      }
      children = [...groups].map(([key, group]) => (group.length > 1 ? joined(key, group, frame) : group[0]));
    }
    const holder = isLayer(copy) ? copy.full : null;
    copy.children = children.map((child) => {
      const below = visit(child, copy);
      if (isLayer(below)) {
        below.name = shortLayer(below.full, holder);
        if (below.members && below.full.includes("*")) below.name += ` ×${below.members.length}`;
      }
      return below;
    });
    return copy;
  };
  return visit(root, null);
}

// A row of a table as a tree: the row, where it stands, and of alike ones their number and their energies.
export interface TreeRow<R extends Row> {
  row: R;
  id: number;
  parent: number; // the id of the one that holds it; -1: none
  depth: number;
  short: string;
  each: Spread | null; // of alike layers: joules of one, with its parts
}

const wholeOf = (r: Row): number | null => r.inclusive_joules ?? r.energy_joules;

// Sums over alike rows. Errors add up, as if all erred to the same side.
function sumOfRows<R extends Row>(name: string, rows: R[]): R {
  const sum = (of: (r: R) => number | null): number | null => {
    const known = rows.map(of).filter((v): v is number => v !== null);
    return known.length === rows.length ? known.reduce((s, v) => s + v, 0) : null;
  };
  const interval = (of: (r: R) => number | null, ends: (r: R) => [number, number] | null): [number, number] | null => {
    const middle = sum(of);
    const half = sum((r) => { const e = ends(r); return e && (e[1] - e[0]) / 2; });
    return middle === null || half === null ? null : [middle - half, middle + half];
  };
  const inclusive = sum((r) => r.inclusive_joules);
  const whole = inclusive ?? sum((r) => r.energy_joules);
  const ends = interval((r) => wholeOf(r), (r) => r.inclusive_interval_joules ?? r.interval_joules);
  const busy = sum((r) => r.busy_seconds) ?? 0;
  const own = sum((r) => r.energy_joules);
  const details = new Set(rows.map((r) => r.detail));
  return {
    ...rows[0], name, detail: details.size === 1 ? rows[0].detail : null,
    calls: sum((r) => r.calls), launches: sum((r) => r.launches) ?? 0, busy_seconds: busy,
    energy_joules: own, interval_joules: interval((r) => r.energy_joules, (r) => r.interval_joules),
    inclusive_joules: inclusive, inclusive_interval_joules: inclusive === null ? null : ends,
    energy_per_launch_joules: null, share_ratio: sum((r) => r.share_ratio),
    mean_watts: own !== null && busy > 0 ? own / busy : null,
    resolvable: rows.every((r) => r.resolvable !== false) ||
      (whole !== null && ends !== null && whole > 0 && (ends[1] - ends[0]) / 2 <= 0.5 * whole),
    group: null, group_joules: null, reason: rows.find((r) => r.reason)?.reason ?? null,
  };
}

// Rows of one device in the order of a tree, parents first; alike ones as one where `fold`.
export function treeRows<R extends Row>(rows: R[], fold: boolean, firstId = 0): TreeRow<R>[] {
  const numbers = new Set(rows.map((r) => r.number));
  const below = new Map<number | null, R[]>();
  for (const row of rows) {
    const parent = row.parent !== null && numbers.has(row.parent) ? row.parent : null;
    below.set(parent, [...(below.get(parent) ?? []), row]);
  }
  const out: TreeRow<R>[] = [];
  // `held`: the rows that a node stands for, and their names within it.
  const visit = (held: R[], names: string[], parent: number, depth: number, holder: string | null, open: number) => {
    const groups = new Map<string, R[]>();
    const add = (name: string, row: R) => {
      const star = fold ? starred(name) : null;
      const key = star ?? name;
      groups.set(key, [...(groups.get(key) ?? []), row]);
    };
    held.forEach((row, i) => add(names[i], row));
    for (const [key, group] of groups) {
      const single = group.length === 1;
      const name = single && !key.includes("*") ? key : key;
      const label = single ? (names[held.indexOf(group[0])] ?? key) : name;
      const whole = group.map(wholeOf).filter((v): v is number => v !== null);
      const id = firstId + out.length;
      const short = shortLayer(label, holder) + (single ? "" : ` ×${group.length}`);
      out.push({
        row: single ? group[0] : sumOfRows(name, group), id, parent, depth, short,
        each: single || whole.length < group.length ? null : spreadOf(whole),
      });
      if (open > 64) continue;
      const children = group.flatMap((row) => (below.get(row.number) ?? []).map((child) => ({
        child,
        name: child.name.startsWith(`${row.name}.`) ? label + child.name.slice(row.name.length) : child.name,
      })));
      if (children.length > 0) visit(children.map((c) => c.child), children.map((c) => c.name), id, depth + 1, label, open + 1);
    }
  };
  const roots = below.get(null) ?? [];
  visit(roots, roots.map((r) => r.name), -1, 0, null, 0);
  return out;
}
