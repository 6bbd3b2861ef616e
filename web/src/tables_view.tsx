// Every table of the recording, one at a time.
import { useMemo } from "preact/hooks";
import type { Activity, By, Interval, Page, Process, Row, WindowGroup } from "./data";
import { treeRows, type TreeRow } from "./fold";
import { kindOf, shortName } from "./kinds";
import { processesOf, processReason, shareProvenance, shareWords, wholeReason, type Part, type Selection } from "./part";
import { PartProcessTable, PartRows, PartWindowTable } from "./part_tables";
import { bytesText, countText, cpuText, errorOf, intervalErrorText, joulesText, numberText, percentText, secondsText } from "./quantity";
import { Heading } from "./share";
import { flag, useUrl } from "./state";
import { Table, type Column, type Tree } from "./table";

export type TableName = By | "window" | "process";

// `badge`: of the device's energy, "" where it was measured
type DeviceRow = Row & { device: string; badge: string; at?: TreeRow<Row> };
type GetRow = (row: DeviceRow) => number | null;

const wholeOf: GetRow = (row) => row.inclusive_joules ?? row.energy_joules;
const intervalOf = (row: DeviceRow): Interval => row.inclusive_interval_joules ?? row.interval_joules;
const errorIn = (interval: Interval, of: number | null) => (interval && of !== null ? errorOf(interval, of) : null);

// A figure that is not resolvable is shown by its upper bound.
function showEnergy(row: DeviceRow): string {
  const energy = wholeOf(row);
  const interval = intervalOf(row);
  if (energy === null) return "unavailable";
  if (row.resolvable === false) return interval ? `not resolvable, ≤${joulesText(interval[1])}` : "not resolvable";
  return joulesText(energy) + (row.badge && ` ${row.badge}`);
}

function rowColumns(by: By, devices: number, tree: boolean, launched: boolean, badges: boolean, folds: boolean): Column<DeviceRow>[] {
  const number = { numeric: true };
  const columns: Column<DeviceRow>[] = [
    { key: "name", title: by, wide: true, value: (r) => r.name, show: (r) => (by === "kernel" ? shortName(r.name) : r.name),
      within: (r) => r.at?.short ?? r.name,
      below: (r) => (by === "kernel" ? r.detail : null) },
    { key: "device", title: "device", roomy: true, hidden: devices < 2, value: (r) => r.device },
    { key: "energy_joules", title: tree ? "energy, with parts" : "energy", ...number, value: wholeOf, show: showEnergy,
      help: "active energy: above rest and held",
      unsure: (r) => r.resolvable === false,
      low: (r) => intervalOf(r)?.[0] ?? null, high: (r) => intervalOf(r)?.[1] ?? null },
    { key: "error_joules", title: "95 %", ...number, value: (r) => errorIn(intervalOf(r), wholeOf(r)),
      show: (r) => {
        const energy = wholeOf(r);
        const interval = intervalOf(r);
        return energy === null || interval === null || r.resolvable === false ? "" : intervalErrorText(interval, energy);
      } },
    { key: "each_joules", title: "each", hidden: !folds, ...number, help: "of alike layers: the mean of one, and the standard deviation from one to another",
      value: (r) => r.at?.each?.mean ?? null,
      show: (r) => { const e = r.at?.each; return e ? `${joulesText(e.mean)} ±${joulesText(e.deviation)}` : ""; } },
    { key: "own_joules", title: "own energy", hidden: !tree || folds, ...number, value: (r) => r.energy_joules,
      show: (r) => (r.energy_joules === null ? "" : joulesText(r.energy_joules)) },
    { key: "share_ratio", title: "share", ...number, value: (r) => r.share_ratio, help: "of the energy of its own device",
      show: (r) => (r.share_ratio === null || r.resolvable === false ? "" : percentText(r.share_ratio) + (devices > 1 ? ` of ${r.device}` : "")) },
    { key: "kind", title: "kind", hidden: by !== "kernel", value: (r) => kindOf(r.name) },
    { key: "busy_seconds", title: tree ? "own time" : "time", ...number, value: (r) => r.busy_seconds, show: (r) => secondsText(r.busy_seconds) },
    { key: "launches", title: tree ? "own launches" : "launches", ...number, hidden: !launched || folds, value: (r) => r.launches, show: (r) => countText(r.launches) },
    { key: "mean_watts", title: "mean W", ...number, value: (r) => r.mean_watts, help: "above idle, while it ran",
      show: (r) => (r.mean_watts === null || r.resolvable === false ? "" : numberText(r.mean_watts)) },
    { key: "energy_per_launch_joules", title: "J per launch", ...number, hidden: by !== "kernel",
      value: (r) => r.energy_per_launch_joules,
      show: (r) => (r.energy_per_launch_joules === null || r.resolvable === false ? "" : joulesText(r.energy_per_launch_joules)) },
    { key: "calls", title: "calls", ...number, hidden: true, value: (r) => r.calls, show: (r) => (r.calls === null ? "" : countText(r.calls)) },
    { key: "provenance", title: "provenance", hidden: true, value: (r) => r.provenance },
    { key: "device_provenance", title: "provenance of the device's energy", hidden: !badges, value: (r) => (r.badge ? r.badge.toLowerCase() : "measured") },
    { key: "detail", title: by === "kernel" ? "grid x block" : "detail", hidden: by === "phase" || by === "kernel", value: (r) => r.detail },
    { key: "reason", title: "reason", value: (r) => r.reason, hidden: by === "layer" },
  ];
  return columns;
}

