import { describe, expect, it } from "vitest";
import { partsOf, sentenceOf } from "../src/balance";
import { readPage, SCHEMA, type Page, type PowerTrack } from "../src/data";
import { kindOf, shortName } from "../src/kinds";
import { energyOf, powerAt } from "../src/part";
import { domain, process, tracedPage } from "./fixture";

const track: PowerTrack = {
  id: 0, begin_seconds: -1, end_seconds: 2.5, step_seconds: 1, resolution_seconds: 1,
  energy_microjoules: [10e6, 100e6, 300e6, 50e6], error_microjoules: [1e6, 5e6, 15e6, 3e6],
  repeatability_microjoules: [3e6, 4e6, 5e6, 6e6], calibration_ratio: 0.05,
};

describe("energyOf", () => {
  it("sums the steps of which half is selected", () => {
    const got = energyOf(track, { begin: 0.4, end: 1.6 })!;
    expect([got.begin, got.end, got.joules, got.watts]).toEqual([0, 2, 400, 200]);
    expect(got.repeatability).toBeCloseTo(Math.hypot(3, 5), 9);
    // The steps' own errors: 5 and 15; with the errors of both ends it would be hypot(3, 5, 20).
    expect(got.error).toBeCloseTo(20, 9);
  });
  it("has an interval that does not grow with the time before the selection", () => {
    const hour: PowerTrack = {
      id: 0, begin_seconds: 0, end_seconds: 3600, step_seconds: 2, resolution_seconds: 1,
      energy_microjoules: Array(1800).fill(800e6), error_microjoules: Array(1800).fill(41e6),
      // What an error that repeats in each step becomes, added up from the first.
      repeatability_microjoules: Array.from({ length: 1800 }, (_, i) => (i + 1) * 9e6), calibration_ratio: 0.05,
    };
    const early = energyOf(hour, { begin: 0, end: 10 })!;
    const late = energyOf(hour, { begin: 3540, end: 3550 })!;
    expect([early.joules, late.joules]).toEqual([4000, 4000]);
    expect(late.error).toBeCloseTo(205, 6);
    expect(early.error).toBeLessThanOrEqual(late.error);
  });
  it("ends with the short last step", () => {
    const got = energyOf(track, { begin: 1.9, end: 99 })!;
    expect([got.begin, got.end, got.joules, got.watts]).toEqual([2, 2.5, 50, 100]);
  });
  it("is absent where nothing was read", () => {
    expect(energyOf(track, { begin: 0.1, end: 0.2 })).toBeNull();
    expect(energyOf({ ...track, energy_microjoules: [1, null, 1, 1] }, { begin: -1, end: 2 })).toBeNull();
    expect(energyOf(track, { begin: 10, end: 12 })).toBeNull();
  });
});

describe("powerAt", () => {
  it("is the mean of the step", () => {
    expect(powerAt(track, 1.5)!.watts).toBe(300);
    expect(powerAt(track, 2.2)!.watts).toBe(100);
    expect(powerAt(track, -2)).toBeNull();
    expect(powerAt(track, 9)).toBeNull();
  });
});

