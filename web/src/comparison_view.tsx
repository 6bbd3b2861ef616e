// A comparison: its verdicts as intervals about zero, a differential icicle and the table of rows.
import { useMemo, useRef, useState } from "preact/hooks";
import { useWidth } from "./canvas";
import { buildDiff, changeOf, isClear, layOutDiff, type DiffFrame, type DiffWidth } from "./diff";
import { Choice } from "./icicle_view";
import { place, paddedAxis, tickText, ticks } from "./plot";
import { shortName } from "./kinds";
import { countText, joulesText } from "./quantity";
import type { Comparison, Difference, Unmatched } from "./results";
import { exactly, type Column } from "./table";
import { Table } from "./table_view";

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
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = Math.min(Math.max(active + by, 0), shown.length - 1);
    setActive(next);
    (holder.current?.children[next] as HTMLElement | undefined)?.focus();
  };
  return (
    <section aria-labelledby="diff">
      <h2 id="diff">Differential flame graph</h2>
      <p class="soft">
        Width is energy. Blue with ▼ took less, orange with ▲ more; grey is a difference within error, or one whose error
        is not known. Hatched is energy of one side only.
      </p>
      <div class="controls">
        <Choice label="Width" value={width} onChange={(w) => { setWidth(w); setActive(0); }} options={[
          ["after", "energy after"], ["before", "energy before"], ["change", "change"],
        ]} />
      </div>
      <div class="diff" ref={holder} style={{ height: `${levels * 26}px` }} role="group" aria-label="Parts of the energy" onKeyDown={move}>
        {shown.map((f, i) => {
          const change = changeOf(f);
          const kind = isClear(f) ? (change < 0 ? "lower" : "higher") : f.verdict === "rest" ? "rest" : "unclear";
          const sign = isClear(f) ? (change < 0 ? "▼ " : "▲ ") : "";
          return (
            <button
              type="button" key={`${f.name} ${f.detail} ${f.depth} ${i}`}
              class={`frame-box ${kind}${f.verdict === "new" || f.verdict === "gone" ? " hatched" : ""}`}
              style={{ left: `${100 * f.x}%`, width: `max(calc(${100 * f.width}% - 1px), 1px)`, top: `${26 * f.depth}px` }}
              tabIndex={i === active ? 0 : -1}
              aria-label={`${f.name}: ${describe(f)}`}
              onMouseEnter={() => setActive(i)} onFocus={() => setActive(i)}
              onClick={() => f.depth > 0 && f.verdict !== "rest" && onRow(f.name)}
            >
              {sign}{f.label} {f.ratio !== null && changeText(f.ratio)}
            </button>
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

export function ComparisonSections({ comparison }: { comparison: Comparison }) {
  const holder = useRef<HTMLDivElement>(null);
  const width = useWidth(holder);
  const [filter, setFilter] = useState("");
  const cells = useMemo(() => columns(comparison.by), [comparison]);
  const oneSided = useMemo(() => unmatchedColumns(comparison.by), [comparison]);
  return (
    <>
      <section aria-labelledby="verdicts">
        <h2 id="verdicts">Changes</h2>
        <p class="soft">
          Each line is the 95 % interval of a change, the dot the change itself. The shaded band is "the same": less
          than {tickText(100 * comparison.same_within_ratio)} % either way.
        </p>
        <div ref={holder}>
          <Intervals rows={[comparison.energy, comparison.time, comparison.power, ...comparison.rows.slice(0, MOST_ROWS)]}
            within={comparison.same_within_ratio} width={width} byKernel={comparison.by === "kernel"} />
        </div>
      </section>
      {comparison.rows.length + comparison.unmatched.length > 0 && (
        <>
          <DiffIcicle comparison={comparison} onRow={(name) => setFilter(exactly(name))} />
          {comparison.rows.length > 0 && (
            <section aria-labelledby="rows">
              <h2 id="rows">Rows</h2>
              <Table name="rows" rows={comparison.rows} columns={cells} filter={filter} onFilter={setFilter} />
            </section>
          )}
          {comparison.unmatched.length > 0 && (
            <section aria-labelledby="unmatched">
              <h2 id="unmatched">Rows of one side only</h2>
              <Table name="rows of one side" rows={comparison.unmatched} columns={oneSided} order={{ key: "energy_joules", down: true }}
                filter={filter} onFilter={setFilter} />
            </section>
          )}
        </>
      )}
    </>
  );
}
