// A bar for each device: where its energy went.
import { useState } from "preact/hooks";
import { PART_COLOURS, partsOf, type Part } from "./balance";
import type { Domain, Page } from "./data";
import { errorText, intervalText, joulesText, percentText } from "./quantity";

// Of a flex item: factors that sum to less than 1 would leave a part of the bar empty.
export const grow = (joules: number, whole: number): number => (1e6 * joules) / (Math.abs(whole) || 1);

function describe(part: Part, domain: Domain): string {
  const share = domain.energy_joules ? `, ${percentText(part.joules / domain.energy_joules)}` : "";
  const interval = part.interval ? `, 95 % interval ${intervalText(...part.interval)}` : "";
  return `${part.label}: ${joulesText(part.joules)}${share}${interval}`;
}

function Bar({ page, domain, label, most }: { page: Page; domain: Domain; label: string; most: number }) {
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
  return (
    <div class="balance-row">
      <h3>
        {label} <span class="soft">{domain.name}</span>{" "}
        {estimated && <span class={`badge ${domain.provenance}`}>{domain.provenance.toUpperCase()}</span>}
        <span class="sum">
          {joulesText(energy)}{" "}
          {interval && <span class="soft">{errorText((interval[1] - interval[0]) / 2, energy)}</span>}
        </span>
      </h3>
      <div class="track">
        <div class="parts" role="group" aria-label={`Parts of ${label}`} style={{ width: `${scale(positive.reduce((s, p) => s + p.joules, 0))}%` }}>
          {positive.map((part) => {
            const i = parts.indexOf(part);
            return (
              <button
                type="button"
                class={`part${estimated ? " hatched" : ""}${active === i ? " active" : ""}`}
                style={{ flexGrow: grow(part.joules, energy), background: PART_COLOURS[part.kind] }}
                aria-label={`${label}, ${describe(part, domain)}. ${part.meaning}`}
                onMouseEnter={() => setActive(i)}
                onMouseLeave={() => setActive(null)}
                onFocus={() => setActive(i)}
                onBlur={() => setActive(null)}
              />
            );
          })}
        </div>
        {interval && (
          <div
            class="whisker"
            aria-hidden="true"
            style={{ left: `${scale(interval[0])}%`, width: `${scale(interval[1] - interval[0])}%` }}
          />
        )}
      </div>
      <ul class="legend">
        {parts.map((part, i) => (
          <li
            key={part.kind}
            class={active === i ? "active" : ""}
            onMouseEnter={() => setActive(i)}
            onMouseLeave={() => setActive(null)}
          >
            <span class={`swatch${estimated ? " hatched" : ""}`} style={{ background: PART_COLOURS[part.kind] }} />
            {part.label} <b>{joulesText(part.joules)}</b>{" "}
            <span class="soft">
              {part.joules < 0 ? "-" : ""}
              {percentText(part.joules / energy)}
            </span>
          </li>
        ))}
      </ul>
      <p class="meaning soft" aria-live="polite">
        {shown
          ? `${describe(shown, domain)}: ${shown.meaning}.`
          : domain.levels_reason && !negative.length
            ? `Not split further: ${domain.levels_reason}.`
            : negative.length
              ? "Unattributed energy is negative: the parts exceed the measured energy by that much."
              : ""}
      </p>
    </div>
  );
}

export function Balance({ page }: { page: Page }) {
  const { domains } = page.profile;
  const top = domains.filter((d) => d.parent === null);
  if (!top.some((d) => d.energy_joules !== null)) return null;
  const upper = (d: Domain) =>
    Math.max(
      d.interval_joules?.[1] ?? d.energy_joules ?? 0,
      partsOf(page.profile, d).reduce((s, p) => s + Math.max(p.joules, 0), 0),
    );
  const most = Math.max(...top.map(upper));
  const absent = top.filter((d) => d.energy_joules === null).map((d) => page.labels[domains.indexOf(d)]);
  return (
    <section aria-labelledby="balance">
      <h2 id="balance">Balance</h2>
      <p class="soft">
        Rest, processes, others, unowned held and unattributed energy sum to the energy exactly. The line under a bar
        is the 95 % interval of the whole.
      </p>
      {top.filter((d) => d.energy_joules !== null).map((d) => (
        <Bar key={d.id} page={page} domain={d} label={page.labels[domains.indexOf(d)]} most={most} />
      ))}
      {absent.length > 0 && (
        <p class="soft">
          <span class="badge unavailable">UNAVAILABLE</span> {absent.join(", ")}: the table above has the reasons.
        </p>
      )}
    </section>
  );
}
