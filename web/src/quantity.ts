// Numbers as text, in the same words as the tool's own (src/report/quantity.cpp).

const exponentOf = (value: number): number => Number(value.toExponential(3).split("e")[1]);
const clamp = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);

// About four significant digits, never "-0".
export function numberText(value: number): string {
  if (!Number.isFinite(value)) return "-";
  if (Math.abs(value) < 0.0005) return "0";
  return value.toFixed(clamp(3 - exponentOf(value), 0, 3));
}

const UNITS = ["mJ", "J", "kJ", "MJ", "GJ"];

export function joulesText(joules: number): string {
  if (!Number.isFinite(joules)) return "-";
  if (joules === 0) return "0 J";
  const exponent = exponentOf(joules);
  const group = clamp(exponent >= 0 ? Math.floor(exponent / 3) : -1, -1, 3);
  const decimals = clamp(3 - (exponent - 3 * group), 0, 3);
  return `${(joules * 10 ** (-3 * group)).toFixed(decimals)} ${UNITS[group + 1]}`;
}

export const wattsText = (watts: number): string => `${numberText(watts)} W`;

// Without a sign.
export function percentText(ratio: number): string {
  const percent = 100 * Math.abs(ratio);
  if (!Number.isFinite(percent)) return "-";
  if (percent === 0) return "0 %";
  if (percent >= 9.95) return `${percent.toFixed(0)} %`;
  if (percent >= 0.095) return `${percent.toFixed(1)} %`;
  return `${Math.max(percent, 0.01).toFixed(2)} %`;
}

export function secondsText(s: number): string {
  if (s < 0) return `-${secondsText(-s)}`;
  if (s < 0.99995) return `${numberText(s * 1e3)} ms`;
  if (s < 99.995) return `${numberText(s)} s`;
  const whole = Math.round(s);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

// Without the zeros of a round number: "20 ms", "2 s".
export const roundText = (s: number): string => secondsText(s).replace(/\.0+(?= )|(\.\d*?[1-9])0+(?= )/, "$1");

// A time on an axis: in the unit of its neighbours, so that an axis has one unit.
export function axisText(s: number, ticks: number[]): string {
  const most = Math.max(...ticks.map(Math.abs));
  const whole = (t: number) => roundText(t).replace(/ 0 (s|min)$/, "");
  if (most >= 100) return s === 0 ? "0" : s < 0 ? `-${whole(-s)}` : whole(s);
  if (most < 1) return `${Number((s * 1e3).toFixed(3))} ms`;
  return `${Number(s.toFixed(6))} s`;
}

export function bytesText(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`;
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = bytes / 1024;
  let unit = 0;
  for (; value >= 999.95 && unit + 1 < units.length; ++unit) value /= 1024;
  return `${value.toFixed(value < 99.95 ? 1 : 0)} ${units[unit]}`;
}

// 1 234 567 with narrow spaces, which do not break.
export const countText = (count: number): string =>
  String(count).replace(/\B(?=(\d{3})+$)/g, "\u202f");

export function intervalText(low: number, high: number): string {
  return `${joulesText(low)} to ${joulesText(high)}`;
}

// An error relative to its figure; in joules of one that is not positive, or of more than ten times it.
const widthText = (error: number, of: number): string =>
  of > 0 && Math.abs(error) < 10 * of ? percentText(error / of) : joulesText(Math.abs(error));

// Half of a symmetric interval.
export const errorText = (error: number, of: number): string => `±${widthText(error, of)}`;

// How far an interval reaches below its figure and above it. One that begins at 0 was cut off there, as no
// energy is negative: below it then reaches as far as above, at least to 0.
function sidesOf([low, high]: [number, number], of: number): [number, number] {
  const above = high - of;
  return [low > 0 ? of - low : Math.max(of, above), above];
}

// The wider side of an interval.
export const errorOf = (interval: [number, number], of: number): number => Math.max(...sidesOf(interval, of));

// Of an interval that may reach further on one side: "±5.0 %" or "-3.9 % +9.4 %".
export function intervalErrorText(interval: [number, number], of: number): string {
  const [below, above] = sidesOf(interval, of);
  const width = (joules: number) => widthText(joules, of);
  const narrow = Math.min(below, above);
  const wide = Math.max(below, above);
  // Nearly symmetric: with the wider side.
  if ((narrow >= 0 && wide <= 1.1 * narrow) || width(below) === width(above)) return `±${width(wide)}`;
  return `${below < 0 ? "+" : "-"}${width(below)} ${above < 0 ? "-" : "+"}${width(above)}`;
}

// CPU time, which is read in ticks of 10 ms: of a process and its children, in the kernel and outside of it.
export const cpuText = (s: number): string => (s === 0 ? "<40 ms" : secondsText(s));

const SECONDS: Record<string, number> = { ms: 1e-3, s: 1, m: 60, min: 60, h: 3600, d: 86400 };

// A time as it is read on an axis, or as the tool takes it: "12.5", "28m35s", "28 min 35 s", "1h 2m", "500ms".
// Null where it is none.
export function parseTime(text: string): number | null {
  const trimmed = text.trim().replace(/\u2212/g, "-").toLowerCase();
  if (/^[-+]?(\d+\.?\d*|\.\d+)$/.test(trimmed)) return Number(trimmed);
  const part = /\s*(\d+\.?\d*|\.\d+)\s*(ms|min|m|s|h|d)/y;
  const body = trimmed.replace(/^[-+]/, "");
  let sum = 0;
  let at = 0;
  while (at < body.length) {
    part.lastIndex = at;
    const found = part.exec(body);
    if (!found) return null;
    sum += Number(found[1]) * SECONDS[found[2]];
    at = part.lastIndex;
  }
  return body === "" ? null : trimmed.startsWith("-") ? -sum : sum;
}
