// Requests of inference servers: by tenant, and each of them.
import { grow } from "./balance";
import type { Serving, ServedBoard, ServedEnergy, ServedRequest, ServedTenant } from "./data";
import { errorText, joulesText, numberText, percentText } from "./quantity";
import { Heading } from "./share";
import type { Column } from "./table";
import { Table } from "./table";

type PartOf = [label: string, meaning: string, joules: number, colour: string];

export function boardParts(b: ServedBoard): PartOf[] {
  const levels: PartOf[] = b.rest_joules !== null && b.held_joules !== null
    ? [["rest", "without a context", b.rest_joules, "#8e9aa8"], ["held", "what an open context adds", b.held_joules, "#4fa6f2"]]
    : b.idle_joules !== null ? [["idle", "rest and held together", b.idle_joules, "#8e9aa8"]] : [];
  const divided: PartOf[] = b.requests_joules !== null && b.between_joules !== null
    ? [
      ["requests", "active energy of all requests", b.requests_joules, "#d89a2c"],
      ["between steps", "above held while no step runs: of no request", b.between_joules, "#f6f42c"],
    ]
    : [];
  return [
    ...levels,
    ...divided,
    ["unattributed", "before the first and after the last step, of other programs, and what steps do not explain",
      b.unattributed_joules, "#a7bea3"],
  ];
}

function BoardBar({ board }: { board: ServedBoard }) {
  const parts = boardParts(board);
  const shown = parts.filter((p) => p[2] > 0);
  return (
    <div class="balance-row">
      <h3>
        {board.device}{" "}
        {board.provenance !== "measured" && <span class={`badge ${board.provenance}`}>{board.provenance.toUpperCase()}</span>}
        <span class="sum">{joulesText(board.energy_joules)}</span>
      </h3>
      <div class="track" role="img" aria-label={parts.map((p) => `${p[0]} ${joulesText(p[2])}`).join(", ")}>
        <div class="parts" style={{ width: "100%" }}>
          {shown.map(([label, meaning, joules, colour]) => (
            <div key={label} class="part" title={meaning} style={{ flexGrow: grow(joules, board.energy_joules), background: colour }} />
          ))}
        </div>
      </div>
      <ul class="legend">
        {parts.filter((p) => p[2] !== 0).map(([label, meaning, joules, colour]) => (
          <li key={label} title={meaning}>
            <span class="swatch" style={{ background: colour }} />
            {label} <b>{joulesText(joules)}</b> <span class="soft">{percentText(joules / board.energy_joules)}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

// The lower bound is never negative: the upper one has the whole error.
export const half = (e: ServedEnergy) =>
  e.interval_joules === null || e.energy_joules === null ? null : e.interval_joules[1] - e.energy_joules;
const joules = (value: number | null) => (value === null ? "" : joulesText(value));

function energies<T extends ServedEnergy>(): Column<T>[] {
  return [
    { key: "energy_joules", title: "energy", numeric: true, value: (e) => e.energy_joules, show: (e) => (e.energy_joules === null ? "-" : joulesText(e.energy_joules)),
      low: (e) => e.interval_joules?.[0] ?? null, high: (e) => e.interval_joules?.[1] ?? null,
      help: "active energy: its own work, and equal parts of what is fixed in each step" },
    { key: "error_joules", title: "95 %", numeric: true, value: half, show: (e) => (half(e) === null ? "" : errorText(half(e)!, e.energy_joules!)) },
    { key: "joules_per_token", title: "a token out", numeric: true, value: (e) => e.joules_per_token,
      show: (e) => (e.joules_per_token === null ? "" : joulesText(e.joules_per_token)) },
    { key: "prefill_joules", title: "prefill", numeric: true, value: (e) => e.prefill_joules, show: (e) => joules(e.prefill_joules) },
    { key: "decode_joules", title: "decode", numeric: true, value: (e) => e.decode_joules, show: (e) => joules(e.decode_joules) },
    { key: "marginal_joules", title: "marginal", numeric: true, value: (e) => e.marginal_joules,
      show: (e) => (e.marginal_joules === null ? "" : joulesText(e.marginal_joules)),
      help: "what would be saved without it; from here to the energy reaches the choice of a rule" },
    { key: "idle_joules", title: "rest and held", numeric: true, roomy: true, value: (e) => e.idle_joules, show: (e) => joules(e.idle_joules),
      help: "in its steps, in equal parts; not in the energy" },
    { key: "tokens_in", title: "tokens in", numeric: true, value: (e) => e.tokens_in },
    { key: "tokens_out", title: "tokens out", numeric: true, value: (e) => e.tokens_out },
    { key: "shared_with", title: "shared with", numeric: true, roomy: true, value: (e) => e.shared_with, show: (e) => numberText(e.shared_with),
      help: "other requests in its steps, mean over time" },
    { key: "recomputed_joules", title: "recomputed", numeric: true, hidden: true, value: (e) => e.recomputed_joules, show: (e) => joules(e.recomputed_joules) },
    { key: "rejected_joules", title: "rejected", numeric: true, hidden: true, value: (e) => e.rejected_joules, show: (e) => joules(e.rejected_joules) },
    { key: "tokens_cached", title: "tokens cached", numeric: true, hidden: true, value: (e) => e.tokens_cached },
    { key: "steps", title: "steps", numeric: true, hidden: true, value: (e) => e.steps },
  ];
}

const TENANTS: Column<ServedTenant>[] = [
  { key: "tenant", title: "tenant", value: (t) => t.tenant ?? "(none)" },
  { key: "requests", title: "requests", numeric: true, value: (t) => t.requests },
  { key: "requests_without_energy", title: "without energy", numeric: true, hidden: true, value: (t) => t.requests_without_energy,
    help: "requests whose energy is not known; they are not in the sums" },
  ...energies<ServedTenant>(),
];

const REQUESTS: Column<ServedRequest>[] = [
  { key: "request", title: "request", value: (r) => r.request, below: (r) => r.reason ?? (r.finish_nanoseconds === null ? "not finished" : null) },
  { key: "tenant", title: "tenant", value: (r) => r.tenant },
  { key: "model", title: "model", roomy: true, value: (r) => r.model },
  ...energies<ServedRequest>(),
  { key: "prefix_of", title: "prefix of", hidden: true, value: (r) => r.prefix_of },
];

export function Requests({ serving }: { serving: Serving }) {
  const order = { key: "energy_joules", down: true };
  return (
    <section aria-labelledby="requests">
      <Heading id="requests">Requests</Heading>
      {serving.simulated && <p><span class="badge simulated">SIMULATED</span></p>}
      <p class="soft">
        Division: {serving.division}. {serving.division !== "tokens in flight" &&
          "Marginal is what would be saved without the request; between the two lies the choice of a rule, which is no error. "}
        Rest and held are apart.
        {serving.being_written && " The recording is still being written: the figures are provisional."}
      </p>
      {serving.boards.map((b) => <BoardBar key={b.device} board={b} />)}
      {serving.warnings.map((w) => <p key={w} class="soft">{w}.</p>)}
      <h3>By tenant</h3>
      <Table name="tenants" rows={serving.tenants} columns={TENANTS} order={order} />
      <h3>By request</h3>
      {serving.requests_left_out > 0 && (
        <p class="soft">{serving.requests_left_out} requests with less energy are left out; `report --by request --csv` has them.</p>
      )}
      <Table name="requests" rows={serving.requests} columns={REQUESTS} order={order} />
    </section>
  );
}
