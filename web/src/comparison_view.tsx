// Two sides as one icicle: what the whole is made of, and by how much each part changed.
import { type Axis, paddedAxis, place, Plot, PLOT, ticks, tickText, useWidth } from "./plot";
import { shortName } from "./kinds";
import { countText, joulesText } from "./quantity";
import type { ComparedRuns, Comparison, Difference, Unmatched, Verdict } from "./results";
import { Choice, exactly, Table, type Column } from "./table";
import { useMemo, useRef, useState } from "preact/hooks";
import { Heading } from "./share";
import { oneOf, useUrl } from "./state";

export type DiffWidth = "after" | "before" | "change";

export interface DiffFrame {
  name: string;
  label: string; // the name within its parent
  detail: string | null;
  before: number; // joules; 0: not on this side
  after: number;
  low: number | null; // ends of the interval of the change, in joules
  high: number | null;
  ratio: number | null;
  verdict: Verdict | "new" | "gone" | "rest";
  children: DiffFrame[];
  x: number;
  width: number;
  depth: number;
}

const frame = (of: Partial<DiffFrame> & Pick<DiffFrame, "name" | "before" | "after" | "verdict">): DiffFrame => ({
  label: of.name, detail: null, low: null, high: null, ratio: null, children: [], x: 0, width: 0, depth: 0, ...of,
});

function ofDifference(d: Difference): DiffFrame {
  const before = d.before_joules ?? 0;
  return frame({
    name: d.name, detail: d.detail, before, after: d.after_joules ?? 0, ratio: d.change_ratio, verdict: d.verdict,
    low: d.interval_ratio ? before * d.interval_ratio[0] : null,
    high: d.interval_ratio ? before * d.interval_ratio[1] : null,
  });
}

// The row that holds one of this name: that of the longest prefix up to a dot.
function holderOf(name: string, known: Map<string, DiffFrame>): DiffFrame | undefined {
  for (let at = name.lastIndexOf("."); at > 0; at = name.lastIndexOf(".", at - 1)) {
    const holder = known.get(name.slice(0, at));
    if (holder) return holder;
  }
  return undefined;
}

// Rows below the whole, layers below the layers that hold them. What no row has is a frame of its
// own, so that the widths are those of the whole.
export function buildDiff(comparison: Comparison): DiffFrame {
  const root = ofDifference(comparison.energy);
  root.name = root.label = "total";
  const isTree = comparison.by === "layer";
  const frames = comparison.rows.filter((d) => d.before_joules != null && d.after_joules != null).map(ofDifference);
  for (const row of comparison.unmatched) {
    if (row.energy_joules === null) continue;
    const isNew = row.side === "after";
    frames.push(frame({
      name: row.name, detail: row.detail, before: isNew ? 0 : row.energy_joules,
      after: isNew ? row.energy_joules : 0, verdict: isNew ? "new" : "gone",
    }));
  }
  const known = new Map(frames.map((f) => [f.name, f]));
  for (const f of frames) {
    const holder = isTree ? holderOf(f.name, known) : undefined;
    if (holder) f.label = f.name.slice(holder.name.length + 1);
    else if (comparison.by === "kernel") f.label = shortName(f.name);
    (holder ?? root).children.push(f);
  }
  if (frames.length > 0 && comparison.by !== "window") {
    const rest = (side: "before" | "after") =>
      Math.max(0, root[side] - root.children.reduce((sum, child) => sum + child[side], 0));
    const before = rest("before");
    const after = rest("after");
    if (before > 0 || after > 0) {
      root.children.push(frame({ name: "other energy", before, after, verdict: "rest" }));
    }
  }
  return root;
}

export const changeOf = (f: DiffFrame): number => f.after - f.before;

export function diffWeight(f: DiffFrame, width: DiffWidth): number {
  return width === "after" ? f.after : width === "before" ? f.before : Math.abs(changeOf(f));
}

// Whether a change is larger than its error.
export const isClear = (f: DiffFrame): boolean =>
  f.verdict === "lower" || f.verdict === "higher" || f.verdict === "new" || f.verdict === "gone";

