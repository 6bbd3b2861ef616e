// A stepped line over time, drawn on a canvas with its band and axes.
import { type Axis, place, prepare, textScale, ticks, tickText, useWidth } from "./plot";
import type { Selection } from "./part";
import { axisText } from "./quantity";
import { colour, ThemeVersion } from "./state";
import { useContext, useLayoutEffect, useRef, useState } from "preact/hooks";

// Each value holds until the next time; the last one ends the line.
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

type Values = (number | null)[];

const greatest = (values: Values = []): number => values.reduce<number>((m, v) => Math.max(m, v ?? 0), 0);

// A wide band may leave the chart; the line, its extremes and its limit may not.
export function topOf(line: Line, limit?: Line): number {
  const most = Math.max(greatest(line.values), greatest(line.extremes?.[1]));
  const band = Math.min(greatest(line.high), 1.6 * most);
  return 1.06 * Math.max(most, band, greatest(limit?.values), 1e-9);
}

// Seconds between two times on an axis that read well.
const STEPS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1].flatMap((unit) => [unit, 2 * unit, 5 * unit]).concat(
  [10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800]);

export function timeTicks(range: Range, most: number): number[] {
  const length = range.end - range.begin;
  const step = STEPS.find((s) => length / s <= Math.max(most, 1)) ?? STEPS[STEPS.length - 1];
  const all: number[] = [];
  for (let i = Math.ceil(range.begin / step - 1e-9); i * step <= range.end + step * 1e-9; ++i) all.push(i * step || 0);
  return all;
}

// The last time at or before `t`; 0 before the first.
export function indexAt(times: number[], t: number): number {
  let low = 0;
  let high = times.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (times[middle] <= t) low = middle;
    else high = middle - 1;
  }
  return Math.max(low, 0);
}

export class Drawing {
  constructor(private context: CanvasRenderingContext2D, private x: Axis, private y: Axis) {}

  // The indices whose steps can be seen.
  private seen(times: number[]): [number, number] {
    return [indexAt(times, this.x.low), Math.min(indexAt(times, this.x.high) + 1, times.length - 1)];
  }

  private at = (t: number): number => place(this.x, t);

  line(times: number[], values: Values, stroke: string, width: number, dash: number[] = []) {
    const c = this.context;
    const [first, last] = this.seen(times);
    c.beginPath();
    let open = false;
    for (let i = first; i <= last; ++i) {
      const v = values[i];
      if (v === null) {
        open = false;
        continue;
      }
      const [x, y] = [this.at(times[i]), place(this.y, v)];
      if (open) c.lineTo(x, y);
      else c.moveTo(x, y);
      if (i < last) c.lineTo(this.at(times[i + 1]), y);
      open = true;
    }
    c.strokeStyle = stroke;
    c.lineWidth = width;
    c.setLineDash(dash);
    c.stroke();
    c.setLineDash([]);
  }

  band(times: number[], low: Values, high: Values, fill: string) {
    const [first, last] = this.seen(times);
    this.context.fillStyle = fill;
    this.context.beginPath();
    for (let i = first; i < last; ++i) {
      const [a, b] = [low[i], high[i]];
      if (a === null || b === null) continue;
      const x = this.at(times[i]);
      const top = place(this.y, b);
      this.context.rect(x, top, this.at(times[i + 1]) - x, place(this.y, a) - top);
    }
    this.context.fill();
  }

  // The time outside of the work.
  outside(work: Range, fill: string) {
    const { low, high, from, to } = this.x;
    this.context.fillStyle = fill;
    const height = this.y.from - this.y.to;
    const fillFrom = (a: number, b: number) => b > a && this.context.fillRect(a, this.y.to, b - a, height);
    if (work.begin > low) fillFrom(from, Math.min(this.at(work.begin), to));
    if (work.end < high) fillFrom(Math.max(this.at(work.end), from), to);
  }

  axes(scale: number, text: string, grid: string, withTimes: boolean) {
    const c = this.context;
    const { from, to } = this.x;
    c.font = `${11 * scale}px system-ui, sans-serif`;
    c.fillStyle = text;
    c.strokeStyle = grid;
    c.lineWidth = 1;
    const rule = (x1: number, y1: number, x2: number, y2: number) => {
      c.beginPath();
      c.moveTo(Math.round(x1) + 0.5, Math.round(y1) + 0.5);
      c.lineTo(Math.round(x2) + 0.5, Math.round(y2) + 0.5);
      c.stroke();
    };
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (const v of ticks(this.y.low, this.y.high, Math.max(1, (this.y.from - this.y.to) / (30 * scale)))) {
      rule(from, place(this.y, v), to, place(this.y, v));
      c.fillText(tickText(v), from - 6, Math.min(Math.max(place(this.y, v), 6 * scale), this.y.from - 4 * scale));
    }
    const times = timeTicks({ begin: this.x.low, end: this.x.high }, (to - from) / (84 * scale));
    c.textAlign = "center";
    c.textBaseline = "top";
    for (const t of times) {
      rule(this.at(t), this.y.to, this.at(t), this.y.from);
      if (withTimes) c.fillText(axisText(t, times), this.at(t), this.y.from + 7);
    }
  }
}

