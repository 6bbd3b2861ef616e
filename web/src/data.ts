// The data block that the tool writes (src/report/html/page_data.cpp), and how it is read.
import type { Results } from "./results";

export type Interval = [number, number] | null;

export interface Domain {
  id: number;
  domain: string;
  device: string;
  name: string | null;
  parent: number | null;
  provenance: string;
  energy_joules: number | null;
  interval_joules: Interval;
  repeatability_joules: number | null;
  rest_joules: number | null;
  rest_interval_joules: Interval;
  held_joules: number | null;
  held_interval_joules: Interval;
  shares_include_rest?: boolean | null;
  active_joules: number | null;
  active_interval_joules: Interval;
  levels_reason: string | null;
  mean_watts: number | null;
  peak_watts: number | null;
  sensor: string | null;
  method: string | null;
  reason: string | null;
  balance: Record<string, number | null>;
}

export interface ProcessShare {
  id: number;
  energy_joules: number;
  kernels_joules: number | null;
  idle_between_launches_joules: number | null;
  held_joules: number | null;
}

export interface Process {
  pid: number;
  own_pid: number | null;
  name: string;
  command_line: string | null;
  cpu_seconds: number | null;
  energy_joules: number | null;
  provenance: string;
  energy: ProcessShare[];
  peak_pss_bytes: number | null;
  peak_gpu_memory_bytes: number | null;
}

export interface WindowEnergy {
  id: number;
  count: number;
  provenance: string | null;
  energy_joules: number | null;
  interval_joules: Interval;
  mean_joules: number | null;
  mean_interval_joules: Interval;
  quartiles_joules: [number, number, number] | null;
  reason: string | null;
}

export interface WindowGroup {
  name: string;
  imported: boolean;
  labels: { name: string; value: string }[];
  count: number;
  total_seconds: number;
  mean_seconds: number;
  energy: WindowEnergy[];
}

export interface Finding {
  code: string;
  device: string | null;
  text: string;
  next_step: string;
  energy_joules: number;
  interval_joules: [number, number];
  share_ratio: number;
  estimated: boolean;
}

export interface Profile {
  duration_seconds: number | null;
  simulated: boolean;
  total: {
    provenance: string;
    energy_joules: number | null;
    interval_joules: Interval;
    of: number[];
  };
  domains: Domain[];
  processes: Process[];
  windows: WindowGroup[];
  windows_left_out?: number;
  findings: Finding[];
}

// A kernel, layer, range or phase.
export interface Row {
  number: number;
  parent: number | null;
  name: string;
  detail: string | null;
  calls: number | null;
  launches: number;
  busy_seconds: number;
  provenance: string;
  energy_joules: number | null;
  interval_joules: Interval;
  inclusive_joules: number | null;
  inclusive_interval_joules: Interval;
  energy_per_launch_joules: number | null;
  mean_watts: number | null;
  share_ratio: number | null;
  resolvable: boolean | null;
  group: number | null;
  group_joules: number | null;
  reason: string | null;
}

export interface Activity {
  device: string;
  name: string | null;
  domain: string;
  provenance: string;
  measured_joules: number;
  idle_joules: number | null;
  rest_joules: number | null;
  held_joules: number | null;
  kernels_joules: number;
  idle_between_launches_joules: number;
  others_joules: number;
  unattributed_joules: number;
  rows: Row[];
  rows_left_out: number;
  warnings: string[];
}

export type By = "kernel" | "layer" | "range" | "phase";

// phase, layer, range, kernel, launches, busy nanoseconds, microjoules
export type Stack = [number, number | null, number | null, number | null, number, number, number];

// One of several traced processes.
export interface ProcessStacks {
  pid: number;
  rank: number | null;
  idle_between_microjoules: number;
  kernels: [number | null, number, number, number][]; // kernel, launches, busy nanoseconds, microjoules
}

export interface DeviceStacks {
  id: number;
  device: string;
  phases: string[];
  stacks: Stack[];
  processes: ProcessStacks[];
}

export interface PowerTrack {
  id: number;
  begin_seconds: number;
  end_seconds: number;
  step_seconds: number;
  resolution_seconds: number;
  energy_microjoules: (number | null)[];
  error_microjoules: (number | null)[]; // of each step: half of its 95 % interval
  repeatability_microjoules: (number | null)[]; // from the first step to each step
  calibration_ratio: number;
  left_out_until_seconds?: number; // readings stamped far after all others, which have no steps
  low_watts?: (number | null)[];
  high_watts?: (number | null)[];
}

