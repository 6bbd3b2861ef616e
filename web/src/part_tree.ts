// The icicle of a selected part of the time: what the page holds by time is the energy of kernels,
// layers, ranges and phases, each list for itself.
import type { Page } from "./data";
import { kindOf, shortName } from "./kinds";
import { isResolved, type Part } from "./part";
import { child, devicesRoot, makeFrame, type Frame } from "./tree";

export type PartView = "layer" | "range" | "phase" | "kernel";

export const REST_OF_PART = "all else";

// Absent without a device whose energies are held by time.
export function buildPartTree(page: Page, part: Part, view: PartView): Frame | null {
  const devices = page.stacks.flatMap((_, i): Frame[] => {
    const energies = part.rows[view][i];
    const whole = part.wholes[i];
    return energies && whole !== null ? [deviceTree(page, part, i, view, whole)] : [];
  });
  return devices.length > 0 ? devicesRoot(devices) : null;
}

function deviceTree(page: Page, part: Part, index: number, view: PartView, whole: number): Frame {
  const device = page.activity![view][index];
  const energies = part.rows[view][index];
  const root = makeFrame({
    name: device.device, kind: "device", joules: whole, estimated: device.provenance === "estimated",
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
      resolvable: row.resolvable !== false && isResolved(held), estimated: root.estimated,
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