// Places the frames below the root: a parent is at least as wide as its children.
export function layOutDiff(root: DiffFrame, width: DiffWidth): DiffFrame[] {
  const placed: DiffFrame[] = [];
  const visit = (f: DiffFrame, x: number, w: number, depth: number) => {
    Object.assign(f, { x, width: w, depth });
    placed.push(f);
    const shown = f.children.filter((c) => diffWeight(c, width) > 0)
      .sort((a, b) => Number(a.verdict === "rest") - Number(b.verdict === "rest") || diffWeight(b, width) - diffWeight(a, width));
    const sum = shown.reduce((s, c) => s + diffWeight(c, width), 0);
    const whole = Math.max(width === "change" ? 0 : diffWeight(f, width), sum);
    let at = x;
    for (const child of shown) {
      const part = (w * diffWeight(child, width)) / whole;
      visit(child, at, part, depth + 1);
      at += part;
    }
  };
  visit(root, 0, 1, 0);
  return placed;
}

// A comparison: its verdicts as intervals about zero, a differential icicle and the table of rows.

const MOST_ROWS = 12;

export const changeText = (ratio: number | null): string => {
  if (ratio === null) return "-";
  const percent = Math.abs(100 * ratio) < 0.005 ? 0 : 100 * ratio;
  return `${percent < 0 ? "-" : "+"}${Math.abs(percent).toFixed(Math.abs(percent) < 9.95 ? 2 : 1)} %`;
};
const intervalOfChange = (d: Difference): string =>
  d.interval_ratio ? `${changeText(d.interval_ratio[0]).replace(" %", "")} to ${changeText(d.interval_ratio[1])}` : "unknown";

// The end of a layer's name says more than its begin; of a kernel's name it is the begin.
function shortest(name: string, without: string, most: number, byKernel: boolean): string {
  if (name.length <= most) return name;
  if (byKernel && without.length > most) return `${without.slice(0, most - 1)}…`;
  return without.length <= most ? without : `…${without.slice(1 - most)}`;
}

function Intervals({ rows, within, width, byKernel }: { rows: Difference[]; within: number; width: number; byKernel: boolean }) {
  const values = rows.flatMap((d) => [...(d.interval_ratio ?? []), d.change_ratio]).filter((v): v is number => v !== null);
  if (values.length === 0 || width === 0) return null;
  const room = Math.min(220, width * 0.38);
  const axis = paddedAxis([...values, -within, within, 0], room, width - 84);
  const line = 26;
  const height = rows.length * line + 34;
  return (
    <svg class="intervals" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img"
      aria-label="Changes with their 95 % intervals; the table below has the figures">
      <rect class="same" x={place(axis, -within)} width={place(axis, within) - place(axis, -within)} y={0} height={height - 26} />
      <line class="zero" x1={place(axis, 0)} x2={place(axis, 0)} y1={0} y2={height - 26} />
      {ticks(axis.low, axis.high, width < 500 ? 3 : 6).map((v) => (
        <text class="tick" key={v} x={place(axis, v)} y={height - 10} text-anchor="middle">{tickText(100 * v)} %</text>
      ))}
      {rows.map((d, i) => {
        const y = i * line + line / 2;
        const own = byKernel ? shortName(d.name) : d.name;
        const name = d.detail && d.detail !== own ? `${own} ${d.detail}` : own;
        const most = Math.max(4, Math.floor(room / 7.2) - 1);
        return (
          <g key={i} class={`change ${d.verdict}`}>
            <title>{`${name}: ${changeText(d.change_ratio)}, 95 % ${intervalOfChange(d)}, ${d.verdict}`}</title>
            <text class="name" x={0} y={y + 4}>{shortest(name, own, most, byKernel)}</text>
            {d.interval_ratio && (
              <line class="range" x1={place(axis, d.interval_ratio[0])} x2={place(axis, d.interval_ratio[1])} y1={y} y2={y} />
            )}
            {d.change_ratio !== null && <circle cx={place(axis, d.change_ratio)} cy={y} r={4} />}
            <text class="verdict" x={width} y={y + 4} text-anchor="end">{d.verdict}</text>
          </g>
        );
      })}
    </svg>
  );
}

