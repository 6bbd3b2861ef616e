// A benchmark: how its latencies are distributed, and what one unit of work takes.
import { useRef } from "preact/hooks";
import { PART_COLOURS } from "./balance";
import { grow } from "./balance";
import { histogram, place, Plot, PLOT, tickText, useWidth } from "./plot";
import { intervalErrorText, joulesText, numberText, percentText, secondsText } from "./quantity";
import type { BenchCase, BenchRow } from "./results";
import { Heading } from "./share";

// Down to nanojoules: a token may take less than a millijoule.
export const smallJoulesText = (joules: number): string =>
  joules !== 0 && Math.abs(joules) < 1e-3 ? `${numberText(joules * 1e6)} µJ` : joulesText(joules);

// Without the long tail that would make one bin of all others.
export function main(ascending: number[], p50: number, p90: number): { shown: number[]; beyond: number } {
  const most = p90 + Math.max(5 * (p90 - p50), 0.02 * p50);
  const shown = ascending.filter((value) => value <= most);
  return shown.length < 2 ? { shown: ascending, beyond: 0 } : { shown, beyond: ascending.length - shown.length };
}

function Latencies({ of, width }: { of: BenchCase; width: number }) {
  const { latency } = of;
  const values = latency.distribution_seconds ?? [];
  if (values.length < 2 || width === 0) return null;
  const { shown, beyond } = main(values, latency.p50_seconds, latency.p90_seconds);
  const bins = histogram(shown, Math.max(8, Math.min(48, Math.ceil(Math.sqrt(shown.length) * 1.5))));
  const scale = shown[shown.length - 1] < 1 ? 1e3 : 1;
  const height = 230;
  const across = { low: bins[0].from, high: bins[bins.length - 1].to, from: PLOT.left, to: width - PLOT.right };
  const up = { low: 0, high: Math.max(...bins.map((b) => b.count)) * 1.18, from: height - PLOT.bottom, to: PLOT.top };
  const marks: [string, number][] = [["p50", latency.p50_seconds], ["p90", latency.p90_seconds], ["p99", latency.p99_seconds]];
  const group = latency.quantiles_of_iterations;
  return (
    <Plot width={width} height={height} across={{ ...across, low: across.low * scale, high: across.high * scale }} up={up}
      upText={(value) => (Number.isInteger(value) ? tickText(value) : "")}
      name={`Distribution of latencies: ${marks.map(([n, v]) => `${n} ${secondsText(v)}`).join(", ")}`}
      acrossTitle={`${group > 1 ? `mean of ${group} iterations` : "one iteration"} (${scale === 1 ? "s" : "ms"})`}
      upTitle={`Latency: number of ${group > 1 ? "means" : "iterations"}${beyond > 0 ? `; ${beyond} of ${values.length} are longer than shown, up to ${secondsText(values[values.length - 1])}` : ""}`}>
      {bins.map((b, i) => (
        <rect key={i} class="bin" x={place(across, b.from)} width={Math.max(place(across, b.to) - place(across, b.from) - 1, 0.5)}
          y={place(up, b.count)} height={up.from - place(up, b.count)}>
          <title>{`${secondsText(b.from)} to ${secondsText(b.to)}: ${b.count}`}</title>
        </rect>
      ))}
      {marks.filter(([, value]) => value <= bins[bins.length - 1].to).map(([name, value], i) => (
        <g key={name}>
          <line class="chosen" x1={place(across, value)} x2={place(across, value)} y1={up.to} y2={up.from} />
          {place(across, value) > across.to - 24
            ? <text class="tick" x={place(across, value) - 3} y={up.to + 11 + 12 * i} text-anchor="end">{name}</text>
            : <text class="tick" x={place(across, value) + 3} y={up.to + 11 + 12 * i}>{name}</text>}
        </g>
      ))}
    </Plot>
  );
}