describe("partsOf", () => {
  const sum = (parts: { joules: number }[]) => parts.reduce((s, p) => s + Math.round(p.joules * 1e6), 0);

  it("sum to the energy, with kernels and idle between launches of their own", () => {
    const page = tracedPage();
    const d = domain({
      energy_joules: 100, held_joules: 10,
      balance: { rest_joules: 40, idle_joules: null, processes_joules: 55, others_joules: 1, unattributed_joules: 4 },
    });
    page.profile.processes = [process({
      energy_joules: 55,
      energy: [{ id: 0, energy_joules: 55, kernels_joules: 40, idle_between_launches_joules: 5, held_joules: 10 }],
    })];
    const parts = partsOf(page.profile, d);
    expect(sum(parts)).toBe(100e6);
    expect(parts.map((p) => p.kind)).toEqual(["rest", "held", "kernels", "between", "others", "unattributed"]);
  });

  it("have held energy of no process as a part of its own", () => {
    const d = domain({
      energy_joules: 100, held_joules: 30, held_interval_joules: [28, 32],
      balance: {
        rest_joules: 40, idle_joules: null, processes_joules: 25, others_joules: 1,
        held_unowned_joules: 30, unattributed_joules: 4,
      },
    });
    const parts = partsOf(tracedPage().profile, d);
    expect(sum(parts)).toBe(100e6);
    expect(parts.find((p) => p.kind === "unowned")).toMatchObject({ joules: 30, interval: [28, 32] });
    expect(parts.at(-1)).toMatchObject({ kind: "unattributed", joules: 4 });
  });

  it("keep the sign of unattributed energy", () => {
    const d = domain({
      energy_joules: 100,
      balance: { rest_joules: 40, idle_joules: null, processes_joules: 65, others_joules: 0, unattributed_joules: -5 },
    });
    const parts = partsOf(tracedPage().profile, d);
    expect(sum(parts)).toBe(100e6);
    expect(parts.at(-1)).toMatchObject({ kind: "unattributed", joules: -5 });
  });

  it("are one part where nothing is known, and none without energy", () => {
    expect(partsOf(tracedPage().profile, domain({ energy_joules: 7 }))).toMatchObject([{ label: "energy", joules: 7 }]);
    expect(partsOf(tracedPage().profile, domain({}))).toEqual([]);
  });
});

describe("sentenceOf", () => {
  const about = (unattributed: number) => {
    const page = tracedPage();
    page.profile.domains = [domain({
      energy_joules: 100, interval_joules: [95, 105],
      balance: { rest_joules: 40, idle_joules: null, processes_joules: 60 - unattributed, others_joules: 0, unattributed_joules: unattributed },
    })];
    return sentenceOf(page);
  };
  it("names the parts while they exceed the measured energy within its error", () => {
    expect(about(4)).toBe("40 % of gpu0's energy is what it draws anyway: rest 40.00 J; your processes 56.00 J.");
    expect(about(-4)).toBe("40 % of gpu0's energy is what it draws anyway: rest 40.00 J; your processes 64.00 J.");
  });
  it("names none of them where they exceed it by more", () => {
    expect(about(-6)).toBe("The split of gpu0's energy is unreliable: its parts exceed what was measured by 6.000 J, more than its error.");
  });
});

describe("readPage", () => {
  it("has a message for every damage", () => {
    for (const text of ["", "{", "null", "[]", '{"schema":"other/1"}', `{"schema":"${SCHEMA}"}`]) {
      expect(() => readPage(text)).toThrow(/data block of this file is/);
    }
  });
  it("unpacks rows and replaces marks that turn the direction of writing", () => {
    const page = JSON.parse(JSON.stringify(tracedPage()));
    const packed = { keys: ["number", "name"], rows: [[0, "a\u202eb"]] };
    for (const tables of Object.values<{ rows: unknown }[]>(page.activity)) tables[0].rows = packed;
    const read = readPage(JSON.stringify(page)) as Page;
    expect(read.activity!.kernel[0].rows).toEqual([{ number: 0, name: "a\ufffdb" }]);
  });
});

describe("names of kernels", () => {
  it("have a kind", () => {
    const kinds = [
      "ncclDevKernel_AllReduce_Sum_f32", "memcpy HtoD", "flash_fwd_kernel", "vectorized_layer_norm_kernel",
      "sm90_xmma_gemm_bf16", "softmax_warp_forward", "vectorized_elementwise_kernel", "my_own",
    ].map(kindOf);
    expect(kinds).toEqual(
      ["collective", "copy", "attention", "normalisation", "gemm", "reduction", "elementwise", "other"]);
  });
  it("are shortened without their parameters", () => {
    expect(shortName("void at::native::vectorized_elementwise_kernel<4, int>(int, float)"))
      .toBe("vectorized_elementwise_kernel<4, int>");
    expect(shortName("(anonymous namespace)::k(int)")).toBe("k");
  });
});
