// Energies of table rows over a selected part of the time, from the slices that the page holds.
import type { Activity, By, Page, PowerTrack, Row } from "./data";
import { roundText } from "./quantity";
import { covered, energyOf, type Selection } from "./selection";

export interface PartEnergy {
  joules: number;
  error: number; // half of the 95 % interval; an upper bound
  share: number | null; // of the device's energy of the same time
}

export interface Part {
  begin: number; // of the slices that the selection covers
  end: number;
  step: number;
  wholes: (number | null)[]; // measured energy of the same time, by device
  // By table and device (index into Page.activity[by]), by the row's number.
  rows: Record<By, Map<number, PartEnergy>[]>;
}

const TABLES: By[] = ["kernel", "layer", "range", "phase"];

export function partOf(page: Page, selection: Selection): Part | null {
  if (!page.activity) return null;
  let part: Part | null = null;
  for (const slices of page.slices) {
    const at = page.stacks.findIndex((s) => s.id === slices.id);
    const range = covered(slices, selection);
    if (at < 0 || !range) continue;
    const begin = slices.begin_seconds + range[0] * slices.step_seconds;
    const end = slices.begin_seconds + range[1] * slices.step_seconds;
    part ??= { begin, end, step: slices.step_seconds, wholes: page.stacks.map(() => null), rows: { kernel: [], layer: [], range: [], phase: [] } };
    part.begin = Math.min(part.begin, begin);
    part.end = Math.max(part.end, end);
    const track: PowerTrack | undefined = page.timeline?.power.find((p) => p.id === slices.id);
    const whole = track ? (energyOf(track, { begin, end })?.joules ?? null) : null;
    part.wholes[at] = whole;
    for (const by of TABLES) {
      part.rows[by][at] = new Map(slices[by].map(([number, unit, energies, ratio, more, errors]) => {
        let units = 0;
        let absolute = 0;
        let error = 0;
        for (let i = range[0]; i < range[1]; ++i) {
          units += energies[i];
          absolute += Math.abs(energies[i]);
          error += errors ? errors[i] : 0;
        }
        if (!errors) error = ratio * absolute + more;
        const joules = (units * unit) / 1e6;
        return [number, { joules, error: (error * unit) / 1e6, share: whole ? joules / whole : null }];
      }));
    }
  }
  return part;
}

// Not resolvable as for the whole run: the interval is wider than the figure is worth.
export const isResolved = (e: PartEnergy): boolean => e.error <= 0.5 * Math.abs(e.joules);

// Why a row has no energy of the part.
export function reasonOf(page: Page, device: Activity, row: Row): string {
  if (row.energy_joules === null && row.inclusive_joules === null) return row.reason ?? "unavailable";
  const has = page.slices.some((s) => page.stacks.find((d) => d.id === s.id)?.device === device.device);
  return has ? "too little energy to be held by time" : "held for the whole run only";
}

// Why kernels, layers, ranges and phases are those of the whole run.
export function wholeReason(page: Page): string {
  const slices = page.slices[0];
  if (slices) return `The selection has less than half of a slice of ${roundText(slices.step_seconds)}.`;
  return "This page holds them for the whole run only; the command under the timeline has those of the selection.";
}

export interface PartWindows {
  name: string;
  count: number;
  seconds: number | null;
  energies: Map<number, { joules: number; error: number; count: number }>; // by domain: of `count` windows
  reason: string | null;
}

// Windows that begin in the selection, each as a whole: as `report --from --to` counts them.
export function windowsOf(page: Page, selection: Selection): Map<string, PartWindows> {
  const found = new Map<string, PartWindows>();
  const ends = new Map<string, number>();
  const { names, blocks } = page.timeline!.windows;
  let several = 0;
  const inside = blocks.filter(([, , begin]) => begin >= selection.begin && begin < selection.end);
  for (const [, number, begin, length, count, energies, seconds] of inside.sort((a, b) => a[2] - b[2])) {
    if (number < 0) {
      several += count;
      continue;
    }
    const name = names[number];
    let group = found.get(name);
    if (!group) found.set(name, (group = { name, count: 0, seconds: 0, energies: new Map(), reason: null }));
    if (begin < (ends.get(name) ?? -Infinity) - 1e-6) {
      group.reason = "windows of this name overlap: their sum is not known here";
    }
    ends.set(name, Math.max(ends.get(name) ?? -Infinity, begin + length));
    group.count += count;
    const own = count > 1 ? (seconds ?? null) : length;
    group.seconds = group.seconds === null || own === null ? null : group.seconds + own;
    if (!energies) group.reason ??= "too short to be held one by one";
    for (const [id, microjoules, error] of energies ?? []) {
      const sum = group.energies.get(id) ?? { joules: 0, error: 0, count: 0 };
      group.energies.set(id, { joules: sum.joules + microjoules / 1e6, error: sum.error + error / 1e6, count: sum.count + count });
    }
  }
  // Joined blocks may hold windows of any name.
  if (several > 0) {
    for (const group of found.values()) group.reason ??= "short windows of several names are held together";
  }
  for (const group of found.values()) {
    for (const [id, sum] of group.energies) {
      if (sum.count === group.count && !group.reason) continue;
      group.energies.delete(id);
      group.reason ??= "a device did not measure all of them";
    }
  }
  return found;
}
