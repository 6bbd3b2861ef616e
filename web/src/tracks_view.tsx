// What ran, under the power charts: by slices, and windows, isolated re-runs and reduced clocks.
import { useContext, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { cut, inkOn, prepare, textScale, useWidth } from "./plot";
import { gutter, MARGIN, type Range } from "./chart";
import type { Page, Row } from "./data";
import { shortLayer, starred } from "./fold";
import { KIND_COLOURS, kindOf, SERIES_COLOURS, type Kind } from "./kinds";
import type { Selection } from "./part";
import { countText, errorText, joulesText, percentText, roundText, secondsText } from "./quantity";
import { colour, ThemeVersion } from "./state";

const ROW = 20;

interface Span {
  row: number;
  begin: number;
  length: number;
  text: string;
  words: string; // with figures
  fill: string;
  part?: number; // of the row's height: a bar of a count
}

const meanText = (n: number) => countText(Number(n < 1 ? n.toPrecision(1) : n.toFixed(1)));

function spansOf(page: Page): { rows: string[]; spans: Span[] } {
  const timeline = page.timeline!;
  const rows: string[] = [];
  const spans: Span[] = [];
  const label = (id: number) => {
    const at = page.profile.domains.findIndex((d) => d.id === id);
    return at < 0 ? `domain ${id}` : page.labels[at];
  };
  const { lanes, request_lanes: requests, in_flight: flight } = timeline.windows;
  const first = requests + (flight ? 1 : 0); // row of the first other window
  for (let lane = 0; lane < requests; ++lane) rows.push(lane === 0 ? "requests" : "");
  if (flight) {
    const most = Math.max(...flight.means);
    flight.means.forEach((mean, i) => {
      if (mean <= 0) return;
      spans.push({
        row: requests, begin: flight.begin_seconds + i * flight.step_seconds, length: flight.step_seconds, text: "", fill: KIND_COLOURS.other, part: mean / most,
        words: `${meanText(mean)} requests in flight, mean of ${roundText(flight.step_seconds)}; the greatest is ${meanText(most)}`,
      });
    });
    rows.push("in flight");
  }
  for (let lane = requests; lane < lanes; ++lane) rows.push(lane === requests ? "windows" : "");
  for (const [lane, name, begin, length, count, energies] of timeline.windows.blocks) {
    const one = name < 0 ? "windows of several names" : timeline.windows.names[name];
    const text = count > 1 ? `${countText(count)} × ${one}` : one;
    const total = new Set(page.profile.total.of);
    const figures = (energies ?? [])
      .filter(([id]) => total.has(id))
      .map(([id, energy, error]) => `${label(id)} ${joulesText(energy / 1e6)} ${errorText(error, energy)}`);
    spans.push({
      row: lane < requests ? lane : lane - requests + first, begin, length, text, fill: SERIES_COLOURS[Math.max(name, 0) % SERIES_COLOURS.length],
      words: [text, secondsText(length), ...figures].join(" · "),
    });
  }
  for (const id of new Set(timeline.clock_limits.map((l) => l.id))) {
    rows.push(`${label(id)} limit`);
    for (const limit of timeline.clock_limits.filter((l) => l.id === id)) {
      const reasons = limit.reasons.map((r) => r.replace(/_/g, " ")).join(", ");
      const length = limit.end_seconds - limit.begin_seconds;
      spans.push({
        row: rows.length - 1, begin: limit.begin_seconds, length, text: reasons, fill: KIND_COLOURS.reduction,
        words: `${label(id)}: clocks reduced by ${reasons} · ${secondsText(length)}`,
      });
    }
  }
  if (timeline.replays.length > 0) {
    rows.push("re-runs");
    for (const [begin, length, name] of timeline.replays) {
      spans.push({
        row: rows.length - 1, begin, length, text: name ?? "between", fill: KIND_COLOURS.other,
        words: `isolated re-run, in no figure: ${name ?? "between two re-runs"} · ${secondsText(length)}`,
      });
    }
  }
  spans.sort((a, b) => a.row - b.row || a.begin - b.begin);
  return { rows, spans };
}

// One series of a track by slices: what it is, and its energies.
interface Series {
  name: string;
  fill: string;
  energies: number[];
}

const PHASES: Record<string, string> = { forward: KIND_COLOURS.gemm, backward: KIND_COLOURS.attention, optimizer: KIND_COLOURS.normalisation };
const MOST_SERIES = 7; // of layers

// What ran in each slice, of a device: phases, layers and kinds of kernels. Layers are those at which the
// model branches, alike ones together.
export function seriesOf(page: Page, id: number): [string, Series[]][] {
  const slices = page.slices.find((s) => s.id === id);
  const device = page.stacks.findIndex((s) => s.id === id);
  if (!slices || device < 0 || !page.activity) return [];
  const joined = (by: "phase" | "layer" | "kernel", nameOf: (row: Row) => string | null): Map<string, number[]> => {
    const rows = new Map(page.activity![by][device].rows.map((r) => [r.number, r]));
    const out = new Map<string, number[]>();
    for (const [number, unit, energies] of slices[by]) {
      const row = rows.get(number);
      const name = row ? nameOf(row) : null;
      if (name === null) continue;
      const sum = out.get(name) ?? new Array<number>(slices.count).fill(0);
      energies.forEach((e, i) => { sum[i] += Math.max(e, 0) * unit * 1e-6; });
      out.set(name, sum);
    }
    return out;
  };
  const named = (row: Row) => (row.name.startsWith("(") ? null : row.name);
  const layers = page.activity.layer[device].rows.filter(named);
  let level = layers.filter((r) => r.parent === null);
  // Down to where the energy divides.
  for (let below = level; ; level = below) {
    below = layers.filter((r) => r.parent !== null && level.some((l) => l.number === r.parent));
    const sum = level.reduce((s, r) => s + Math.max(r.inclusive_joules ?? 0, 0), 0);
    const first = Math.max(0, ...level.map((r) => r.inclusive_joules ?? 0));
    if (below.length === 0 || (new Set(level.map((r) => starred(r.name) ?? r.name)).size > 1 && first < 0.85 * sum)) break;
  }
  const shown = new Set(level.map((r) => r.number));
  const tables: [string, Map<string, number[]>, (name: string, i: number) => string][] = [
    ["phase", joined("phase", named), (name, i) => PHASES[name] ?? SERIES_COLOURS[i % SERIES_COLOURS.length]],
    ["layer", joined("layer", (r) => (shown.has(r.number) ? shortLayer(starred(r.name) ?? r.name, parentName(layers, r)) : null)),
      (_, i) => SERIES_COLOURS[i % SERIES_COLOURS.length]],
    ["kernel", joined("kernel", (r) => (named(r) === null ? null : kindOf(r.name))), (name) => KIND_COLOURS[name as Kind]],
  ];
  return tables.filter(([, found]) => found.size > 0).map(([title, found, fill]): [string, Series[]] => {
    const total = (energies: number[]) => energies.reduce((s, e) => s + e, 0);
    const all = [...found].sort((a, b) => total(b[1]) - total(a[1]));
    const series = all.slice(0, MOST_SERIES).map(([name, energies], i) => ({ name, fill: fill(name, i), energies }));
    const rest = all.slice(MOST_SERIES);
    if (rest.length > 0) {
      series.push({ name: `${rest.length} more`, fill: KIND_COLOURS.other, energies: series[0].energies.map((_, i) => rest.reduce((s, [, e]) => s + e[i], 0)) });
    }
    return [title, series];
  });
}

const parentName = (layers: Row[], row: Row): string | null => layers.find((l) => l.number === row.parent)?.name ?? null;

const sliceAt = (page: Page, id: number, time: number): number => {
  const slices = page.slices.find((s) => s.id === id)!;
  const at = Math.floor((time - slices.begin_seconds) / slices.step_seconds);
  return at >= 0 && at < slices.count ? at : -1;
};

const known = new WeakMap<Page, Map<number, [string, Series[]][]>>();
function tracksOf(page: Page, id: number): [string, Series[]][] {
  let all = known.get(page);
  if (!all) known.set(page, (all = new Map()));
  let own = all.get(id);
  if (!own) all.set(id, (own = seriesOf(page, id)));
  return own;
}

// What had most of the energy at a time, a line for each device and track.
export function ranAt(page: Page, time: number): string[] {
  return page.slices.slice(0, 2).flatMap((slices) => {
    const at = sliceAt(page, slices.id, time);
    if (at < 0) return [];
    return tracksOf(page, slices.id).flatMap(([title, series]) => {
      const sum = series.reduce((s, one) => s + one.energies[at], 0);
      if (sum <= 0) return [];
      const most = [...series].sort((a, b) => b.energies[at] - a.energies[at]).slice(0, 2).filter((s) => s.energies[at] > 0);
      return [`${title}: ${most.map((s) => `${s.name} ${joulesText(s.energies[at])} (${percentText(s.energies[at] / sum)})`).join(", ")}`];
    });
  });
}

// The windows at a time: each name with its number, the requests in flight.
export function windowsAt(page: Page, time: number): string[] {
  const { names, blocks, in_flight: flight } = page.timeline!.windows;
  const found = new Map<string, number>();
  for (const [, name, begin, length] of blocks) {
    if (name >= 0 && time >= begin && time <= begin + length) found.set(names[name], (found.get(names[name]) ?? 0) + 1);
  }
  const out = [...found].slice(-3).map(([name, n]) => (n > 1 ? `${n} × ${name}` : name));
  const mean = flight?.means[Math.floor((time - flight.begin_seconds) / flight.step_seconds)];
  return [...(out.length > 0 ? [`window ${out.join(", ")}`] : []), ...(mean ? [`${meanText(mean)} requests in flight`] : [])];
}

const TRACK = 22;

// Under the curve, by slice: the parts of the active energy as shares of the height.
export function SliceTracks({ page, range, hover, onHover }: {
  page: Page; range: Range; hover: number | null; onHover: (time: number | null) => void;
}) {
  const devices = useMemo(() => page.slices.slice(0, 4).map((s) => ({ slices: s, tracks: tracksOf(page, s.id) })).filter((d) => d.tracks.length > 0), [page]);
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(holder);
  const scale = textScale();
  const theme = useContext(ThemeVersion);
  const left = gutter();
  const plot = Math.max(width - left - MARGIN, 10);
  const rowHeight = Math.round(TRACK * scale);
  const rows = devices.flatMap(({ slices, tracks }) => tracks.map(([title, series]) => ({ slices, title, series })));
  const height = rows.length * (rowHeight + 3);
  const edge = (t: number) => left + (plot * (t - range.begin)) / (range.end - range.begin);
  useLayoutEffect(() => {
    if (!canvas.current || width === 0) return;
    const context = prepare(canvas.current, width, height);
    context.font = `${11 * scale}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    rows.forEach(({ slices, title, series }, row) => {
      const top = row * (rowHeight + 3);
      context.fillStyle = colour("soft");
      context.textAlign = "right";
      context.fillText(cut(context, devices.length > 1 ? `${page.stacks.find((s) => s.id === slices.id)!.device} ${title}` : title, left - 4), left - 6, top + rowHeight / 2);
      context.save();
      context.beginPath();
      context.rect(left, top, plot, rowHeight);
      context.clip();
      for (let i = 0; i < slices.count; ++i) {
        const x = edge(slices.begin_seconds + i * slices.step_seconds);
        const end = edge(slices.begin_seconds + (i + 1) * slices.step_seconds);
        if (end < left || x > width) continue;
        const sum = series.reduce((s, one) => s + one.energies[i], 0);
        let y = top;
        for (const one of sum > 0 ? series : []) {
          const part = (rowHeight * one.energies[i]) / sum;
          context.fillStyle = one.fill;
          context.fillRect(x, y, Math.max(end - x - (end - x > 4 ? 0.7 : 0), 0.5), part);
          y += part;
        }
      }
      context.restore();
    });
  }, [rows.length, devices, width, range.begin, range.end, theme]);
  if (rows.length === 0) return null;
  const at = hover === null ? null : edge(hover);
  return (
    <div class="slices">
      <div ref={holder} class="chart" role="img" style={{ height: `${height}px` }}
        aria-label={`Over time, by slices: ${[...new Set(rows.map((r) => r.title))].join(", ")}. The tables have the figures of a selection.`}
        onPointerMove={(e: PointerEvent) => {
          const x = e.clientX - holder.current!.getBoundingClientRect().left;
          onHover(x < left || x > left + plot ? null : range.begin + ((x - left) / plot) * (range.end - range.begin));
        }}
        onPointerLeave={() => onHover(null)}>
        <canvas ref={canvas} />
        {at !== null && at >= left && at <= left + plot && <i class="cursor" style={{ left: `${at}px`, height: `${height}px` }} />}
      </div>
      <p class="soft">
        {rows.filter((r, i) => rows.findIndex((o) => o.title === r.title) === i).map(({ title, series }) => (
          <span key={title} class="legend">
            <b>{title}</b> {series.map((s) => <span key={s.name}><span class="swatch" style={{ background: s.fill }} />{s.name}</span>)}
          </span>
        ))}
        <span>Parts of the active energy of each {roundText(devices[0].slices.step_seconds)}.</span>
      </p>
    </div>
  );
}

interface Props {
  page: Page;
  range: Range;
  selection: Selection | null;
  onSelect: (selection: Selection | null) => void;
}

export function Tracks({ page, range, selection, onSelect }: Props) {
  const { rows, spans } = useMemo(() => spansOf(page), [page]);
  const [focus, setFocus] = useState<number | null>(null);
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(holder);
  const scale = textScale();
  const rowHeight = Math.round(ROW * scale);
  const theme = useContext(ThemeVersion);
  const left = gutter();
  const plot = Math.max(width - left - MARGIN, 10);
  const edge = (t: number) => left + (plot * (t - range.begin)) / (range.end - range.begin);

  useLayoutEffect(() => {
    if (!canvas.current || width === 0) return;
    const context = prepare(canvas.current, width, rows.length * rowHeight);
    context.font = `${11 * scale}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    context.save();
    context.beginPath();
    context.rect(left, 0, plot, rows.length * rowHeight);
    context.clip();
    spans.forEach((span, i) => {
      const x = edge(span.begin);
      const w = Math.max(edge(span.begin + span.length) - x, 1);
      if (x > width || x + w < left) return;
      const y = span.row * rowHeight;
      context.fillStyle = span.fill;
      const tall = (rowHeight - 2) * (span.part ?? 1);
      context.fillRect(x, y + rowHeight - 1 - tall, span.part !== undefined ? w + 0.5 : w > 3 ? w - 1 : w, tall);
      const from = Math.max(x, left);
      const text = cut(context, span.text, Math.min(x + w, width) - from - 8);
      context.fillStyle = inkOn(span.fill);
      if (text) context.fillText(text, from + 4, y + rowHeight / 2);
      if (i === focus) {
        context.strokeStyle = colour("ink");
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, Math.max(w - 2, 1), rowHeight - 3);
      }
    });
    if (selection) {
      context.fillStyle = colour("selected");
      context.fillRect(edge(selection.begin), 0, edge(selection.end) - edge(selection.begin), rows.length * rowHeight);
    }
    context.restore();
    context.fillStyle = colour("soft");
    context.textAlign = "right";
    rows.forEach((row, i) => {
      context.fillText(cut(context, row, left - 4), left - 6, i * rowHeight + rowHeight / 2);
    });
  }, [spans, rows, width, range.begin, range.end, selection, focus, theme]);

  if (rows.length === 0) return null;
  const at = (event: MouseEvent): number | null => {
    const box = canvas.current!.getBoundingClientRect();
    const t = range.begin + ((event.clientX - box.left - left) / plot) * (range.end - range.begin);
    const row = Math.floor((event.clientY - box.top) / rowHeight);
    const slack = (2 * (range.end - range.begin)) / plot;
    for (let i = spans.length - 1; i >= 0; --i) {
      const s = spans[i];
      if (s.row === row && t >= s.begin - slack && t <= s.begin + s.length + slack) return i;
    }
    return null;
  };
  const select = (i: number | null) =>
    onSelect(i === null ? null : { begin: spans[i].begin, end: spans[i].begin + spans[i].length });
  // Bars are for the eye: keys pass over them.
  const next = (by: number) => {
    let i = (focus ?? -1) + by;
    while (spans[i]?.part !== undefined) i += by;
    if (spans[i]) setFocus(i);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === "ArrowRight") next(1);
    else if (event.key === "ArrowLeft") next(-1);
    else if (event.key === "Enter" && focus !== null) select(focus);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div>
      <div ref={holder} class="tracks">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-label={`${rows.filter(Boolean).join(", ")} over time. Left and right move, Enter selects the interval.`}
          aria-describedby="span"
          onKeyDown={key}
          onMouseMove={(e) => setFocus(at(e))}
          onMouseLeave={() => setFocus(null)}
          onClick={(e) => select(at(e))}
        />
      </div>
      <p class="frame one" id="span" aria-live="polite">{focus === null ? "" : spans[focus].words}</p>
    </div>
  );
}