// lane, name (-1: several), begin, length, count, [domain, microjoules, error][], and of several
// windows the sum of their lengths
export type Block = [number, number, number, number, number, [number, number, number][] | null, number?];

// number of the row, microjoules of one unit, energies of the slices, error ratio, error more, errors
export type SliceRow = [number, number, number[], number, number, number[] | null];

// Energies by time (src/report/html/slices_json.h).
export type DeviceSlices = Record<By, SliceRow[]> & {
  id: number;
  begin_seconds: number;
  step_seconds: number;
  count: number;
};

// Energies and CPU time of processes by time (src/report/html/process_slices_json.h).
export interface ProcessSlices {
  begin_seconds: number;
  step_seconds: number;
  count: number;
  energy: [number, number, number, number, number[]][]; // process, domain, microjoules of one unit, first, units
  cpu: [number, number, number[]][]; // process, first, milliseconds
}

export interface Timeline {
  begin_seconds: number;
  end_seconds: number;
  power: PowerTrack[];
  gauges: { id: number; quantity: string; times: number[]; values: number[] }[];
  clock_limits: { id: number; begin_seconds: number; end_seconds: number; reasons: string[] }[];
  windows: {
    lanes: number;
    request_lanes: number; // the first ones
    in_flight: { begin_seconds: number; step_seconds: number; means: number[] } | null; // requests at once
    names: string[];
    blocks: Block[];
  };
  replays: [number, number, string | null][];
}

// Requests of inference servers (docs/serving.md).
export interface ServedEnergy {
  energy_joules: number | null; // null: `reason`
  interval_joules: [number, number] | null;
  marginal_joules: number | null;
  prefill_joules: number | null;
  decode_joules: number | null;
  recomputed_joules: number | null;
  rejected_joules: number | null;
  joules_per_token: number | null;
  idle_joules: number | null;
  reason: string | null;
  tokens_in: number;
  tokens_out: number;
  tokens_cached: number;
  steps: number;
  shared_with: number;
}

export interface ServedRequest extends ServedEnergy {
  request: string;
  model: string | null;
  tenant: string | null;
  prefix_of: string | null;
  finish_nanoseconds: number | null;
}

export interface ServedTenant extends ServedEnergy {
  tenant: string | null;
  requests: number;
  requests_without_energy: number;
}

export interface ServedBoard {
  device: string;
  provenance: string;
  energy_joules: number;
  rest_joules: number | null;
  held_joules: number | null;
  idle_joules: number | null;
  between_joules: number | null; // null: not divided
  requests_joules: number | null;
  unattributed_joules: number;
}

export interface Serving {
  simulated: boolean;
  being_written: boolean;
  division: string;
  boards: ServedBoard[];
  requests: ServedRequest[];
  requests_left_out: number;
  tenants: ServedTenant[];
  warnings: string[];
}

export interface Page {
  schema: string;
  version: string;
  file: string | null;
  redacted: boolean;
  labels: string[];
  profile: Profile;
  activity: Record<By, Activity[]> | null;
  stacks: DeviceStacks[];
  slices: DeviceSlices[];
  process_slices: ProcessSlices | null;
  timeline: Timeline | null;
  serving?: Serving | null;
}

export const SCHEMA = "jouleprof.page/1";

interface Packed {
  keys: string[];
  rows: unknown[][];
}

function unpack<T>(packed: Packed): T[] {
  return packed.rows.map(
    (cells) => Object.fromEntries(packed.keys.map((key, i) => [key, cells[i]])) as unknown as T,
  );
}

// Marks that turn the direction of writing would let one name look like another.
const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

// Of one run; else of a comparison, a sweep, a benchmark or a job.
export const isRun = (page: Page | Results): page is Page => Boolean((page as Page).profile?.domains);

// Throws an Error, whose message is for the reader, where the block is damaged.
export function readPage(text: string): Page | Results {
  let page: Page | Results;
  try {
    page = JSON.parse(text.replace(TURNING, "\ufffd")) as Page | Results;
  } catch (error) {
    throw new Error(`The data block of this file is damaged (${(error as Error).message}).`);
  }
  const wrong = () => new Error(`The data block of this file is not of the kind ${SCHEMA}.`);
  if (page?.schema !== SCHEMA) throw wrong();
  if (!isRun(page)) {
    if (!page.comparison && !page.recommendation && !page.bench && !page.job && !page.evidence) throw wrong();
    return page;
  }
  for (const devices of Object.values(page.activity ?? {})) {
    for (const device of devices) device.rows = unpack<Row>(device.rows as unknown as Packed);
  }
  if (page.serving) page.serving.requests = unpack<ServedRequest>(page.serving.requests as unknown as Packed);
  return page;
}
