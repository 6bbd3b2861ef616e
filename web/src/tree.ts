// The icicle: energy by phase, layer and kernel as a tree.
import type { Activity, By, DeviceStacks, Page, ProcessStacks, Row } from "./data";
import { type Kind, kindOf, shortName } from "./kinds";
import { isResolved, type Part, type PartEnergy } from "./part";

export type Measure = "energy" | "time" | "number";
export type View = "layer" | "range" | "process" | "kind" | "kernel";
export type FrameKind = Kind | "small" | "device" | "phase" | "layer" | "range" | "process" | "idle" | "unattributed";

export interface Frame {
  name: string;
  full: string; // the name as it was recorded
  kind: FrameKind;
  joules: number; // with all below; of the recorded stacks
  seconds: number;
  launches: number;
  children: Frame[];
  parent: Frame | null;
  row: Row | null; // the table's row of the same name
  by: By | null; // the table of that row
  resolvable: boolean;
  estimated: boolean;
  part: PartEnergy | null; // of a selection, in a tree of one
  device: number; // its place in the page's list; -1: several
  members: Frame[] | null; // of a frame that stands for several alike ones
  // Laid out: begin and width as parts of the whole, and level.
  x: number;
  width: number;
  depth: number;
}

type Maker = Pick<Frame, "name" | "kind"> & Partial<Frame>;

const BETWEEN = "idle between launches";

export function makeFrame(of: Maker): Frame {
  return {
    full: of.name, joules: 0, seconds: 0, launches: 0, children: [], parent: null, row: null,
    by: null, resolvable: true, estimated: false, part: null, device: -1, members: null, x: 0, width: 0, depth: 0, ...of,
  };
}

export function child(parent: Frame, of: Maker): Frame {
  const frame = makeFrame({ ...of, parent });
  parent.children.push(frame);
  return frame;
}

// Frames are found by their key below one parent.
class Builder {
  private below = new Map<Frame, Map<string, Frame>>();

  child(parent: Frame, key: string, of: () => Maker): Frame {
    let known = this.below.get(parent);
    if (!known) this.below.set(parent, (known = new Map()));
    let frame = known.get(key);
    if (!frame) {
      frame = child(parent, { ...of(), estimated: parent.estimated, device: parent.device });
      known.set(key, frame);
    }
    return frame;
  }
}

export const weightOf = (frame: Frame, measure: Measure): number =>
  Math.max(0, measure === "energy" ? frame.joules : measure === "time" ? frame.seconds : frame.launches);

function rowsByNumber(activity: Activity | undefined): Map<number, Row> {
  return new Map((activity?.rows ?? []).map((row) => [row.number, row]));
}

// A row and those that hold it, outermost first.
function path(rows: Map<number, Row>, number: number | null): Row[] {
  const out: Row[] = [];
  let at = number === null ? undefined : rows.get(number);
  while (at && out.length < 256) {
    out.unshift(at);
    at = at.parent === null ? undefined : rows.get(at.parent);
  }
  return out;
}

function isResolvable(row: Row | null): boolean {
  return !row || row.resolvable !== false;
}

// A pid can be given out twice: then its name is not known.
function processName(page: Page, process: ProcessStacks): string {
  const known = page.profile.processes.filter((p) => p.pid === process.pid || p.own_pid === process.pid);
  const name = `${known.length === 1 && known[0].name ? `${known[0].name}, ` : ""}pid ${process.pid}`;
  return process.rank === null ? name : `rank ${process.rank}: ${name}`;
}

