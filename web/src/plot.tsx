// What charts share: a canvas that is as sharp as the screen and follows the width of what holds it; scales, with the same
// round numbers as src/report/svg/drawing.cpp.
import { useEffect, useState } from "preact/hooks";
import type { ComponentChildren, RefObject } from "preact";

export function useWidth(ref: RefObject<HTMLElement>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => setWidth(Math.floor(element.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}

// How much larger than on an ordinary screen the page's text is: canvases follow it.
export function textScale(): number {
  return Math.max(1, parseFloat(getComputedStyle(document.documentElement).fontSize) / 15.5 || 1);
}

export function prepare(canvas: HTMLCanvasElement, width: number, height: number) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// As much of a text as has room, with dots where it is cut; nothing where there is none.
export function cut(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (room < 14) return "";
  // A name of ten thousand characters is measured no further than it can show.
  const most = text.length > 400 ? text.slice(0, 400) : text;
  if (most === text && context.measureText(text).width <= room) return text;
  let low = 0;
  let high = most.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${most.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? `${most.slice(0, low)}…` : "";
}

const hatches = new Map<number, HTMLCanvasElement>();

// Diagonal lines over a fill: faint for an estimate, strong for a figure that is not resolvable.
export function hatch(context: CanvasRenderingContext2D, strength: number): CanvasPattern {
  let hatched = hatches.get(strength);
  if (!hatched) {
    hatched = document.createElement("canvas");
    hatched.width = hatched.height = 8;
    const lines = hatched.getContext("2d")!;
    hatches.set(strength, hatched);
    lines.strokeStyle = `rgba(0, 0, 0, ${strength})`;
    lines.lineWidth = 1.4;
    lines.beginPath();
    for (const x of [-8, 0, 8]) {
      lines.moveTo(x - 1, 9);
      lines.lineTo(x + 9, -1);
    }
    lines.stroke();
  }
  return context.createPattern(hatched, "repeat")!;
}

// Cividis, which looks the same to the colour-blind: `part` from 0 to 1.
const CIVIDIS = [
  [0, 34, 78], [30, 58, 111], [66, 79, 109], [95, 101, 112], [124, 123, 120], [155, 147, 116],
  [188, 173, 106], [222, 200, 82], [254, 232, 56],
];
export function cividis(part: number): string {
  const at = Math.min(Math.max(part, 0), 1) * (CIVIDIS.length - 1);
  const i = Math.min(Math.floor(at), CIVIDIS.length - 2);
  const mix = CIVIDIS[i].map((c, k) => Math.round(c + (CIVIDIS[i + 1][k] - c) * (at - i)));
  return `rgb(${mix.join(", ")})`;
}

// Black or white, whichever is easier to read on a colour.
export function inkOn(fill: string): string {
  const hex = /^#(..)(..)(..)$/.exec(fill);
  const rgb = hex
    ? hex.slice(1).map((c) => parseInt(c, 16))
    : (fill.match(/\d+/g) ?? ["255", "255", "255"]).map(Number);
  const [r, g, b] = rgb.map((c) => (c / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.22 ? "#101418" : "#ffffff";
}

export interface Axis {
  low: number;
  high: number;
  from: number;
  to: number;
}

export const place = (axis: Axis, value: number): number =>
  axis.from + ((value - axis.low) / (axis.high - axis.low)) * (axis.to - axis.from);

// From the least to the greatest with a margin; of one value, a range around it.
export function paddedAxis(values: number[], from: number, to: number): Axis {
  const low = Math.min(...values);
  const high = Math.max(...values);
  const pad = high > low ? 0.06 * (high - low) : Math.max(1e-9, 0.05 * Math.abs(high));
  return { low: low - pad, high: high + pad, from, to };
}

// Multiples of 1, 2 or 5 times a power of ten.
export function ticks(low: number, high: number, count = 4): number[] {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5].find((factor) => factor * power >= rough) ?? 10);
  const all: number[] = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) all.push(i * step || 0);
  return all;
}

export const tickText = (value: number): string => String(Number(value.toPrecision(6)));

export interface Bin {
  from: number;
  to: number;
  count: number;
}

// Equal bins over ascending values.
export function histogram(values: number[], count: number): Bin[] {
  if (values.length === 0) return [];
  const low = values[0];
  const high = values[values.length - 1];
  const width = (high - low || Math.abs(high) * 1e-3 || 1e-9) / count;
  const bins = Array.from({ length: count }, (_, i) => ({ from: low + i * width, to: low + (i + 1) * width, count: 0 }));
  for (const value of values) bins[Math.min(Math.floor((value - low) / width), count - 1)].count += 1;
  return bins;
}

// A small chart of points and lines with two axes.

export const PLOT = { left: 62, right: 14, top: 12, bottom: 44 };

interface Props {
  width: number;
  height: number;
  across: Axis;
  up: Axis;
  name: string; // of the chart, for people who hear it
  acrossTitle: string;
  upTitle: string;
  acrossText?: ((value: number) => string) | "none"; // none: the points name their places
  upText?: (value: number) => string;
  children: ComponentChildren;
}

export function Plot({ width, height, across, up, name, acrossTitle, upTitle, acrossText, upText, children }: Props) {
  return (
    <figure class="plot">
      <figcaption>{upTitle}</figcaption>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={name}>
        {ticks(up.low, up.high).map((value) => (
          <g key={value}>
            <line class="grid" x1={across.from} x2={across.to} y1={place(up, value)} y2={place(up, value)} />
            <text class="tick" x={across.from - 6} y={place(up, value) + 4} text-anchor="end">{(upText ?? tickText)(value)}</text>
          </g>
        ))}
        {(acrossText === "none" ? [] : ticks(across.low, across.high, Math.max(2, Math.min(6, Math.floor(width / 60))))).map((value) => (
          <text key={value} class="tick" x={place(across, value)} y={up.from + 16} text-anchor="middle">
            {(typeof acrossText === "function" ? acrossText : tickText)(value)}
          </text>
        ))}
        <text class="tick" x={(across.from + across.to) / 2} y={up.from + 34} text-anchor="middle">{acrossTitle}</text>
        {children}
      </svg>
    </figure>
  );
}
