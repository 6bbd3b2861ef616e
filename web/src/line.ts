// A stepped line over time, drawn on a canvas with its band and axes.
import { axisText } from "./quantity";
import { place, tickText, ticks, type Axis } from "./plot";

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
