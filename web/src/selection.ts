// Energy of a selected interval, from the steps of a power track.
import type { PowerTrack } from "./data";

export interface Selection {
  begin: number; // seconds since the command's start
  end: number;
}

export interface Selected {
  begin: number; // of the steps that the selection covers
  end: number;
  joules: number;
  // Half of the 95 % interval; an upper bound.
  error: number;
  repeatability: number;
  watts: number;
}

interface Slices {
  begin_seconds: number;
  step_seconds: number;
  count: number;
}

// The slices of which at least half lies in the selection, one past the last second; null where there
// is none.
export function covered(slices: Slices, selection: Selection): [number, number] | null {
  const place = (t: number) => Math.round((t - slices.begin_seconds) / slices.step_seconds);
  const first = Math.max(place(selection.begin), 0);
  const last = Math.min(place(selection.end), slices.count);
  return last > first ? [first, last] : null;
}

const stepEnd = (track: PowerTrack, step: number) =>
  Math.min(track.begin_seconds + (step + 1) * track.step_seconds, track.end_seconds);

// The steps of which at least half lies in the selection; absent where there is none, or one of them
// was not read. Two bounds hold for the error of a sum of steps: the sum of their own errors, and the
// errors of the energies from the first step to its two ends. The second grows with the time before
// the selection, so that the smaller one counts.
export function energyOf(track: PowerTrack, selection: Selection): Selected | null {
  const place = (t: number) => Math.round((t - track.begin_seconds) / track.step_seconds);
  const count = track.energy_microjoules.length;
  const first = Math.max(place(selection.begin), 0);
  const last = Math.min(place(selection.end), count) - 1;
  if (last < first) return null;
  let microjoules = 0;
  let errors = 0;
  for (let i = first; i <= last; ++i) {
    const step = track.energy_microjoules[i];
    if (step === null) return null;
    microjoules += step;
    errors += track.error_microjoules[i] ?? Infinity;
  }
  const begin = track.begin_seconds + first * track.step_seconds;
  const end = stepEnd(track, last);
  const at = (i: number) => (i < 0 ? 0 : (track.repeatability_microjoules[i] ?? 0) / 1e6);
  const joules = microjoules / 1e6;
  const repeatability = Math.min(Math.hypot(at(first - 1), at(last)), errors / 1e6);
  return {
    begin, end, joules, repeatability, watts: joules / (end - begin),
    error: Math.min(Math.hypot(repeatability, track.calibration_ratio * joules), errors / 1e6),
  };
}

// The mean power at a time, with the extremes of its step where they are known.
export function powerAt(track: PowerTrack, t: number) {
  const step = Math.floor((t - track.begin_seconds) / track.step_seconds);
  const microjoules = track.energy_microjoules[step];
  if (step < 0 || microjoules === undefined || microjoules === null) return null;
  const length = stepEnd(track, step) - (track.begin_seconds + step * track.step_seconds);
  return {
    watts: microjoules / 1e6 / length,
    low: track.low_watts?.[step] ?? null,
    high: track.high_watts?.[step] ?? null,
  };
}