function deviceTree(page: Page, stacks: DeviceStacks, index: number, view: View): Frame {
  const tables = page.activity!;
  const activity = tables.kernel[index];
  const kernels = rowsByNumber(activity);
  const parts = rowsByNumber(view === "range" ? tables.range[index] : tables.layer[index]);
  const by: By = view === "range" ? "range" : "layer";
  const root = makeFrame({
    name: activity.device, kind: "device", estimated: activity.provenance === "estimated", device: index,
  });
  const builder = new Builder();
  const add = (frame: Frame, joules: number, seconds: number, launches: number) => {
    for (let f: Frame | null = frame; f; f = f.parent) {
      f.joules += joules;
      f.seconds += seconds;
      f.launches += launches;
    }
  };
  const addKernel = (at: Frame, kernel: number | null, launches: number, nanoseconds: number, microjoules: number) => {
    let frame = at;
    if (kernel !== null) {
      const row = kernels.get(kernel) ?? null;
      const name = row?.name ?? "(other kernels)";
      frame = builder.child(at, row ? `k${kernel}` : "others", () => ({
        name: shortName(name), full: name, kind: kindOf(name), row, by: "kernel",
        resolvable: isResolvable(row),
      }));
    }
    add(frame, microjoules / 1e6, nanoseconds / 1e9, launches);
  };
  // A CPU's layers have no process.
  const processes = view === "process" ? stacks.processes : [];
  for (const [phase, layer, range, kernel, launches, nanoseconds, microjoules] of processes.length > 0 ? [] : stacks.stacks) {
    let at = root;
    if (view === "layer" && stacks.phases[phase]) {
      const name = stacks.phases[phase];
      const row = tables.phase[index].rows.find((r) => r.name === name) ?? null;
      at = builder.child(at, `p${phase}`, () => ({ name, kind: "phase", row, by: "phase" }));
    }
    if (view === "layer" || view === "range") {
      for (const row of path(parts, view === "range" ? range : layer)) {
        at = builder.child(at, `l${row.number}`, () => ({
          name: row.name, kind: by, row, by, resolvable: isResolvable(row),
        }));
      }
    }
    if (view === "kind" && kernel !== null) {
      const kind = kindOf(kernels.get(kernel)?.name ?? "");
      at = builder.child(at, `kind ${kind}`, () => ({ name: kind, kind }));
    }
    addKernel(at, kernel, launches, nanoseconds, microjoules);
  }
  for (const [i, process] of processes.entries()) {
    const at = builder.child(root, `q${i}`, () => ({ name: processName(page, process), kind: "process" }));
    for (const kernel of process.kernels) addKernel(at, ...kernel);
    if (process.idle_between_microjoules > 0) {
      add(builder.child(at, "idle", () => ({ name: BETWEEN, kind: "idle" })), process.idle_between_microjoules / 1e6, 0, 0);
    }
  }
  const rest = (name: string, joules: number | null, kind: FrameKind) => {
    if (joules === null || joules === 0) return;
    add(builder.child(root, `r${name}`, () => ({ name, kind })), joules, 0, 0);
  };
  if (activity.rest_joules !== null && activity.held_joules !== null) {
    rest("rest", activity.rest_joules, "idle");
    rest("held", activity.held_joules, "idle");
  } else {
    rest("idle (rest and held)", activity.idle_joules, "idle");
  }
  // In the view of processes it is part of each.
  if (processes.length === 0) rest(BETWEEN, activity.idle_between_launches_joules, "idle");
  rest("other processes", activity.others_joules, "unattributed");
  rest("unattributed", activity.unattributed_joules, "unattributed");
  return root;
}

// One root that holds every device.
export const buildTree = (page: Page, view: View): Frame =>
  devicesRoot(page.stacks.map((stacks, i) => deviceTree(page, stacks, i, view)));

// The time of CPU threads is no part of the time of GPUs: where there are GPUs, times are theirs.
export function buildTimeTree(page: Page, view: View): Frame {
  const all = page.stacks.map((stacks, i) => ({ stacks, i }));
  const gpus = all.filter(({ i }) => page.activity!.kernel[i].domain.startsWith("gpu"));
  return devicesRoot((gpus.length > 0 ? gpus : all).map(({ stacks, i }) => deviceTree(page, stacks, i, view)));
}

export function devicesRoot(devices: Frame[]): Frame {
  if (devices.length === 1) return devices[0];
  const root = makeFrame({ name: "all devices", kind: "device" });
  for (const device of devices) {
    device.parent = root;
    root.children.push(device);
    root.joules += device.joules;
    root.seconds += device.seconds;
    root.launches += device.launches;
  }
  return root;
}

const GROUPS = 40; // of small frames after a zoom into them

// What several frames are together. A negative energy has no part in it.
function small(parent: Frame, frames: Frame[]): Frame {
  if (frames.length === 1) return frames[0];
  const sum = (of: (f: Frame) => number) => frames.reduce((s, f) => s + of(f), 0);
  return makeFrame({
    name: `+${frames.length} small`, full: `${frames.length} small parts of ${parent.name}`, kind: "small", parent, children: frames,
    joules: sum((f) => f.joules), seconds: sum((f) => f.seconds), launches: sum((f) => f.launches),
    resolvable: frames.every((f) => f.resolvable), estimated: frames.some((f) => f.estimated),
  });
}

