// Energy of a selected interval, from the steps of a power track.
import type { Activity, By, Page, PowerTrack, ProcessSlices, Row } from "./data";
import { roundText } from "./quantity";

export interface Selection {
  begin: number; // seconds since the command's start
  end: number;
}

export interface Selected {
  begin: number; // of the steps that the selection covers
  end: number;
  joules: number;
  // Half of the 95 % interval; an upper bound.
  error: number;
  repeatability: number;
  watts: number;
}

interface Slices {
  begin_seconds: number;
  step_seconds: number;
  count: number;
}

// The slices of which at least half lies in the selection, one past the last second; null where there
// is none.
export function covered(slices: Slices, selection: Selection): [number, number] | null {
  const place = (t: number) => Math.round((t - slices.begin_seconds) / slices.step_seconds);
  const first = Math.max(place(selection.begin), 0);
  const last = Math.min(place(selection.end), slices.count);
  return last > first ? [first, last] : null;
}

const stepEnd = (track: PowerTrack, step: number) =>
  Math.min(track.begin_seconds + (step + 1) * track.step_seconds, track.end_seconds);

// The steps of which at least half lies in the selection; absent where there is none, or one of them
// was not read. Two bounds hold for the error of a sum of steps: the sum of their own errors, and the
// errors of the energies from the first step to its two ends. The second grows with the time before
// the selection, so that the smaller one counts.
export function energyOf(track: PowerTrack, selection: Selection): Selected | null {
  const place = (t: number) => Math.round((t - track.begin_seconds) / track.step_seconds);
  const count = track.energy_microjoules.length;
  const first = Math.max(place(selection.begin), 0);
  const last = Math.min(place(selection.end), count) - 1;
  if (last < first) return null;
  let microjoules = 0;
  let errors = 0;
  for (let i = first; i <= last; ++i) {
    const step = track.energy_microjoules[i];
    if (step === null) return null;
    microjoules += step;
    errors += track.error_microjoules[i] ?? Infinity;
  }
  const begin = track.begin_seconds + first * track.step_seconds;
  const end = stepEnd(track, last);
  const at = (i: number) => (i < 0 ? 0 : (track.repeatability_microjoules[i] ?? 0) / 1e6);
  const joules = microjoules / 1e6;
  const repeatability = Math.min(Math.hypot(at(first - 1), at(last)), errors / 1e6);
  return {
    begin, end, joules, repeatability, watts: joules / (end - begin),
    error: Math.min(Math.hypot(repeatability, track.calibration_ratio * joules), errors / 1e6),
  };
}

// The mean power at a time, with the extremes of its step where they are known.
export function powerAt(track: PowerTrack, t: number) {
  const step = Math.floor((t - track.begin_seconds) / track.step_seconds);
  const microjoules = track.energy_microjoules[step];
  if (step < 0 || microjoules === undefined || microjoules === null) return null;
  const length = stepEnd(track, step) - (track.begin_seconds + step * track.step_seconds);
  return {
    watts: microjoules / 1e6 / length,
    low: track.low_watts?.[step] ?? null,
    high: track.high_watts?.[step] ?? null,
  };
}

// Energies of table rows over a selected part of the time, from the slices that the page holds.

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
    const isKnown = !group.reason;
    for (const [id, sum] of group.energies) {
      if (sum.count === group.count && isKnown) continue;
      group.energies.delete(id);
      group.reason ??= "a device did not measure all of them";
    }
  }
  return found;
}

// Energies of processes over a selected part of the time, from the slices that the page holds.

export interface PartProcess {
  joules: Map<number, number>; // by domain
  total: number | null; // of the domains that are no part of another one
  cpuSeconds: number | null;
}

export interface PartProcesses {
  begin: number; // of the slices that the selection covers
  end: number;
  step: number;
  processes: PartProcess[]; // in the order of the profile
}

function sumWithin(values: number[], first: number, [from, to]: [number, number]): number {
  let sum = 0;
  for (let i = Math.max(from, first); i < Math.min(to, first + values.length); ++i) sum += values[i - first];
  return sum;
}

// Null where the page holds no energies of processes by time, or less than half of a slice is selected.
export function processesOf(page: Page, selection: Selection): PartProcesses | null {
  const slices = page.process_slices;
  if (!slices || slices.energy.length + slices.cpu.length === 0) return null;
  const range = covered(slices, selection);
  if (!range) return null;
  const processes = page.profile.processes.map((): PartProcess => ({ joules: new Map(), total: null, cpuSeconds: null }));
  const inner = new Set(page.profile.domains.filter((d) => d.parent !== null).map((d) => d.id));
  for (const [process, domain, unit, first, units] of slices.energy) {
    const joules = (sumWithin(units, first, range) * unit) / 1e6;
    const own = processes[process];
    own.joules.set(domain, joules);
    if (!inner.has(domain)) own.total = (own.total ?? 0) + joules;
  }
  // A sum without one of its parts is not the sum.
  page.profile.processes.forEach((p, i) => {
    if (p.energy.some((e) => e.energy_joules !== 0 && !processes[i].joules.has(e.id))) processes[i].total = null;
  });
  for (const [process, first, milliseconds] of slices.cpu) processes[process].cpuSeconds = sumWithin(milliseconds, first, range) / 1e3;
  return {
    begin: slices.begin_seconds + range[0] * slices.step_seconds,
    end: slices.begin_seconds + range[1] * slices.step_seconds,
    step: slices.step_seconds,
    processes,
  };
}

// Why the table of processes is that of the whole run.
export function processReason(slices: ProcessSlices | null): string {
  if (slices && slices.energy.length + slices.cpu.length > 0) {
    return `The selection has less than half of a slice of ${roundText(slices.step_seconds)}.`;
  }
  return "This page holds no energies of processes by time; the command under the timeline has those of the selection.";
}

// A share is an estimate; on simulated devices it is simulated.
export const shareProvenance = (page: Page): string =>
  (page.profile.processes.find((p) => p.energy.length > 0)?.provenance ?? "estimated").toUpperCase();

// Where the power at rest of a device is not known, shares are of all of its energy.
export function shareWords(page: Page): string {
  const shared = page.profile.domains.map((d, i) => ({ d, label: page.labels[i] }))
    .filter(({ d }) => page.profile.processes.some((p) => p.energy.some((e) => e.id === d.id)));
  const all = shared.filter(({ d }) => d.shares_include_rest);
  if (all.length === 0) return "dynamic energy";
  if (all.length === shared.length) return "energy, that at rest included";
  return `dynamic energy (with that at rest of ${all.map(({ label }) => label).join(", ")})`;
}
