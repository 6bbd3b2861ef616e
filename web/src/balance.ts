// What a domain's energy consists of: parts that sum to it.
import type { Domain, Interval, Profile } from "./data";

export type PartKind =
  | "rest" | "held" | "idle" | "kernels" | "between" | "work" | "dynamic" | "others" | "unowned"
  | "unattributed";

export interface Part {
  kind: PartKind;
  label: string;
  meaning: string; // the glossary's sentence
  joules: number;
  interval: Interval;
}

const MEANINGS: Record<PartKind, [string, string]> = {
  rest: ["rest", "the power of a GPU without a context, clocks down; of other devices, the power before the command"],
  held: ["held", "what an open context adds to the power of a GPU while nothing runs"],
  idle: ["idle", "rest and held together: power and energy while nothing runs"],
  kernels: ["kernels", "active energy that the regression attributes to kernels and copies of the command"],
  between: ["idle between launches", "time of a traced GPU without a launch, and its energy above idle power"],
  work: ["processes", "dynamic energy attributed to the command's processes"],
  dynamic: ["dynamic, not attributed", "energy above rest; it was not divided among processes"],
  others: ["other processes", "dynamic energy of processes outside of the command"],
  unowned: ["held, unowned", "held energy of contexts that are not known to be of a process"],
  unattributed: ["unattributed", "the part of the energy that no process or kernel explains; negative where the parts exceed the measured energy"],
};

export const PART_COLOURS: Record<PartKind, string> = {
  rest: "#8e9aa8", held: "#5fb3e4", idle: "#8e9aa8", kernels: "#e69f00", between: "#f0e442",
  work: "#e69f00", dynamic: "#e69f00", others: "#cc79a7", unowned: "#a6d5ef", unattributed: "#b9b3a9",
};

const micro = (joules: number) => Math.round(joules * 1e6);

export function partsOf(profile: Profile, d: Domain): Part[] {
  const parts: Part[] = [];
  const add = (kind: PartKind, joules: number | null, interval: Interval = null) => {
    if (joules === null || joules === 0) return;
    parts.push({ kind, label: MEANINGS[kind][0], meaning: MEANINGS[kind][1], joules, interval });
  };
  if (d.energy_joules === null) return parts;
  const b = d.balance;
  if (b.processes_joules === null) {
    // Not attributed: levels, where they are known.
    if (d.rest_joules !== null && d.held_joules !== null && d.active_joules !== null) {
      add("rest", d.rest_joules, d.rest_interval_joules);
      add("held", d.held_joules, d.held_interval_joules);
      add("dynamic", d.active_joules, d.active_interval_joules);
    } else if (d.rest_joules !== null) {
      add("rest", d.rest_joules, d.rest_interval_joules);
      add("dynamic", (micro(d.energy_joules) - micro(d.rest_joules)) / 1e6);
    } else {
      add("dynamic", d.energy_joules, d.interval_joules);
      parts.forEach((p) => (p.label = "energy"));
      parts.forEach((p) => (p.meaning = "its parts are not known"));
    }
    return parts;
  }
  let kernels = 0;
  let between = 0;
  let held = 0;
  for (const process of profile.processes) {
    for (const share of process.energy) {
      if (share.id !== d.id) continue;
      kernels += micro(share.kernels_joules ?? 0);
      between += micro(share.idle_between_launches_joules ?? 0);
      held += micro(share.held_joules ?? 0);
    }
  }
  const work = micro(b.processes_joules ?? 0) - kernels - between - held;
  add("rest", b.rest_joules, d.rest_interval_joules);
  add("idle", b.idle_joules);
  add("held", held / 1e6, held === micro(d.held_joules ?? NaN) ? d.held_interval_joules : null);
  add("kernels", kernels / 1e6);
  add("work", work / 1e6);
  add("between", between / 1e6);
  add("others", b.others_joules);
  const unowned = b.held_unowned_joules ?? null;
  add("unowned", unowned, unowned !== null && unowned === d.held_joules ? d.held_interval_joules : null);
  add("unattributed", b.unattributed_joules);
  if (d.shares_include_rest) {
    for (const p of parts) p.meaning = p.meaning.replace("dynamic energy", "all energy, that at rest included,");
  }
  return parts;
}