function EnergyBar({ row, device }: { row: BenchRow; device: string }) {
  const whole = row.device ?? row.total;
  if (!whole) return null;
  const levels = [["rest", row.rest], ["held", row.held], ["active", row.active]] as const;
  const known = row.device !== null && levels.every(([, level]) => level !== null || row.rest !== null);
  const parts = known ? levels.filter(([, level]) => level && level.energy_joules > 0) : [];
  const most = Math.max(whole.interval_joules[1], whole.energy_joules);
  const share = (joules: number) => `${(100 * joules) / most}%`;
  const bar = `part${whole.provenance === "measured" ? "" : " hatched"}`;
  const colours = { rest: PART_COLOURS.rest, held: PART_COLOURS.held, active: PART_COLOURS.kernels };
  return (
    <div class="balance-row">
      <h3>
        one {row.phase ? `${row.phase}, ` : ""}{row.unit} <span class="soft">{row.device ? device : "total"}</span>{" "}
        {whole.provenance !== "measured" && <span class={`badge ${whole.provenance}`}>{whole.provenance.toUpperCase()}</span>}
        <span class="sum">{smallJoulesText(whole.energy_joules)} <span class="soft">{intervalErrorText(whole.interval_joules, whole.energy_joules)}</span></span>
      </h3>
      <div class="track" role="img" aria-label={`${smallJoulesText(whole.energy_joules)}, 95 % interval ${smallJoulesText(whole.interval_joules[0])} to ${smallJoulesText(whole.interval_joules[1])}`}>
        <div class="parts" style={{ width: share(whole.energy_joules) }}>
          {parts.length > 0
            ? parts.map(([name, level]) => <div key={name} class={bar} style={{ flexGrow: grow(level!.energy_joules, whole.energy_joules), background: colours[name] }} />)
            : <div class={bar} style={{ flexGrow: 1, background: PART_COLOURS.dynamic }} />}
        </div>
        <div class="whisker" style={{ left: share(whole.interval_joules[0]), width: share(whole.interval_joules[1] - whole.interval_joules[0]) }} />
      </div>
      {parts.length > 0 && (
        <ul class="legend">
          {parts.map(([name, level]) => (
            <li key={name}>
              <span class={`swatch${whole.provenance === "measured" ? "" : " hatched"}`} style={{ background: colours[name] }} />{name} <b>{smallJoulesText(level!.energy_joules)}</b>{" "}
              <span class="soft">{percentText(level!.energy_joules / whole.energy_joules)}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

// What one unit of work takes at several batch sizes of one workload.
export function energyCurves(cases: BenchCase[]): { name: string; points: { batch: number; joules: number; low: number; high: number; provenance: string }[] }[] {
  const curves = new Map<string, Map<number, BenchRow>>();
  for (const each of cases) {
    for (const row of each.energy?.per ?? []) {
      if (!(row.device ?? row.total)) continue;
      const name = `${each.workload}, ${each.mode}: one ${row.phase ? `${row.phase}, ` : ""}${row.unit}, ${row.device ? each.energy_device : "total"}`;
      const points = curves.get(name) ?? new Map<number, BenchRow>();
      if (!points.has(each.batch)) points.set(each.batch, row);
      curves.set(name, points);
    }
  }
  return [...curves].filter(([, points]) => points.size > 1).map(([name, points]) => ({
    name,
    points: [...points].sort((a, b) => a[0] - b[0]).map(([batch, row]) => {
      const whole = (row.device ?? row.total)!;
      return { batch, joules: whole.energy_joules, low: whole.interval_joules[0], high: whole.interval_joules[1], provenance: whole.provenance };
    }),
  }));
}

// The axis begins at 0, so that a flat curve is flat.
function EnergyCurve({ curve, width }: { curve: ReturnType<typeof energyCurves>[number]; width: number }) {
  if (width === 0) return null;
  const height = 230;
  const { name, points } = curve;
  // Batches double: their steps are equal.
  const across = { low: Math.log2(points[0].batch) - 0.15, high: Math.log2(points[points.length - 1].batch) + 0.15, from: PLOT.left, to: width - PLOT.right };
  const most = Math.max(...points.map((p) => p.high));
  const scale = most < 1e-3 ? 1e6 : most < 1 ? 1e3 : 1;
  const up = { low: 0, high: most * scale * 1.08, from: height - PLOT.bottom, to: PLOT.top };
  const at = (p: { batch: number; joules: number }) => [place(across, Math.log2(p.batch)), place(up, p.joules * scale)];
  const marks = [...new Set(points.map((p) => p.provenance))].filter((p) => p !== "measured").map((p) => p.toUpperCase());
  return (
    <Plot width={width} height={height} across={across} acrossText="none" up={up} name={`Energy against batch size: ${name}`}
      acrossTitle="batch size" upTitle={`${name} (${scale === 1e6 ? "µJ" : scale === 1e3 ? "mJ" : "J"}) against the batch size${marks.length > 0 ? `, ${marks.join(", ")}` : ""}`}>
      <polyline class="front" points={points.map((p) => at(p).join(",")).join(" ")} />
      {points.map((p) => (
        <g key={p.batch} class="on-front">
          <title>{`batch ${p.batch}: ${smallJoulesText(p.joules)}, 95 % interval ${smallJoulesText(p.low)} to ${smallJoulesText(p.high)}`}</title>
          <line class="span" x1={at(p)[0]} x2={at(p)[0]} y1={place(up, p.low * scale)} y2={place(up, p.high * scale)} />
          <circle class="mean" cx={at(p)[0]} cy={at(p)[1]} r={4.5} />
          <text class="tick" x={at(p)[0]} y={up.from + 16} text-anchor="middle">{p.batch}</text>
        </g>
      ))}
    </Plot>
  );
}

export function BenchSections({ cases }: { cases: BenchCase[] }) {
  const holder = useRef<HTMLDivElement>(null);
  const width = useWidth(holder);
  return (
    <section aria-labelledby="bench">
      <Heading id="bench">Distributions</Heading>
      <p class="soft">The line under a bar is the 95 % interval. Energy of single iterations is not resolvable; the bars are means.</p>
      <div ref={holder}>
        {energyCurves(cases).map((curve) => <EnergyCurve key={curve.name} curve={curve} width={Math.min(width, 900)} />)}
        {cases.map((each, i) => (
          <div key={i} class="bench-case">
            {cases.length > 1 && <h3>{each.workload}, {each.mode}, batch {each.batch}</h3>}
            <Latencies of={each} width={Math.min(width, 900)} />
            {each.energy
              ? each.energy.per.map((row, k) => <EnergyBar key={k} row={row} device={each.energy_device ?? "device"} />)
              : <p class="soft">Energy unavailable: {each.energy_reason}</p>}
          </div>
        ))}
      </div>
    </section>
  );
}
