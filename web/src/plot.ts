// Scales of a chart. The same round numbers as src/report/svg/axis.cpp.

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