export function rowsOf(devices: Activity[]): DeviceRow[] {
  return devices.flatMap((d) => d.rows.map((row) => (
    { ...row, device: d.device, badge: d.provenance === "measured" ? "" : d.provenance.toUpperCase() })));
}

export function windowColumns(page: Page): Column<WindowGroup>[] {
  const columns: Column<WindowGroup>[] = [
    { key: "name", title: "window", value: (w) => w.name },
    { key: "source", title: "source", hidden: !page.profile.windows.some((w) => w.imported),
      value: (w) => (w.imported ? "imported" : "recorded") },
    { key: "labels", title: "labels", hidden: !page.profile.windows.some((w) => w.labels.length),
      value: (w) => w.labels.map((l) => `${l.name}=${l.value}`).join(", ") },
    { key: "count", title: "number", numeric: true, value: (w) => w.count, show: (w) => countText(w.count) },
    { key: "total_seconds", title: "time", numeric: true, value: (w) => w.total_seconds, show: (w) => secondsText(w.total_seconds) },
    { key: "mean_seconds", title: "mean time", numeric: true, value: (w) => w.mean_seconds, show: (w) => secondsText(w.mean_seconds) },
  ];
  page.profile.domains.forEach((d, i) => {
    const of = (w: WindowGroup) => w.energy.find((e) => e.id === d.id);
    if (!page.profile.windows.some((w) => of(w)?.mean_joules != null)) return;
    const label = page.labels[i];
    const counted = page.profile.total.of;
    const shown = counted.length === 0 || counted.includes(d.id);
    columns.push(
      { key: `${label}_joules`, title: label, numeric: true, hidden: !shown, value: (w) => of(w)?.energy_joules ?? null,
        show: (w) => {
          const e = of(w);
          if (!e || e.energy_joules === null) return "";
          return joulesText(e.energy_joules) + (e.provenance === "measured" || !e.provenance ? "" : ` ${e.provenance.toUpperCase()}`);
        },
        low: (w) => of(w)?.interval_joules?.[0] ?? null, high: (w) => of(w)?.interval_joules?.[1] ?? null },
      { key: `${label}_error_joules`, title: `${label} 95 %`, numeric: true, hidden: !shown,
        value: (w) => errorIn(of(w)?.interval_joules ?? null, of(w)?.energy_joules ?? null),
        show: (w) => {
          const e = of(w);
          return e && e.energy_joules !== null && e.interval_joules ? intervalErrorText(e.interval_joules, e.energy_joules) : "";
        } },
      { key: `${label}_mean_joules`, title: `${label} each`, numeric: true, hidden: !shown, value: (w) => of(w)?.mean_joules ?? null,
        show: (w) => { const m = of(w)?.mean_joules; return m == null ? "" : joulesText(m); } },
      ...(["lower quartile", "median", "upper quartile"] as const).map((title, place): Column<WindowGroup> => ({
        key: `${label}_${title.replace(" ", "_")}_joules`, title: `${label} ${title}`, numeric: true,
        hidden: !shown || !page.profile.windows.some((w) => of(w)?.quartiles_joules),
        value: (w) => of(w)?.quartiles_joules?.[place] ?? null,
        show: (w) => { const q = of(w)?.quartiles_joules?.[place]; return q == null ? "" : joulesText(q); } })),
    );
  });
  // Why a device that has a figure in another row has none here; the table of devices says why one has none at all.
  const known = new Set(page.profile.windows.flatMap((w) => w.energy.filter((e) => e.energy_joules !== null).map((e) => e.id)));
  const reasonOf = (w: WindowGroup) => {
    const devices = new Map<string, string[]>();
    page.profile.domains.forEach((d, i) => {
      const reason = known.size === 0 || known.has(d.id) ? w.energy.find((e) => e.id === d.id)?.reason : null;
      if (reason) devices.set(reason, [...(devices.get(reason) ?? []), page.labels[i]]);
    });
    return [...devices].map(([reason, labels]) => `${labels.join(", ")}: ${reason}`).join("; ") || null;
  };
  columns.push({ key: "reason", title: "reason", value: reasonOf, hidden: !page.profile.windows.some(reasonOf) });
  return columns;
}

