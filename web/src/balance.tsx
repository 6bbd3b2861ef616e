// What the energy consists of, in one sentence and as bars, and what to do about it.
import type { Domain, Finding, Interval, Page, PowerTrack, Profile } from "./data";
import type { Selection } from "./part";
import { treeRows } from "./fold";
import { kindOf } from "./kinds";
import { Heading } from "./share";
import { intervalErrorText, intervalText, joulesText, percentText } from "./quantity";
import { useState } from "preact/hooks";

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

// Those of the figure (src/report/figures.cpp), and apart as those of kinds are.
export const PART_COLOURS: Record<PartKind, string> = {
  rest: "#8e9aa8", held: "#4fa6f2", idle: "#8e9aa8", kernels: "#d89a2c", between: "#f6f42c",
  work: "#d89a2c", dynamic: "#d89a2c", others: "#a663a8", unowned: "#c3c1e4", unattributed: "#a7bea3",
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

// A bar for each device: where its energy went.

// Of a flex item: factors that sum to less than 1 would leave a part of the bar empty.
export const grow = (joules: number, whole: number): number => (1e6 * joules) / (Math.abs(whole) || 1);

function describe(part: Part, domain: Domain): string {
  const share = domain.energy_joules ? `, ${percentText(part.joules / domain.energy_joules)}` : "";
  const interval = part.interval ? `, 95 % interval ${intervalText(...part.interval)}` : "";
  return `${part.label}: ${joulesText(part.joules)}${share}${interval}`;
}

// A bar with its parts; a compact one is a line, of estimates and of devices beyond the second.
function Bar({ page, domain, label, most, compact }: {
  page: Page; domain: Domain; label: string; most: number; compact: boolean;
}) {
  const [active, setActive] = useState<number | null>(null);
  const parts = partsOf(page.profile, domain);
  const energy = domain.energy_joules;
  if (energy === null) return null;
  const positive = parts.filter((p) => p.joules > 0);
  const negative = parts.filter((p) => p.joules < 0);
  const scale = (joules: number) => (100 * joules) / most;
  const interval = domain.interval_joules;
  const estimated = domain.provenance !== "measured";
  const shown = active === null ? null : parts[active];
  const point = (i: number | null) => ({ onMouseEnter: () => setActive(i), onMouseLeave: () => setActive(null) });
  const note = shown ? `${describe(shown, domain)}: ${shown.meaning}.`
    : negative.length ? "Unattributed energy is negative: the parts exceed the measured energy by that much."
      : domain.levels_reason && !compact ? `Not split further: ${domain.levels_reason}.` : "";
  return (
    <div class={`balance-row${compact ? " compact" : ""}${estimated ? " pale" : ""}`}>
      <h3>
        {label} <span class="soft">{domain.name}</span>{" "}
        {estimated && <span class={`badge ${domain.provenance}`}>{domain.provenance.toUpperCase()}</span>}
        <span class="sum">
          {joulesText(energy)}{" "}
          {interval && <span class="soft">{intervalErrorText(interval, energy)}</span>}
        </span>
      </h3>
      <div class="track">
        <div class="parts" role="group" aria-label={`Parts of ${label}`} style={{ width: `${scale(positive.reduce((s, p) => s + p.joules, 0))}%` }}>
          {positive.map((part) => {
            const i = parts.indexOf(part);
            return (
              <div role="img" tabIndex={0} class={`part${estimated ? " hatched" : ""}${active === i ? " active" : ""}`}
                style={{ flexGrow: grow(part.joules, energy), background: PART_COLOURS[part.kind] }}
                aria-label={`${label}, ${describe(part, domain)}. ${part.meaning}`}
                {...point(i)} onFocus={() => setActive(i)} onBlur={() => setActive(null)}>
                <span aria-hidden="true">{part.joules > 0.12 * most ? part.label : ""}</span>
              </div>
            );
          })}
        </div>
        {interval && (
          <div class="whisker" aria-hidden="true" style={{ left: `${scale(interval[0])}%`, width: `${scale(interval[1] - interval[0])}%` }} />
        )}
      </div>
      <ul class="legend">
        {parts.map((part, i) => (
          <li key={part.kind} class={active === i ? "active" : ""} {...point(i)}>
            <span class={`swatch${estimated ? " hatched" : ""}`} style={{ background: PART_COLOURS[part.kind] }} />
            {part.label} <b>{joulesText(part.joules)}</b>{" "}
            <span class="soft">{part.joules < 0 ? "-" : ""}{percentText(part.joules / energy)}</span>
          </li>
        ))}
      </ul>
      {note && <p class="meaning soft" aria-live="polite">{note}</p>}
    </div>
  );
}

// The device that the sentence is about: one that was measured before one that was estimated.
function mainDomain(profile: Profile): Domain | null {
  const known = profile.domains.filter((d) => d.parent === null && (d.energy_joules ?? 0) > 0);
  const sure = known.filter((d) => d.provenance !== "estimated");
  return [...(sure.length > 0 ? sure : known)].sort((a, b) => b.energy_joules! - a.energy_joules!)[0] ?? null;
}

// Where the energy went, in one sentence; null where nothing of it is known.
export function sentenceOf(page: Page): string | null {
  const domain = mainDomain(page.profile);
  if (!domain) return null;
  const whole = domain.energy_joules!;
  const parts = partsOf(page.profile, domain);
  const label = page.labels[page.profile.domains.indexOf(domain)];
  const of = (...kinds: PartKind[]) => parts.filter((p) => kinds.includes(p.kind) && p.joules > 0);
  const sum = (list: Part[]) => list.reduce((s, p) => s + p.joules, 0);
  const anyway = of("rest", "held", "idle", "unowned");
  const held = of("held", "unowned");
  const list = [...of("rest", "idle").map((p) => `${p.label} ${joulesText(p.joules)}`),
    ...(held.length > 0 ? [`held ${joulesText(sum(held))}`] : [])].join(", ");
  const work = of("kernels").length > 0 ? of("kernels") : of("work", "dynamic");
  const over = -sum(parts.filter((p) => p.joules < 0));
  if (over > whole - (domain.interval_joules?.[0] ?? whole)) {
    return `The split of ${label}'s energy is unreliable: its parts exceed what was measured by ${joulesText(over)}, more than its error.`;
  }
  if (anyway.length === 0 && of("kernels").length === 0) return null;
  const words: string[] = [];
  if (anyway.length > 0) {
    words.push(`${percentText(sum(anyway) / whole)} of ${label}'s energy is what it draws anyway: ${list}`);
  }
  if (work.length > 0) {
    const name = work[0].kind === "kernels" ? "your kernels" : work[0].kind === "work" ? "your processes" : "its work";
    words.push(`${name} ${joulesText(sum(work))}${kindWords(page, domain, sum(work), work[0].kind)}`);
  }
  const text = words.join("; ");
  return `${text[0].toUpperCase()}${text.slice(1)}.`;
}

// Of kernels: the kind or the part of the model that takes most, where that is resolvable.
function kindWords(page: Page, domain: Domain, whole: number, kind: PartKind): string {
  const at = page.stacks.findIndex((s) => s.id === domain.id);
  if (kind !== "kernels" || at < 0 || !page.activity || whole <= 0) return "";
  const words = (name: string, joules: number) => `, of which ${name} ${percentText(Math.min(joules / whole, 1))}`;
  const layers = treeRows(page.activity.layer[at].rows.filter((r) => !r.name.startsWith("(")), true);
  const joules = (r: (typeof layers)[number]) => (r.row.resolvable === false ? 0 : r.row.inclusive_joules ?? r.row.energy_joules ?? 0);
  // Down to where the energy divides.
  for (let parent = -1, of = 0; ;) {
    const top = layers.filter((r) => r.parent === parent).sort((a, b) => joules(b) - joules(a))[0];
    if (!top || joules(top) <= 0) break;
    const isLast = !layers.some((r) => r.parent === top.id);
    if (parent >= 0 && (isLast || joules(top) < 0.85 * of)) return words(top.short.replace(/ ×\d+$/, ""), joules(top));
    if (isLast) break;
    [parent, of] = [top.id, joules(top)];
  }
  const sums = new Map<string, number>();
  for (const row of page.activity.kernel[at].rows) {
    if (row.resolvable !== false && row.energy_joules !== null && !row.name.startsWith("(")) {
      const name = kindOf(row.name);
      sums.set(name, (sums.get(name) ?? 0) + row.energy_joules);
    }
  }
  sums.delete("other");
  const [top] = [...sums].sort((a, b) => b[1] - a[1]);
  return top && top[1] > 0 ? words(top[0], top[1]) : "";
}

// What a finding is about: an interval of time, and words that its frames have.
export function targetOf(page: Page, finding: Finding): { time: Selection | null; search: string } {
  const { timeline } = page;
  const domain = page.profile.domains.find((d) => d.device === finding.device && d.parent === null);
  const slices = page.slices.find((s) => s.id === domain?.id);
  const track = timeline?.power.find((p) => p.id === domain?.id);
  const search: Record<string, string> = {
    waiting: "idle", context_kept: "held", copies: "copy", collectives: "collective", collective_waiting: "collective",
    layer: /layer (\S+)/.exec(finding.text)?.[1] ?? "", processors: "package",
  };
  const longest = (all: Selection[]) => all.sort((a, b) => b.end - b.begin - (a.end - a.begin))[0] ?? null;
  let time: Selection | null = null;
  if (/limit/.test(finding.code) && timeline && domain) {
    time = longest(timeline.clock_limits.filter((l) => l.id === domain.id && l.reasons.some((r) => r.includes(finding.code.split("_")[0])))
      .map((l) => ({ begin: l.begin_seconds, end: l.end_seconds })));
  } else if (finding.code === "context_kept" && slices && timeline) {
    const last = Math.max(-1, ...slices.kernel.map(([, , energies]) => energies.reduce((m, e, i) => (e > 0 ? i : m), -1)));
    const begin = slices.begin_seconds + (last + 1) * slices.step_seconds;
    if (begin < timeline.end_seconds) time = { begin, end: timeline.end_seconds };
  } else if (finding.code === "waiting" && track && timeline && domain) {
    time = longest(quiet(track, domain, timeline.begin_seconds, timeline.end_seconds));
  }
  return { time, search: search[finding.code] ?? "" };
}

// Intervals of the command in which the power was about that at rest and held.
function quiet(track: PowerTrack, domain: Domain, begin: number, end: number): Selection[] {
  const length = end - begin;
  if (domain.rest_joules === null || length <= 0) return [];
  const level = (1.1 * (domain.rest_joules + (domain.held_joules ?? 0))) / length;
  const out: Selection[] = [];
  let from: number | null = null;
  track.energy_microjoules.forEach((energy, i) => {
    const at = track.begin_seconds + i * track.step_seconds;
    const low = energy !== null && at >= begin && at + track.step_seconds <= end && energy / 1e6 / track.step_seconds <= level;
    if (low && from === null) from = at;
    if (!low && from !== null) {
      out.push({ begin: from, end: at });
      from = null;
    }
  });
  if (from !== null) out.push({ begin: from, end });
  return out;
}

// Findings, each a button that shows where in the flame graph and when.
export function Findings({ page, onTarget }: {
  page: Page; onTarget: (target: { time: Selection | null; search: string }) => void;
}) {
  const findings = page.profile.findings ?? [];
  const [open, setOpen] = useState<number | null>(null);
  if (findings.length === 0) return null;
  const shown = open === null ? null : findings[open];
  return (
    <section class="found" aria-labelledby="findings">
      <div class="chips">
        <h2 id="findings">What to do</h2>
        {findings.map((f, i) => (
          <button type="button" key={i} aria-expanded={open === i} aria-controls="finding"
            onClick={() => {
              setOpen(open === i ? null : i);
              onTarget(open === i ? { time: null, search: "" } : targetOf(page, f));
            }}>
            <b>{joulesText(f.energy_joules)}{f.estimated ? " ESTIMATED" : ""}</b> {f.device ? `${f.device}: ` : ""}{sentence(f.text.split(": ")[0])}
          </button>
        ))}
      </div>
      <div id="finding" role="status">
        {shown && (
          <p class="selected">
            <b>{shown.device ? `${shown.device}: ` : ""}{joulesText(shown.energy_joules)}{" "}
              {intervalErrorText(shown.interval_joules, shown.energy_joules)}, {percentText(shown.share_ratio)}.</b>{" "}
            {coded(sentence(shown.text))}. <span class="step">{coded(sentence(shown.next_step.replace(/\.$/, "")))}.</span>
          </p>
        )}
      </div>
    </section>
  );
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
// Commands stand between back quotes.
const coded = (text: string) => text.split("`").map((words, i) => (i % 2 ? <code key={i}>{words}</code> : words));

const LARGE = 2; // bars with a line of parts each
const MOST_SMALL = 6;

export function Balance({ page }: { page: Page }) {
  const { domains } = page.profile;
  const top = domains.filter((d) => d.parent === null);
  const known = top.filter((d) => d.energy_joules !== null);
  if (known.length === 0) return null;
  // Of many devices those with the most energy: what follows stays near.
  const isMany = known.length > LARGE + MOST_SMALL;
  if (isMany) known.sort((a, b) => b.energy_joules! - a.energy_joules!);
  const upper = (d: Domain) =>
    Math.max(
      d.interval_joules?.[1] ?? d.energy_joules ?? 0,
      partsOf(page.profile, d).reduce((s, p) => s + Math.max(p.joules, 0), 0),
    );
  const most = Math.max(...known.map(upper));
  const absent = top.filter((d) => d.energy_joules === null).map((d) => page.labels[domains.indexOf(d)]);
  const sure = known.filter((d) => d.provenance !== "estimated");
  const large = new Set((sure.length > 0 ? sure : known).slice(0, LARGE));
  const text = sentenceOf(page);
  const bar = (d: Domain) => (
    <Bar key={d.id} page={page} domain={d} label={page.labels[domains.indexOf(d)]} most={most} compact={!large.has(d)} />
  );
  const shown = isMany ? LARGE + MOST_SMALL / 2 : known.length;
  return (
    <section aria-labelledby="balance">
      <Heading id="balance" isHidden={text !== null} more={text && <p class="sentence">{text}</p>}>Balance</Heading>
      {known.slice(0, shown).map(bar)}
      {known.length > shown && (
        <details>
          <summary>{known.length - shown} more devices, {joulesText(known.slice(shown).reduce((s, d) => s + d.energy_joules!, 0))}</summary>
          {known.slice(shown).map(bar)}
        </details>
      )}
      {absent.length > 0 && (
        <p class="soft">
          <span class="badge unavailable">UNAVAILABLE</span> {absent.join(", ")}: <a href="#devices">the table of devices</a> has the reasons.
        </p>
      )}
    </section>
  );
}
