// A job: what each host and rank took.
import { useMemo } from "preact/hooks";
import { grow } from "./balance";
import { cpuText, errorOf, intervalErrorText, joulesText, numberText, percentText, secondsText } from "./quantity";
import type { JobHost, JobRank } from "./results";
import type { Column } from "./table";
import { Table } from "./table";
import { SERIES_COLOURS } from "./kinds";
import { Heading } from "./share";

function HostBar({ host, most }: { host: JobHost; most: number }) {
  if (host.energy_joules === null) {
    return (
      <div class="balance-row">
        <h3>{host.host ?? "unknown host"} <span class="badge unavailable">UNAVAILABLE</span></h3>
      </div>
    );
  }
  const energy = host.energy_joules;
  const [low, high] = (host.interval_joules ?? [energy, energy]) as [number, number | null];
  const parts = host.domains.filter((d) => d.counted && d.energy_joules !== null && d.energy_joules > 0);
  const share = (joules: number) => `${(100 * joules) / most}%`;
  return (
    <div class="balance-row">
      <h3>
        {host.host ?? "unknown host"} <span class="soft">{secondsText(host.recorded_seconds)}</span>{" "}
        {host.provenance !== "measured" && <span class={`badge ${host.provenance}`}>{host.provenance.toUpperCase()}</span>}
        <span class="sum">
          {high === null ? "at least " : ""}{joulesText(energy)}{" "}
          <span class="soft">{high === null ? `-${percentText((energy - low) / energy)}` : intervalErrorText([low, high], energy)}</span>
        </span>
      </h3>
      <div class="track" role="img" aria-label={parts.map((d) => `${d.name} ${joulesText(d.energy_joules!)}`).join(", ")}>
        <div class="parts" style={{ width: share(energy) }}>
          {parts.map((d, i) => (
            <div key={d.name} class={`part${d.provenance === "measured" ? "" : " hatched"}`}
              style={{ flexGrow: grow(d.energy_joules!, energy), background: SERIES_COLOURS[i % SERIES_COLOURS.length] }} />
          ))}
        </div>
        <div class={`whisker${high === null ? " open" : ""}`} style={{ left: share(low), width: share((high ?? most) - low) }} />
      </div>
      <ul class="legend">
        {parts.map((d, i) => (
          <li key={d.name}>
            <span class={`swatch${d.provenance === "measured" ? "" : " hatched"}`} style={{ background: SERIES_COLOURS[i % SERIES_COLOURS.length] }} />
            {d.name} <b>{joulesText(d.energy_joules!)}</b> <span class="soft">{percentText(d.energy_joules! / energy)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

interface DomainRow {
  host: string | null;
  name: string;
  energy: number | null;
  interval: [number, number] | null;
  provenance: string;
  counted: boolean;
  reason: string | null;
}

const DOMAINS: Column<DomainRow>[] = [
  { key: "host", title: "host", value: (d) => d.host },
  { key: "domain", title: "domain", value: (d) => d.name },
  { key: "energy_joules", title: "energy", numeric: true, value: (d) => d.energy, show: (d) => (d.energy === null ? "unavailable" : joulesText(d.energy)),
    low: (d) => d.interval?.[0] ?? null, high: (d) => d.interval?.[1] ?? null },
  { key: "error_joules", title: "95 %", numeric: true,
    value: (d) => (d.interval === null || d.energy === null ? null : errorOf(d.interval, d.energy)),
    show: (d) => (d.interval === null || d.energy === null ? "" : intervalErrorText(d.interval, d.energy)) },
  { key: "provenance", title: "provenance", value: (d) => d.provenance },
  { key: "counted", title: "in the total", value: (d) => (d.energy === null ? null : d.counted ? "yes" : "within another") },
  { key: "reason", title: "reason", value: (d) => d.reason },
];

const joules = (v: number | null) => (v === null ? "" : joulesText(v));
const time = (v: number | null) => (v === null ? "" : secondsText(v));
const RANKS: Column<JobRank>[] = [
  { key: "rank", title: "rank", numeric: true, value: (r) => r.rank },
  { key: "host", title: "host", value: (r) => r.host },
  { key: "recording", title: "recording", value: (r) => r.recording },
  { key: "seconds", title: "time", numeric: true, value: (r) => r.seconds, show: (r) => time(r.seconds) },
  { key: "cpu_seconds", title: "CPU time", numeric: true, value: (r) => r.cpu_seconds, show: (r) => (r.cpu_seconds === null ? "" : cpuText(r.cpu_seconds)) },
  { key: "dynamic_joules", title: "dynamic energy, ESTIMATED", numeric: true, value: (r) => r.dynamic_joules, show: (r) => joules(r.dynamic_joules) },
  { key: "kernels_joules", title: "kernels", numeric: true, value: (r) => r.kernels_joules, show: (r) => joules(r.kernels_joules) },
  { key: "idle_between_launches_joules", title: "idle between launches", numeric: true, value: (r) => r.idle_between_launches_joules, show: (r) => joules(r.idle_between_launches_joules) },
  { key: "held_joules", title: "held", numeric: true, value: (r) => r.held_joules, show: (r) => joules(r.held_joules) },
  { key: "collective_waiting_seconds", title: "waiting", numeric: true, value: (r) => r.collective_waiting_seconds, show: (r) => time(r.collective_waiting_seconds) },
  { key: "collective_waiting_joules", title: "energy of waiting", numeric: true, value: (r) => r.collective_waiting_joules, show: (r) => joules(r.collective_waiting_joules) },
  { key: "collective_transfer_joules", title: "energy of transfer", numeric: true, value: (r) => r.collective_transfer_joules, show: (r) => joules(r.collective_transfer_joules) },
  { key: "imbalance_ratio", title: "imbalance", numeric: true, value: (r) => r.imbalance_ratio, show: (r) => (r.imbalance_ratio === null ? "" : `${numberText(100 * r.imbalance_ratio)} %`) },
];

export function JobSections({ hosts, ranks }: { hosts: JobHost[]; ranks: JobRank[] }) {
  const domains = useMemo(() => hosts.flatMap((h) => h.domains.map((d): DomainRow => ({
    host: h.host, name: d.name, energy: d.energy_joules, interval: d.interval_joules, provenance: d.provenance,
    counted: d.counted, reason: d.reason,
  }))), [hosts]);
  const most = Math.max(1e-9, ...hosts.map((h) => h.interval_joules?.[1] ?? 1.1 * (h.energy_joules ?? 0)));
  const order = { key: "energy_joules", down: true };
  return (
    <>
      <section aria-labelledby="hosts">
        <Heading id="hosts">Hosts</Heading>
        <p class="soft">The devices of a host sum to its energy. The line under a bar is the 95 % interval of the whole.</p>
        {hosts.map((h, i) => <HostBar key={i} host={h} most={most} />)}
      </section>
      {ranks.length > 0 && (
        <section aria-labelledby="ranks">
          <Heading id="ranks">Ranks</Heading>
          <Table name="ranks" rows={ranks} columns={RANKS} />
        </section>
      )}
      <section aria-labelledby="domains">
        <Heading id="domains">Domains</Heading>
        <Table name="domains" rows={domains} columns={DOMAINS} order={order} />
      </section>
    </>
  );
}