function describe(f: DiffFrame): string {
  const parts = [`${joulesText(f.before)} before`, `${joulesText(f.after)} after`];
  const change = changeOf(f);
  parts.push(`${change < 0 ? "-" : "+"}${joulesText(Math.abs(change))}${f.ratio === null ? "" : ` (${changeText(f.ratio)})`}`);
  if (f.low !== null && f.high !== null) parts.push(`95 % interval ${joulesText(f.low)} to ${joulesText(f.high)}`);
  const words: Record<string, string> = {
    new: "only after", gone: "only before", same: "the same within the threshold",
    inconclusive: "within error, or its error is not known", rest: "what no row has",
  };
  parts.push(words[f.verdict] ?? f.verdict);
  return parts.join(" · ");
}

function DiffIcicle({ comparison, onRow }: { comparison: Comparison; onRow: (name: string) => void }) {
  const [width, setWidth] = useState<DiffWidth>("after");
  const [active, setActive] = useState(0);
  const holder = useRef<HTMLDivElement>(null);
  const frames = useMemo(() => layOutDiff(buildDiff(comparison), width), [comparison, width]);
  const levels = Math.max(...frames.map((f) => f.depth)) + 1;
  const shown = frames.filter((f) => f.width > 0.0012);
  const focus = shown[active] ?? shown[0];
  const move = (event: KeyboardEvent) => {
    if (event.key === "Enter" && focus.depth > 0 && focus.verdict !== "rest") return onRow(focus.name);
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = Math.min(Math.max(active + by, 0), shown.length - 1);
    setActive(next);
    (holder.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <section aria-labelledby="diff">
      <Heading id="diff">Differential flame graph</Heading>
      <p class="soft">
        Width is energy. Blue with ▼ took less, orange with ▲ more; grey is a difference within error, or one whose error
        is not known. Hatched is energy of one side only.
      </p>
      <div class="controls">
        <Choice label="Width" value={width} onChange={(w) => { setWidth(w); setActive(0); }} options={[
          ["after", "energy after"], ["before", "energy before"], ["change", "change"],
        ]} />
      </div>
      <div class="diff" ref={holder} style={{ height: `${levels * 26}px` }} role="application" aria-label="Parts of the energy. Arrow keys move, Enter shows the row." onKeyDown={move}>
        {shown.map((f, i) => {
          const change = changeOf(f);
          const kind = isClear(f) ? (change < 0 ? "lower" : "higher") : f.verdict === "rest" ? "rest" : "unclear";
          const sign = isClear(f) ? (change < 0 ? "▼ " : "▲ ") : "";
          return (
            <div
              role="img" key={`${f.name} ${f.detail} ${f.depth} ${i}`}
              class={`frame-box ${kind}${f.verdict === "new" || f.verdict === "gone" ? " hatched" : ""}`}
              style={{ left: `${100 * f.x}%`, width: `max(calc(${100 * f.width}% - 1px), 1px)`, top: `${26 * f.depth}px` }}
              tabIndex={i === active ? 0 : -1}
              aria-label={`${f.name}: ${describe(f)}`}
              onMouseEnter={() => setActive(i)} onFocus={() => setActive(i)}
              onClick={() => f.depth > 0 && f.verdict !== "rest" && onRow(f.name)}
            >
              {sign}{f.label} {f.ratio !== null && changeText(f.ratio)}
            </div>
          );
        })}
      </div>
      <p class="frame" aria-live="polite"><b>{focus.name.length > 600 ? `${focus.name.slice(0, 600)}…` : focus.name}</b> {focus.detail && <span class="soft">{focus.detail}</span>}<br />{describe(focus)}</p>
    </section>
  );
}

const nameColumn = (by: string): Column<{ name: string; detail: string | null }> => ({
  key: "name", title: by, wide: true, value: (d) => d.name,
  show: (d) => (by === "kernel" ? shortName(d.name) : d.name), below: (d) => (by === "kernel" ? d.detail : null),
});

const unmatchedColumns = (by: string): Column<Unmatched>[] => [
  nameColumn(by),
  { key: "detail", title: "detail", hidden: by === "kernel", value: (u) => u.detail },
  { key: "side", title: "only", value: (u) => u.side },
  { key: "count", title: by === "window" ? "number" : by === "layer" ? "calls" : "launches", numeric: true, value: (u) => u.count, show: (u) => countText(u.count) },
  { key: "energy_joules", title: "energy, first run", numeric: true, value: (u) => u.energy_joules,
    show: (u) => (u.energy_joules === null ? (u.reason ?? "unavailable").replace(/_/g, " ") : joulesText(u.energy_joules)) },
];

function columns(by: string): Column<Difference>[] {
  const joules = (v: number | null | undefined) => (v == null ? "" : joulesText(v));
  return [
    nameColumn(by),
    { key: "detail", title: "detail", hidden: by === "kernel", value: (d) => d.detail },
    { key: "before_joules", title: "before", numeric: true, value: (d) => d.before_joules ?? null, show: (d) => joules(d.before_joules) },
    { key: "after_joules", title: "after", numeric: true, value: (d) => d.after_joules ?? null, show: (d) => joules(d.after_joules) },
    { key: "change_joules", title: "change", numeric: true,
      value: (d) => (d.before_joules != null && d.after_joules != null ? Number((d.after_joules - d.before_joules).toFixed(6)) : null),
      show: (d) => {
        if (d.before_joules == null || d.after_joules == null) return "";
        const change = d.after_joules - d.before_joules;
        return `${change < 0 ? "-" : "+"}${joulesText(Math.abs(change))}`;
      } },
    { key: "change_ratio", title: "change, %", numeric: true, value: (d) => d.change_ratio, show: (d) => changeText(d.change_ratio) },
    { key: "low_ratio", title: "95 %", numeric: true, value: (d) => d.interval_ratio?.[0] ?? null, show: intervalOfChange },
    { key: "p", title: "p", numeric: true, hidden: true, value: (d) => d.p },
    { key: "verdict", title: "verdict", value: (d) => d.verdict },
    { key: "reason", title: "reason", value: (d) => d.reason.replace(/_/g, " ") },
  ];
}

const SIDES = [["before", "#0072b2"], ["after", "#d55e00"]] as const;

// The power of both sides over the time since each began, and the energies of all runs.
function Overlay({ runs }: { runs: ComparedRuns }) {
  const holder = useRef<HTMLDivElement>(null);
  const width = useWidth(holder);
  const domains = [...new Set([...runs.before, ...runs.after].flatMap((r) => r.curves.map((c) => c.domain)))];
  const [domain, setDomain] = useUrl("curve", domains[0] ?? "", oneOf<string>(domains[0] ?? ""));
  const curves = SIDES.flatMap(([side, colour]) => runs[side].flatMap((run) => run.curves.filter((c) => c.domain === domain).map((c) => ({ side, colour, ...c }))));
  const energies = SIDES.map(([side, colour]) => ({ side, colour, values: runs[side].map((r) => r.energy_joules).filter((v): v is number => v !== null) }));
  if (curves.length === 0 && energies.every((e) => e.values.length === 0)) return null;
  const watts = curves.flatMap((c) => c.watts.filter((w): w is number => w !== null));
  const height = 220;
  const plot = Math.max(width, 200);
  const across: Axis = { low: 0, high: Math.max(1e-3, ...curves.map((c) => c.step_seconds * c.watts.length)), from: PLOT.left, to: plot - PLOT.right };
  const up: Axis = { low: 0, high: 1.06 * Math.max(1, ...watts), from: height - PLOT.bottom, to: PLOT.top };
  const line = (c: (typeof curves)[number]) => {
    let path = "";
    let open = false;
    c.watts.forEach((w, i) => {
      if (w !== null) path += `${open ? "L" : "M"}${place(across, i * c.step_seconds).toFixed(1)} ${place(up, w).toFixed(1)}H${place(across, (i + 1) * c.step_seconds).toFixed(1)}`;
      open = w !== null;
    });
    return path;
  };
  const all = energies.flatMap((e) => e.values);
  const axis = all.length > 0 ? paddedAxis(all, PLOT.left, plot - PLOT.right) : null;
  return (
    <section aria-labelledby="curves">
      <Heading id="curves">Both over time</Heading>
      <div class="controls">
        <Choice label="Device" value={domain} onChange={setDomain} options={domains.map((d): [string, string] => [d, d])} />
        {SIDES.map(([side, colour]) => <span key={side}><span class="swatch" style={{ background: colour }} />{side}, {runs[side].length} {runs[side].length === 1 ? "run" : "runs"}</span>)}
      </div>
      <div ref={holder}>
        {width > 0 && curves.length > 0 && (
          <Plot width={plot} height={height} across={across} up={up} name={`Power of ${domain} over time, before and after`} acrossTitle="time since the command began (s)" upTitle={`Power of ${domain} (W)`}>
            {curves.map((c, i) => <path key={i} class={`curve ${c.side}`} d={line(c)} fill="none" stroke={c.colour} stroke-width="1.4" stroke-dasharray={c.side === "after" ? "5 2" : undefined} opacity={0.85} />)}
          </Plot>
        )}
        {width > 0 && axis && (
          <svg class="strips" width={plot} height={96} viewBox={`0 0 ${plot} 96`} role="img" aria-label="Energy of each run, before and after">
            {ticks(axis.low, axis.high, Math.max(2, Math.min(6, Math.floor(plot / 110)))).map((v) => (
              <g key={v}><line class="grid" x1={place(axis, v)} x2={place(axis, v)} y1={4} y2={66} /><text class="tick" x={place(axis, v)} y={82} text-anchor="middle">{joulesText(v)}</text></g>
            ))}
            {energies.map(({ side, colour, values }, i) => {
              const mean = values.reduce((s, v) => s + v, 0) / Math.max(values.length, 1);
              return (
                <g key={side}>
                  <text class="name" x={0} y={24 + 30 * i}>{side}</text>
                  {values.map((v, k) => <circle key={k} cx={place(axis, v)} cy={20 + 30 * i + ((k % 3) - 1) * 5} r={4} fill={colour} opacity={0.6}><title>{`${side}, run ${k + 1}: ${joulesText(v)}`}</title></circle>)}
                  {values.length > 1 && <line x1={place(axis, mean)} x2={place(axis, mean)} y1={8 + 30 * i} y2={32 + 30 * i} stroke={colour} stroke-width="2.5"><title>{`${side}, mean: ${joulesText(mean)}`}</title></line>}
                </g>
              );
            })}
          </svg>
        )}
      </div>
      <p class="soft">{curves.length > 0 ? "Each curve begins with its command. " : ""}Each dot is the energy of a run{all.length > 2 ? ", each line the mean of a side" : ""}; the change and its interval are above.</p>
    </section>
  );
}

export function ComparisonSections({ comparison, runs }: { comparison: Comparison; runs: ComparedRuns | undefined }) {
  const holder = useRef<HTMLDivElement>(null);
  const width = useWidth(holder);
  const [filter, setFilter] = useState("");
  const cells = useMemo(() => columns(comparison.by), [comparison]);
  const oneSided = useMemo(() => unmatchedColumns(comparison.by), [comparison]);
  return (
    <>
      <section aria-labelledby="verdicts">
        <Heading id="verdicts">Changes</Heading>
        <p class="soft">
          Each line is the 95 % interval of a change, the dot the change itself. The shaded band is "the same": less
          than {tickText(100 * comparison.same_within_ratio)} % either way.
        </p>
        <div ref={holder}>
          <Intervals rows={[comparison.energy, comparison.time, comparison.power, ...comparison.rows.slice(0, MOST_ROWS)]}
            within={comparison.same_within_ratio} width={width} byKernel={comparison.by === "kernel"} />
        </div>
      </section>
      {runs && <Overlay runs={runs} />}
      {comparison.rows.length + comparison.unmatched.length > 0 && (
        <>
          <DiffIcicle comparison={comparison} onRow={(name) => setFilter(exactly(name))} />
          {comparison.rows.length > 0 && (
            <section aria-labelledby="rows">
              <Heading id="rows">Rows</Heading>
              <Table name="rows" rows={comparison.rows} columns={cells} filter={filter} onFilter={setFilter} />
            </section>
          )}
          {comparison.unmatched.length > 0 && (
            <section aria-labelledby="unmatched">
              <Heading id="unmatched">Rows of one side only</Heading>
              <Table name="rows of one side" rows={comparison.unmatched} columns={oneSided} order={{ key: "energy_joules", down: true }}
                filter={filter} onFilter={setFilter} />
            </section>
          )}
        </>
      )}
    </>
  );
}