// One chart over time: a stepped line with a band, on which a part of the time can be selected.

// At the left, for the numbers of the axis.
export const gutter = (): number => Math.round(64 * textScale());
export const MARGIN = 16; // at the right, for half of the last time

const LEAST = 3; // pixels of a selection; less ends it

// A part of the time, and how much of it is lit: from 0 to 1.
export interface Lit {
  begin: number;
  end: number;
  strength: number;
}

interface Props {
  line: Line;
  label: string;
  ink: string; // a variable of the style sheet
  height: number;
  range: Range;
  work: Range;
  selection: Selection | null;
  hover: number | null; // of any chart
  limit?: Line; // a second, dashed line
  lit?: Lit[]; // what is pointed at in another panel
  onSelect: (selection: Selection | null) => void;
  onHover: (time: number | null) => void;
  axis: boolean;
}

function draw(context: CanvasRenderingContext2D, p: Props, x: Axis, y: Axis, scale: number) {
  const drawing = new Drawing(context, x, y);
  const ink = colour(p.ink);
  drawing.outside(p.work, colour("outside"));
  drawing.axes(scale, colour("soft"), colour("line"), p.axis);
  context.save();
  context.beginPath();
  context.rect(x.from, y.to - 1, x.to - x.from, y.from - y.to + 2);
  context.clip();
  const { times, values, low, high, extremes } = p.line;
  if (low && high) drawing.band(times, low, high, `${ink}40`);
  if (extremes) {
    drawing.band(times, extremes[0], extremes[1], `${ink}22`);
    for (const edge of extremes) drawing.line(times, edge, `${ink}55`, 1);
  }
  if (p.limit) drawing.line(p.limit.times, p.limit.values, colour("soft"), 1, [5, 4]);
  drawing.line(times, values, ink, 1.5);
  context.restore();
}

export function Chart(p: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const from = useRef<number | null>(null); // where a drag began
  const [drag, setDrag] = useState<Selection | null>(null);
  const width = useWidth(holder);
  const theme = useContext(ThemeVersion);
  const scale = textScale();
  const x: Axis = { low: p.range.begin, high: p.range.end, from: gutter(), to: Math.max(width - MARGIN, gutter() + 10) };
  const plot = Math.round(p.height * scale);
  const height = plot + (p.axis ? Math.round(26 * scale) : 0);
  useLayoutEffect(() => {
    if (!canvas.current || width === 0) return;
    const y: Axis = { low: 0, high: topOf(p.line, p.limit), from: plot - 2, to: 6 };
    draw(prepare(canvas.current, width, height), p, x, y, scale);
  }, [width, theme, p.line, p.limit, p.height, p.axis, p.range.begin, p.range.end, p.work.begin]);

  const timeAt = (event: PointerEvent): number => {
    const at = event.clientX - holder.current!.getBoundingClientRect().left;
    return x.low + ((Math.min(Math.max(at, x.from), x.to) - x.from) / (x.to - x.from)) * (x.high - x.low);
  };
  const pixel = (t: number) => x.from + ((t - x.low) / (x.high - x.low)) * (x.to - x.from);
  const dragged = (event: PointerEvent): Selection | null => {
    const [a, b] = [from.current!, timeAt(event)];
    return Math.abs(pixel(a) - pixel(b)) < LEAST ? null : { begin: Math.min(a, b), end: Math.max(a, b) };
  };
  const events = {
    onPointerDown: (e: PointerEvent) => {
      if (e.button !== 0) return;
      from.current = timeAt(e);
      holder.current!.setPointerCapture(e.pointerId);
    },
    onPointerMove: (e: PointerEvent) => {
      p.onHover(timeAt(e));
      if (from.current !== null) setDrag(dragged(e));
    },
    onPointerUp: (e: PointerEvent) => {
      if (from.current === null) return;
      p.onSelect(dragged(e));
      from.current = null;
      setDrag(null);
    },
    // The page is scrolled instead.
    onPointerCancel: () => {
      from.current = null;
      setDrag(null);
    },
    onPointerLeave: () => p.onHover(null),
  };
  const shown = drag ?? p.selection;
  const edge = (t: number) => Math.min(Math.max(pixel(t), x.from), x.to);
  return (
    <div ref={holder} class="chart" role="img" aria-label={p.label} style={{ height: `${height}px` }} {...events}>
      <canvas ref={canvas} />
      {p.lit?.filter((l) => edge(l.end) > edge(l.begin)).map((l) => (
        <i key={l.begin} class="lit" style={{ left: `${edge(l.begin)}px`, width: `${edge(l.end) - edge(l.begin)}px`, height: `${plot}px`, opacity: 0.15 + 0.45 * l.strength }} />
      ))}
      {shown && edge(shown.end) > edge(shown.begin) && (
        <i class="selection" style={{ left: `${edge(shown.begin)}px`, width: `${edge(shown.end) - edge(shown.begin)}px`, height: `${plot}px` }} />
      )}
      {p.hover !== null && p.hover >= x.low && p.hover <= x.high && (
        <i class="cursor" style={{ left: `${pixel(p.hover)}px`, height: `${plot}px` }} />
      )}
    </div>
  );
}