// How much of their begin all command lines of the run share: what differs is to be seen.
export function sharedBegin(commands: string[]): number {
  if (commands.length < 3) return 0;
  const [first] = commands;
  let same = first.length;
  for (const other of commands) {
    let i = 0;
    while (i < same && i < other.length && other[i] === first[i]) ++i;
    same = i;
  }
  const word = first.lastIndexOf(" ", same) + 1;
  return word > 30 ? word : 0;
}

function processColumns(page: Page): Column<Process>[] {
  const longest = new Map<string, number>();
  for (const p of page.profile.processes) {
    if (!longest.has(p.name)) {
      longest.set(p.name, sharedBegin(page.profile.processes.filter((o) => o.name === p.name && o.command_line).map((o) => o.command_line!)));
    }
  }
  const joules = (e: number | null) => (e === null ? "" : joulesText(e));
  return [
    { key: "pid", title: "pid", numeric: true, value: (p) => p.pid },
    { key: "name", title: "name", value: (p) => p.name },
    { key: "energy_joules", title: `${shareWords(page)}, ${shareProvenance(page)}`, numeric: true, value: (p) => p.energy_joules, show: (p) => joules(p.energy_joules) },
    ...page.profile.domains
      .map((d, i) => ({ d, label: page.labels[i] }))
      .filter(({ d }) => page.profile.processes.some((p) => p.energy.some((e) => e.id === d.id)))
      .map(({ d, label }): Column<Process> => {
        const of = (p: Process) => p.energy.find((e) => e.id === d.id)?.energy_joules ?? null;
        return { key: `${label}_joules`, title: label, numeric: true, value: of, show: (p) => joules(of(p)) };
      }),
    { key: "cpu_seconds", title: "CPU time", numeric: true, value: (p) => p.cpu_seconds, show: (p) => (p.cpu_seconds === null ? "" : cpuText(p.cpu_seconds)) },
    { key: "peak_pss_bytes", title: "memory", numeric: true, value: (p) => p.peak_pss_bytes, show: (p) => (p.peak_pss_bytes === null ? "" : bytesText(p.peak_pss_bytes)) },
    { key: "peak_gpu_memory_bytes", title: "GPU memory", numeric: true, value: (p) => p.peak_gpu_memory_bytes, show: (p) => (p.peak_gpu_memory_bytes === null ? "" : bytesText(p.peak_gpu_memory_bytes)) },
    { key: "command_line", title: "command line", hidden: page.redacted, value: (p) => p.command_line,
      show: (p) => {
        const cut = longest.get(p.name) ?? 0;
        return cut > 0 && p.command_line ? `… ${p.command_line.slice(cut)}` : p.command_line ?? "";
      } },
  ];
}

const TITLES: Record<TableName, string> = {
  kernel: "Kernels", layer: "Layers", phase: "Phases", range: "Ranges", window: "Windows", process: "Processes",
};

export function tablesOf(page: Page): TableName[] {
  const names: TableName[] = [];
  for (const by of ["layer", "kernel", "phase", "range"] as By[]) {
    const rows = page.activity ? rowsOf(page.activity[by]) : [];
    if (rows.some((r) => by === "kernel" || !r.name.startsWith("("))) names.push(by);
  }
  if (page.profile.windows.length > 0) names.push("window");
  if (page.profile.processes.length > 0) names.push("process");
  return names;
}

interface Props {
  page: Page;
  chosen: TableName;
  filter: string;
  onChoose: (name: TableName) => void;
  onFilter: (words: string) => void;
  selection: Selection | null;
  part: Part | null; // of the selection
  onWhole: () => void; // ends the selection
}

