// The tables of a selected part of the time.
import { useMemo } from "preact/hooks";
import type { By, Page, Process, Row } from "./data";
import { kindOf, shortName } from "./kinds";
import { isResolved, reasonOf, windowsOf, type Part, type PartEnergy, type PartWindows } from "./part";
import { shareProvenance, shareWords, type PartProcess, type PartProcesses } from "./part";
import { countText, cpuText, errorText, joulesText, percentText, roundText, secondsText } from "./quantity";
import type { Selection } from "./part";
import type { Column } from "./table";
import { Table } from "./table";

interface Filter {
  filter: string;
  onFilter: (words: string) => void;
}

type PartRow = Row & { device: string; badge: string; part: PartEnergy | null; missing: string | null };

const wholeOf = (r: Row) => r.inclusive_joules ?? r.energy_joules;
const isKnown = (r: PartRow) => r.part !== null && r.resolvable !== false && isResolved(r.part);

function showEnergy(r: PartRow): string {
  if (!r.part) return "unavailable";
  return isKnown(r) ? joulesText(r.part.joules) + (r.badge && ` ${r.badge}`) : `not resolvable, ≤${joulesText(r.part.joules + r.part.error)}`;
}

function rowColumns(by: By, devices: number, badges: boolean): Column<PartRow>[] {
  return [
    { key: "name", title: by, wide: true, value: (r) => r.name, show: (r) => (by === "kernel" ? shortName(r.name) : r.name),
      below: (r) => (by === "kernel" ? r.detail : null) },
    { key: "device", title: "device", hidden: devices < 2, value: (r) => r.device },
    { key: "selection_joules", title: "energy of selection", numeric: true, value: (r) => r.part?.joules ?? null, show: showEnergy,
      help: "active energy: above rest and held; with parts",
      unsure: (r) => !isKnown(r),
      low: (r) => r.part && r.part.joules - r.part.error, high: (r) => r.part && r.part.joules + r.part.error },
    { key: "selection_error_joules", title: "95 %, at most", numeric: true, value: (r) => r.part?.error ?? null,
      show: (r) => (r.part && isKnown(r) ? errorText(r.part.error, r.part.joules) : "") },
    { key: "selection_share_ratio", title: "share of selection", numeric: true, help: "of the device's measured energy of the same time",
      value: (r) => r.part?.share ?? null, show: (r) => (isKnown(r) && r.part!.share !== null ? percentText(r.part!.share) : "") },
    { key: "device_provenance", title: "provenance of the device's energy", hidden: !badges, value: (r) => (r.badge ? r.badge.toLowerCase() : "measured") },
    { key: "kind", title: "kind", hidden: by !== "kernel", value: (r) => kindOf(r.name) },
    { key: "whole_joules", title: "energy, whole run", numeric: true, value: wholeOf,
      show: (r) => { const e = wholeOf(r); return e === null || r.resolvable === false ? "" : joulesText(e); } },
    { key: "reason", title: "reason", value: (r) => r.missing },
  ];
}

export function PartRows({ page, by, part, ...filter }: { page: Page; by: By; part: Part } & Filter) {
  const devices = page.activity![by];
  const rows = useMemo(() => devices.flatMap((d, i) => d.rows.map((row): PartRow => {
    const own = part.rows[by][i]?.get(row.number) ?? null;
    return { ...row, device: d.device, badge: d.provenance === "measured" ? "" : d.provenance.toUpperCase(), part: own, missing: own ? row.reason : reasonOf(page, d, row) };
  })), [page, by, part]);
  const columns = useMemo(() => rowColumns(by, devices.length, rows.some((r) => r.badge)), [page, by]);
  return (
    <>
      <p class="soft">
        Energies of {secondsText(part.begin)} to {secondsText(part.end)}, the slices of {roundText(part.step)} that lie in the
        selection. The interval is an upper bound.
      </p>
      <Table key={`part-${by}-${rows.some((r) => r.missing)}`} name={`${by}s of the selection`} rows={rows} columns={columns}
        order={{ key: "selection_joules", down: true }} {...filter} />
    </>
  );
}