// Places every frame of a positive weight below `root`; children by weight, greatest first, idle and
// unattributed energy last. Children narrower than `least` of the whole are one frame, which opens on
// a zoom, so that no width stays blank. A negative energy has no width: a parent of it is wider than itself, so
// that its children share the width by their positive weights.
export function layOut(root: Frame, measure: Measure, least = 0): Frame[] {
  const frames: Frame[] = [];
  const place = (frame: Frame, x: number, width: number, depth: number) => {
    frame.x = x;
    frame.width = width;
    frame.depth = depth;
    frames.push(frame);
    const last = (f: Frame) => (f.kind === "idle" ? 1 : f.kind === "unattributed" ? 2 : 0);
    const shown = frame.children
      .filter((c) => weightOf(c, measure) > 0)
      .sort((a, b) => last(a) - last(b) || weightOf(b, measure) - weightOf(a, measure));
    const sum = shown.reduce((s, c) => s + weightOf(c, measure), 0);
    // What the frame has of its own stays free at its right.
    const whole = Math.max(weightOf(frame, measure), sum);
    let at = x;
    const widthOf = (f: Frame) => (width * weightOf(f, measure)) / whole;
    if (frame.kind === "small" && frame !== root) return;
    const narrow = shown.filter((c) => last(c) === 0 && widthOf(c) < least);
    const joined = new Map<Frame, Frame>(); // by the first of each
    if (narrow.length > 1) {
      const size = frame.kind === "small" ? Math.ceil(narrow.length / GROUPS) : narrow.length;
      for (let i = 0; i < narrow.length; i += size) joined.set(narrow[i], small(frame, narrow.slice(i, i + size)));
    }
    const inside = new Set(joined.size > 0 ? narrow : []);
    for (const child of shown) {
      const own = inside.has(child) ? joined.get(child) : child;
      if (!own) continue;
      const part = widthOf(own);
      place(own, at, part, depth + 1);
      at += part;
    }
  };
  place(root, 0, 1, 0);
  return frames;
}

// Whether a frame's name has every word.
export function matches(frame: Frame, search: string): boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const text = `${frame.full} ${frame.name} ${frame.row?.detail ?? ""} ${frame.kind}`.toLowerCase();
  return words.length > 0 && words.every((word) => text.includes(word));
}

// The matching frames that lie in no other matching frame: their sum counts nothing twice.
export function outermostMatches(root: Frame, search: string): Frame[] {
  const found: Frame[] = [];
  const visit = (frame: Frame) => {
    if (matches(frame, search)) found.push(frame);
    else frame.children.forEach(visit);
  };
  visit(root);
  return found;
}

// Above idle; a device holds idle energy, too.
export const wattsOf = (frame: Frame): number | null =>
  frame.kind !== "device" && frame.seconds > 0 && frame.joules > 0 ? frame.joules / frame.seconds : null;

// The icicle of a selected part of the time: what the page holds by time is the energy of kernels,
// layers, ranges and phases, each list for itself.

export type PartView = "layer" | "range" | "phase" | "kernel";

export const REST_OF_PART = "all else";

// Absent without a device whose energies are held by time.
export function buildPartTree(page: Page, part: Part, view: PartView): Frame | null {
  const devices = page.stacks.flatMap((_, i): Frame[] => {
    const energies = part.rows[view][i];
    const whole = part.wholes[i];
    return energies && whole !== null ? [partDeviceTree(page, part, i, view, whole)] : [];
  });
  return devices.length > 0 ? devicesRoot(devices) : null;
}

function partDeviceTree(page: Page, part: Part, index: number, view: PartView, whole: number): Frame {
  const device = page.activity![view][index];
  const energies = part.rows[view][index];
  const root = makeFrame({
    name: device.device, kind: "device", joules: whole, estimated: device.provenance === "estimated", device: index,
  });
  const rows = new Map(device.rows.map((row) => [row.number, row]));
  const frames = new Map<number, Frame>();
  let sum = 0;
  const frameOf = (number: number, open: Set<number>): Frame => {
    const known = frames.get(number);
    if (known) return known;
    const row = rows.get(number)!;
    const held = energies.get(number)!;
    const hasParent = row.parent !== null && energies.has(row.parent) && rows.has(row.parent) && !open.has(row.parent);
    const parent = hasParent ? frameOf(row.parent!, new Set([...open, number])) : root;
    if (parent === root) sum += held.joules;
    const frame = child(parent, {
      name: view === "kernel" ? shortName(row.name) : row.name, full: row.name,
      kind: view === "kernel" ? kindOf(row.name) : view, row, by: view, joules: held.joules, part: held,
      resolvable: row.resolvable !== false && isResolved(held), estimated: root.estimated, device: index,
    });
    frames.set(number, frame);
    return frame;
  };
  for (const number of energies.keys()) if (rows.has(number)) frameOf(number, new Set([number]));
  if (whole !== sum) {
    child(root, { name: REST_OF_PART, kind: "unattributed", joules: whole - sum, estimated: root.estimated });
  }
  return root;
}
