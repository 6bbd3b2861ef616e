// One chart over time: a stepped line with a band, on which a part of the time can be selected.
import { useContext, useEffect, useRef, useState } from "preact/hooks";
import { prepare, textScale, useWidth } from "./canvas";
import { Drawing, topOf, type Line, type Range } from "./line";
import type { Axis } from "./plot";
import type { Selection } from "./selection";
import { colour, ThemeVersion } from "./theme";

// At the left, for the numbers of the axis.
export const gutter = (): number => Math.round(64 * textScale());
export const MARGIN = 16; // at the right, for half of the last time

const LEAST = 3; // pixels of a selection; less ends it

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
  useEffect(() => {
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
      {shown && edge(shown.end) > edge(shown.begin) && (
        <i class="selection" style={{ left: `${edge(shown.begin)}px`, width: `${edge(shown.end) - edge(shown.begin)}px`, height: `${plot}px` }} />
      )}
      {p.hover !== null && p.hover >= x.low && p.hover <= x.high && (
        <i class="cursor" style={{ left: `${pixel(p.hover)}px`, height: `${plot}px` }} />
      )}
    </div>
  );
}