export function Tables({ page, chosen, filter, onChoose, onFilter, selection, part, onWhole }: Props) {
  const names = tablesOf(page);
  const processes = useMemo(() => selection && processesOf(page, selection), [page, selection]);
  if (names.length === 0) return null;
  const name = names.includes(chosen) ? chosen : names[0];
  const words = { filter, onFilter };
  const move = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    const next = names[(names.indexOf(name) + by + names.length) % names.length];
    onChoose(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <section aria-labelledby="tables">
      <Heading id="tables">Tables</Heading>
      {selection && (
        <p class="selected" role="status">
          Selection: <b>{secondsText(selection.begin)} to {secondsText(selection.end)}</b>{" "}
          <button type="button" onClick={onWhole}>Whole run</button>
        </p>
      )}
      <div class="tabs" role="tablist" aria-label="Tables" onKeyDown={move}>
        {names.map((n) => (
          <button type="button" key={n} id={`tab-${n}`} role="tab" aria-selected={n === name} aria-controls="panel"
            tabIndex={n === name ? 0 : -1} onClick={() => onChoose(n)}>
            {TITLES[n]}
          </button>
        ))}
      </div>
      <div id="panel" role="tabpanel" aria-labelledby={`tab-${name}`}>
        {selection && name !== "window" && (name === "process" ? !processes : !part) && (
          <p><b>Of the whole run, not of the selection.</b> {name === "process" ? processReason(page.process_slices) : wholeReason(page)}</p>
        )}
        {name === "window"
          ? selection ? <PartWindowTable page={page} selection={selection} {...words} /> : <Windows page={page} {...words} />
          : name === "process"
            ? processes ? <PartProcessTable page={page} part={processes} {...words} /> : <Processes page={page} {...words} />
            : selection && part ? <PartRows key={name} page={page} by={name} part={part} {...words} />
              : <Rows page={page} by={name} key={name} {...words} />}
      </div>
    </section>
  );
}

interface Filter {
  filter: string;
  onFilter: (words: string) => void;
}

const PLACES: Tree<DeviceRow> = { id: (r) => r.at!.id, parent: (r) => r.at!.parent, depth: (r) => r.at!.depth };

// The rows of each device as a tree.
export function treeOf(devices: Activity[], fold: boolean): DeviceRow[] {
  let first = 0;
  return devices.flatMap((device) => {
    const made = treeRows(rowsOf([device]), fold, first);
    first += made.length;
    return made.map((at): DeviceRow => ({ ...at.row, at }));
  });
}

function Rows({ page, by, ...filter }: { page: Page; by: By } & Filter) {
  const devices = page.activity![by];
  const [fold, setFold] = useUrl("fold", true, flag(true));
  const tree = by !== "kernel" && devices.some((d) => d.rows.some((r) => r.parent !== null));
  // A row that a filter names by itself may be within a folded one.
  const exact = /^"([^]+)"$/.exec(filter.filter)?.[1];
  const isFolded = fold && !(exact !== undefined && !exact.includes("*") && devices.some((d) => d.rows.some((r) => r.name === exact)));
  const rows = useMemo(() => (tree ? treeOf(devices, isFolded) : rowsOf(devices)), [devices, tree, isFolded]);
  const folds = rows.some((r) => r.at?.each);
  const columns = useMemo(() => rowColumns(by, devices.length, tree, rows.some((r) => r.launches > 0), rows.some((r) => r.badge), folds), [by, devices, folds]);
  const left = devices.reduce((s, d) => s + d.rows_left_out, 0);
  return (
    <>
      {tree && (
        <label class="choice" title="layers.0 to layers.11 as one row, with its mean and spread">
          <input type="checkbox" checked={fold} onChange={() => setFold(!fold)} /> alike layers as one row
        </label>
      )}
      <Table key={`${by}-${fold}-${folds}`} name={TITLES[by].toLowerCase()} rows={rows} columns={columns} order={{ key: "energy_joules", down: true }}
        tree={tree ? PLACES : undefined}
        note={left > 0 ? `${countText(left)} rows of little energy are in report --json only` : undefined} {...filter} />
    </>
  );
}

function Windows({ page, ...filter }: { page: Page } & Filter) {
  const columns = useMemo(() => windowColumns(page), [page]);
  const left = page.profile.windows_left_out;
  return <Table key="window" name="windows" rows={page.profile.windows} columns={columns}
    note={left ? `${countText(left)} more names are in report --json only` : undefined} {...filter} />;
}

function Processes({ page, ...filter }: { page: Page } & Filter) {
  const columns = useMemo(() => processColumns(page), [page]);
  return <Table key="process" name="processes" rows={page.profile.processes} columns={columns}
    order={{ key: "energy_joules", down: true }} {...filter} />;
}
