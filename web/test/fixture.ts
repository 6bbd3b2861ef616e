// A small page: one traced GPU with two phases, layers in layers, and two kernels.
import type { Activity, Domain, Page, Process, Row } from "../src/data";

export function domain(of: Partial<Domain>): Domain {
  return {
    id: 0, domain: "gpu", device: "gpu0", name: null, parent: null, provenance: "measured",
    energy_joules: null, interval_joules: null, repeatability_joules: null, rest_joules: null,
    rest_interval_joules: null, held_joules: null, held_interval_joules: null, active_joules: null,
    active_interval_joules: null, levels_reason: null, mean_watts: null, peak_watts: null,
    sensor: null, method: null, reason: null,
    balance: {
      rest_joules: null, idle_joules: null, processes_joules: null, others_joules: null,
      unattributed_joules: null,
    },
    ...of,
  };
}

export function row(of: Partial<Row>): Row {
  return {
    number: 0, parent: null, name: "row", detail: null, calls: null, launches: 1, busy_seconds: 1,
    provenance: "estimated", energy_joules: null, interval_joules: null, inclusive_joules: null,
    inclusive_interval_joules: null, energy_per_launch_joules: null, mean_watts: null,
    share_ratio: null, resolvable: true, group: null, group_joules: null, reason: null, ...of,
  };
}

export function activity(rows: Row[], of: Partial<Activity> = {}): Activity {
  return {
    device: "gpu0", name: null, domain: "gpu", provenance: "measured", measured_joules: 100,
    idle_joules: 40, rest_joules: null, held_joules: null, kernels_joules: 50,
    idle_between_launches_joules: 5, others_joules: 0, unattributed_joules: 5, rows,
    rows_left_out: 0, warnings: [], ...of,
  };
}

export function process(of: Partial<Process>): Process {
  return {
    pid: 1, own_pid: null, name: "python", command_line: null, cpu_seconds: null, energy_joules: null,
    provenance: "estimated", energy: [], peak_pss_bytes: null, peak_gpu_memory_bytes: null, ...of,
  };
}

export function tracedPage(): Page {
  const kernels = [row({ number: 0, name: "gemm_a" }), row({ number: 1, name: "copy", resolvable: false })];
  const layers = [
    row({ number: 0, name: "model" }),
    row({ number: 1, name: "model.block", parent: 0 }),
  ];
  return {
    schema: "jouleprof.page/1", version: "1", file: null, redacted: false, labels: ["gpu0"],
    profile: {
      duration_seconds: 2, simulated: false,
      total: { provenance: "measured", energy_joules: 100, interval_joules: [95, 105], of: [0] },
      domains: [domain({ energy_joules: 100 })], processes: [], windows: [], findings: [],
    },
    activity: {
      kernel: [activity(kernels)], layer: [activity(layers)], range: [activity([])],
      phase: [activity([row({ number: 0, name: "forward" }), row({ number: 1, name: "backward" })])],
    },
    stacks: [{
      id: 0, device: "gpu0", phases: ["", "forward", "backward", "optimizer"],
      stacks: [
        [1, 1, null, 0, 10, 1_000_000_000, 30_000_000],
        [1, 0, null, 1, 2, 500_000_000, 5_000_000],
        [2, null, null, 0, 5, 500_000_000, 15_000_000],
      ],
      processes: [],
    }],
    slices: [],
    process_slices: null,
    timeline: null,
  };
}

// Two kernels over four slices of 1 s, of which the first begins before the command.
export function slicedPage(): Page {
  const page = tracedPage();
  page.slices = [{
    id: 0, begin_seconds: -1, step_seconds: 1, count: 4,
    kernel: [[0, 1e6, [0, 10, 20, 30], 0.1, 1, null], [1, 1e3, [5, 0, -5, 0], 0, 0, [9, 9, 9, 9]]],
    layer: [], range: [], phase: [],
  }];
  page.timeline = {
    begin_seconds: 0, end_seconds: 3,
    power: [{
      id: 0, begin_seconds: -1, end_seconds: 3, step_seconds: 0.5, resolution_seconds: 0.5,
      energy_microjoules: Array(8).fill(50e6), error_microjoules: Array(8).fill(1e6),
      repeatability_microjoules: Array(8).fill(1e6), calibration_ratio: 0.05,
    }],
    gauges: [], clock_limits: [], replays: [], windows: { lanes: 1, request_lanes: 0, in_flight: null, names: ["a", "b"], blocks: [] },
  };
  return page;
}