function windowColumns(page: Page): Column<PartWindows>[] {
  const counted = page.profile.total.of;
  return [
    { key: "name", title: "window", value: (w) => w.name },
    { key: "count", title: "number", numeric: true, value: (w) => w.count, show: (w) => countText(w.count) },
    { key: "total_seconds", title: "time", numeric: true, value: (w) => w.seconds, show: (w) => (w.seconds === null ? "" : secondsText(w.seconds)) },
    ...page.profile.domains.flatMap((d, i): Column<PartWindows>[] => {
      const of = (w: PartWindows) => w.energies.get(d.id) ?? null;
      const label = page.labels[i];
      const hidden = counted.length > 0 && !counted.includes(d.id);
      return [
        { key: `${label}_joules`, title: label, numeric: true, hidden, value: (w) => of(w)?.joules ?? null,
          show: (w) => { const e = of(w); return e ? joulesText(e.joules) + (d.provenance === "measured" ? "" : ` ${d.provenance.toUpperCase()}`) : ""; },
          low: (w) => { const e = of(w); return e && Math.max(e.joules - e.error, 0); },
          high: (w) => { const e = of(w); return e && e.joules + e.error; } },
        { key: `${label}_error_joules`, title: `${label} 95 %, at most`, numeric: true, hidden, value: (w) => of(w)?.error ?? null,
          show: (w) => { const e = of(w); return e ? errorText(e.error, e.joules) : ""; } },
      ];
    }),
    { key: "reason", title: "reason", value: (w) => w.reason },
  ];
}

export function PartWindowTable({ page, selection, ...filter }: { page: Page; selection: Selection } & Filter) {
  const rows = useMemo(() => [...windowsOf(page, selection).values()], [page, selection]);
  const columns = useMemo(() => windowColumns(page), [page]);
  const imported = page.profile.windows.some((w) => w.imported);
  return (
    <>
      <p class="soft">
        Windows that begin in the selection, each as a whole. Intervals are upper bounds.
        {imported ? " Imported windows are not among them." : ""}
      </p>
      {rows.length > 0
        ? <Table key={`part-window-${rows.some((w) => w.reason)}`} name="windows of the selection" rows={rows} columns={columns} {...filter} />
        : <p>No window begins in the selection.</p>}
    </>
  );
}

type PartProcessRow = Process & { part: PartProcess; missing: string | null };

const LITTLE = "too little energy to be held by time";

function processColumns(page: Page): Column<PartProcessRow>[] {
  const energy = (joules: number | null | undefined) => (joules === null || joules === undefined ? "" : joulesText(joules));
  return [
    { key: "pid", title: "pid", numeric: true, value: (p) => p.pid },
    { key: "name", title: "name", value: (p) => p.name },
    { key: "selection_joules", title: `${shareWords(page)} of selection, ${shareProvenance(page)}`, numeric: true, value: (p) => p.part.total,
      show: (p) => energy(p.part.total) },
    ...page.profile.domains
      .map((d, i) => ({ d, label: page.labels[i] }))
      .filter(({ d }) => page.profile.processes.some((p) => p.energy.some((e) => e.id === d.id)))
      .map(({ d, label }): Column<PartProcessRow> => ({
        key: `selection_${label}_joules`, title: label, numeric: true, value: (p) => p.part.joules.get(d.id) ?? null,
        show: (p) => energy(p.part.joules.get(d.id)),
      })),
    { key: "selection_cpu_seconds", title: "CPU time of selection", numeric: true, value: (p) => p.part.cpuSeconds,
      show: (p) => (p.part.cpuSeconds === null ? "" : cpuText(p.part.cpuSeconds)) },
    { key: "whole_joules", title: "energy, whole run", numeric: true, value: (p) => p.energy_joules, show: (p) => energy(p.energy_joules) },
    { key: "command_line", title: "command line", hidden: page.redacted, value: (p) => p.command_line },
    { key: "reason", title: "reason", value: (p) => p.missing },
  ];
}

export function PartProcessTable({ page, part, ...filter }: { page: Page; part: PartProcesses } & Filter) {
  const rows = useMemo(() => page.profile.processes.map((p, i): PartProcessRow => ({
    ...p, part: part.processes[i],
    missing: part.processes[i].total !== null ? null : p.energy_joules === null ? "no energy was attributed to it" : LITTLE,
  })), [page, part]);
  const columns = useMemo(() => processColumns(page), [page]);
  return (
    <>
      <p class="soft">
        {secondsText(part.begin)} to {secondsText(part.end)}, the slices of {roundText(part.step)} that lie in the selection.
        Energy is divided among processes by the rules of the whole run. The error of the division is not known.
      </p>
      <Table key={`part-process-${rows.some((r) => r.missing)}`} name="processes of the selection" rows={rows} columns={columns}
        order={{ key: "selection_joules", down: true }} {...filter} />
    </>
  );
}
