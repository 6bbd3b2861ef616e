// Scales of a chart. The same round numbers as src/report/svg/axis.cpp.
import type { ComponentChildren } from "preact";

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
