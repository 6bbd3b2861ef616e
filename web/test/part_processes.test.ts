import { describe, expect, it } from "vitest";
import type { Page } from "../src/data";
import { processesOf, processReason, shareWords } from "../src/part";
import { domain, process, slicedPage } from "./fixture";

const share = (id: number, joules: number) =>
  ({ id, energy_joules: joules, kernels_joules: null, idle_between_launches_joules: null, held_joules: null });

function processPage(): Page {
  const page = slicedPage();
  page.profile.domains.push(domain({ id: 1, domain: "gpu_memory", parent: 0 }));
  page.profile.processes = [
    process({ pid: 1, energy_joules: 100, energy: [share(0, 100), share(1, 10)] }),
    process({ pid: 2, energy_joules: 9, energy: [share(0, 9)] }),
    process({ pid: 3, energy_joules: 1e-6, energy: [share(0, 1e-6)] }),
  ];
  page.process_slices = {
    begin_seconds: 0, step_seconds: 1, count: 4,
    energy: [[0, 0, 1e6, 0, [10, 20, 30, 40]], [0, 1, 1e6, 0, [1, 2, 3, 4]], [1, 0, 1e3, 2, [4000, 5000]]],
    cpu: [[1, 3, [250]]],
  };
  return page;
}

describe("processesOf", () => {
  it("sums the slices of which half is selected", () => {
    const part = processesOf(processPage(), { begin: 0.6, end: 2.9 })!;
    expect([part.begin, part.end, part.step]).toEqual([1, 3, 1]);
    expect(part.processes[0].joules.get(0)).toBe(50);
    expect(part.processes[1].joules.get(0)).toBe(4);
    expect(part.processes[1].cpuSeconds).toBe(0);
  });
  it("counts a domain within another one once", () => {
    expect(processesOf(processPage(), { begin: 0, end: 4 })!.processes[0].total).toBe(100);
  });
  it("has no energy of a process that is not held by time", () => {
    const last = processesOf(processPage(), { begin: 0, end: 4 })!.processes[2];
    expect(last.total).toBeNull();
    expect(last.joules.size).toBe(0);
    expect(last.cpuSeconds).toBeNull();
  });
  it("has no sum where one of its devices is not held by time", () => {
    const page = processPage();
    page.process_slices!.energy.shift();
    expect(processesOf(page, { begin: 0, end: 4 })!.processes[0].total).toBeNull();
  });
  it("names what the shares are of", () => {
    const page = processPage();
    expect(shareWords(page)).toBe("dynamic energy");
    page.profile.domains[0].shares_include_rest = true;
    page.labels = ["gpu0", "gpu0 memory"];
    expect(shareWords(page)).toBe("dynamic energy (with that at rest of gpu0)");
    page.profile.domains[1].shares_include_rest = true;
    expect(shareWords(page)).toBe("energy, that at rest included");
  });
  it("says why the table is that of the whole run", () => {
    const page = processPage();
    expect(processesOf(page, { begin: 0.6, end: 0.9 })).toBeNull();
    expect(processReason(page.process_slices)).toMatch(/half of a slice of 1/);
    page.process_slices = null;
    expect(processesOf(page, { begin: 0, end: 4 })).toBeNull();
    expect(processReason(null)).toMatch(/no energies of processes/);
  });
});
