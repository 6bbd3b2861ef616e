// Energies of processes over a selected part of the time, from the slices that the page holds.
import type { Page, ProcessSlices } from "./data";
import { roundText } from "./quantity";
import { covered, type Selection } from "./selection";

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
