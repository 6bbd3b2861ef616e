// Data of pages that are not of one run: comparisons, sweeps, benchmarks, jobs (docs/json.md).
import type { Interval, Profile } from "./data";

export type Verdict = "lower" | "higher" | "same" | "inconclusive";

export interface Difference {
  name: string;
  detail: string | null;
  before_joules?: number | null;
  after_joules?: number | null;
  before_seconds?: number | null;
  after_seconds?: number | null;
  before_watts?: number | null;
  after_watts?: number | null;
  change_ratio: number | null;
  interval_ratio: Interval;
  sensor_noise_ratio: number | null;
  p: number | null;
  verdict: Verdict;
  reason: string;
}

export interface Unmatched {
  side: "before" | "after";
  name: string;
  detail: string | null;
  count: number;
  energy_joules: number | null;
  reason: string | null;
}

export interface Comparison {
  energy: Difference;
  time: Difference;
  power: Difference;
  by: string;
  rows: Difference[];
  unmatched: Unmatched[];
  same_within_ratio: number;
}

export interface ComparedRun {
  energy_joules: number | null;
  seconds: number | null;
  curves: { domain: string; step_seconds: number; watts: (number | null)[] }[];
}

export interface ComparedRuns {
  before: ComparedRun[];
  after: ComparedRun[];
}

export interface SweepPoint {
  setting: number;
  samples: { seconds: number; energy_joules: number }[];
  seconds: number;
  energy_joules: number;
  mean_watts: number;
  slowdown_ratio: number;
  slowdown_interval_ratio: Interval;
  saving_ratio: number;
  saving_interval_ratio: Interval;
  feasible: boolean;
  on_pareto_front: boolean;
  probability_of_best_ratio: number | null;
}

export interface Sweep {
  knob: string;
  labels: { name: string; value: string }[];
  recommended: number | null;
  reference: number | null;
  equal_within_error: number[];
  points: SweepPoint[];
}

export interface SweepRun {
  setting: number;
  sm_clock_megahertz: number | null;
  temperature_celsius: number | null;
  sm_utilisation_ratio: number | null;
  memory_utilisation_ratio: number | null;
}

export interface JoulesPer {
  energy_joules: number;
  interval_joules: [number, number];
  provenance: string;
}

export interface BenchRow {
  phase: string | null;
  unit: string;
  count: number;
  device: JoulesPer | null;
  total: JoulesPer | null;
  rest: JoulesPer | null;
  held: JoulesPer | null;
  active: JoulesPer | null;
}

export interface BenchCase {
  workload: string;
  mode: string;
  batch: number;
  energy_device: string | null;
  latency: {
    median_seconds: number;
    p50_seconds: number;
    p90_seconds: number;
    p99_seconds: number;
    quantiles_of_iterations: number;
    distribution_seconds?: number[];
  };
  energy: { per: BenchRow[]; profile: Profile } | null;
  energy_reason: string | null;
}

export interface JobDomain {
  name: string;
  counted: boolean;
  energy_joules: number | null;
  interval_joules: Interval;
  provenance: string;
  reason: string | null;
}

export interface JobHost {
  host: string;
  recordings: string[];
  recorded_seconds: number;
  energy_joules: number | null;
  interval_joules: Interval; // the upper end is null where a device was lost
  provenance: string;
  domains: JobDomain[];
}

export interface JobRank {
  rank: number | null;
  host: string | null;
  recording: string;
  seconds: number;
  cpu_seconds: number | null;
  dynamic_joules: number | null;
  held_joules: number | null;
  kernels_joules: number | null;
  idle_between_launches_joules: number | null;
  collective_waiting_seconds: number | null;
  collective_waiting_joules: number | null;
  collective_transfer_seconds: number | null;
  collective_transfer_joules: number | null;
  imbalance_ratio: number | null;
}

export interface Results {
  schema: string;
  version: string;
  comparison?: Comparison;
  compared_runs?: ComparedRuns;
  recommendation?: { objective: string; gpus: string | null; sweeps: Sweep[] };
  sweep_runs?: SweepRun[];
  bench?: { cases: BenchCase[] };
  job?: { hosts: JobHost[]; ranks: JobRank[] };
  evidence?: object; // shown without a script
}
