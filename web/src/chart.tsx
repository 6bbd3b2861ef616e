// One chart over time: a stepped line with a band, by uPlot.
import { useContext, useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { textScale, useWidth } from "./canvas";
import type { Selection } from "./selection";
import { colour, ThemeVersion } from "./theme";
import { axisText } from "./quantity";

export const GUTTER = 64;
export const MARGIN = 16; // at the right, for half of the last time

export interface Line {
  times: number[];
  values: (number | null)[];
  low?: (number | null)[];
  high?: (number | null)[];
  extremes?: [(number | null)[], (number | null)[]]; // the least and the greatest of each step
}

export interface Range {
  begin: number;
  end: number;
}

interface Props {
  line: Line;
  label: string;
  ink: string; // a variable of the style sheet
  height: number;
  range: Range;
  work: Range;
  selection: Selection | null;
  limit?: Line; // a second, dashed line
  onSelect: (selection: Selection | null) => void;
  onHover: (time: number | null) => void;
  axis: boolean;
}

// Seconds between two times on the axis that read well.
const TIME_STEPS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1].flatMap((unit) => [unit, 2 * unit, 5 * unit]).concat(
  [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800]);

const stepped = uPlot.paths.stepped!({ align: 1 });
const sync = uPlot.sync("time");

function build(holder: HTMLElement, width: number, p: Props, live: { current: Props }): uPlot {
  const ink = colour(p.ink);
  const scale = textScale();
  const font = `${11 * scale}px system-ui, sans-serif`;
  const soft = colour("soft");
  const grid = { stroke: colour("line"), width: 1 };
  const none: (number | null)[] = p.line.values.map(() => null);
  const [least, greatest] = p.line.extremes ?? [none, none];
  const series: uPlot.Series[] = [
    {},
    { paths: stepped, points: { show: false }, stroke: `${ink}55`, width: 1 },
    { paths: stepped, points: { show: false }, stroke: `${ink}55`, width: 1 },
    { paths: stepped, points: { show: false }, width: 0 },
    { paths: stepped, points: { show: false }, width: 0 },
    { paths: stepped, points: { show: false }, stroke: ink, width: 1.5 },
  ];
  const greatestOf = (list: (number | null)[]) => list.reduce<number>((m, v) => Math.max(m, v ?? 0), 0);
  const line = Math.max(greatestOf(p.line.values), greatestOf(greatest));
  const band = Math.min(greatestOf(p.line.high ?? none), 1.6 * line);
  const top = 1.06 * Math.max(line, band, p.limit ? greatestOf(p.limit.values) : 0, 1e-9);
  const limits = p.limit ? aligned(p.line.times, p.limit) : none;
  series.push({ paths: stepped, points: { show: false }, stroke: soft, width: 1, dash: [5, 4] });
  return new uPlot(
    {
      width,
      height: p.height,
      padding: [8, MARGIN, p.axis ? 0 : 4, 0],
      legend: { show: false },
      cursor: {
        sync: { key: sync.key },
        drag: { x: true, y: false, setScale: false },
        points: { show: false },
        y: false,
      },
      scales: { x: { time: false, range: () => [live.current.range.begin, live.current.range.end] },
        // A wide band may leave the chart; the line and its extremes may not.
        y: { range: () => [0, top] } },
      axes: [
        { show: p.axis, size: 26 * scale, stroke: soft, grid, ticks: { show: false }, font, incrs: TIME_STEPS, space: 84 * scale,
          values: (_u, ticks) => ticks.map((t) => axisText(t, ticks)) },
        { size: GUTTER, stroke: soft, grid, ticks: { show: false }, font,
          space: 28 * scale, values: (_u, ticks) => ticks.map((t) => String(t)) },
      ],
      series,
      bands: [
        { series: [2, 1], fill: `${ink}22` },
        { series: [4, 3], fill: `${ink}40` },
      ],
      hooks: {
        drawClear: [(u) => {
          // The time before and after the command.
          const context = u.ctx;
          context.save();
          context.fillStyle = colour("outside");
          const edge = (t: number) => u.valToPos(t, "x", true);
          const { left, top, width: w, height: h } = u.bbox;
          const from = Math.max(edge(live.current.work.begin), left);
          const to = Math.min(edge(live.current.work.end), left + w);
          if (from > left) context.fillRect(left, top, from - left, h);
          if (to < left + w) context.fillRect(to, top, left + w - to, h);
          context.restore();
        }],
        setCursor: [(u) => {
          const at = u.cursor.left ?? -1;
          live.current.onHover(at >= 0 ? u.posToVal(at, "x") : null);
        }],
        setSelect: [(u) => {
          const { left, width: w } = u.select;
          live.current.onSelect(w < 3 ? null : { begin: u.posToVal(left, "x"), end: u.posToVal(left + w, "x") });
        }],
      },
    },
    [p.line.times, least, greatest, p.line.low ?? none, p.line.high ?? none, p.line.values, limits] as uPlot.AlignedData,
    holder,
  );
}

// The values of another line at these times; each holds until the next.
export function aligned(times: number[], line: Line): (number | null)[] {
  let at = -1;
  return times.map((t) => {
    while (at + 1 < line.times.length && line.times[at + 1] <= t) ++at;
    return at < 0 ? (line.values[0] ?? null) : line.values[at];
  });
}

export function Chart(p: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const live = useRef(p);
  live.current = p;
  const width = useWidth(holder);
  const theme = useContext(ThemeVersion);
  useEffect(() => {
    if (!holder.current || width === 0) return;
    const made = build(holder.current, width, p, live);
    chart.current = made;
    show(made, p.selection);
    return () => {
      made.destroy();
      chart.current = null;
    };
  }, [width, theme, p.line, p.limit, p.height, p.axis]);
  useEffect(() => {
    const u = chart.current;
    if (!u) return;
    u.setScale("x", { min: p.range.begin, max: p.range.end });
    show(u, p.selection);
  }, [p.range.begin, p.range.end]);
  useEffect(() => {
    if (chart.current) show(chart.current, p.selection);
  }, [p.selection]);
  return <div ref={holder} class="chart" role="img" aria-label={p.label} />;
}

function show(u: uPlot, selection: Selection | null) {
  const edge = (t: number) => u.valToPos(t, "x");
  const most = u.over.clientWidth;
  const left = selection ? Math.min(Math.max(edge(selection.begin), 0), most) : 0;
  const right = selection ? Math.min(Math.max(edge(selection.end), 0), most) : 0;
  u.setSelect({ left, width: right - left, top: 0, height: u.over.clientHeight }, false);
}
