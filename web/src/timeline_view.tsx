// Power over time, and the energy of a selected interval.
import { useMemo, useState } from "preact/hooks";
import { Chart } from "./chart";
import type { Domain, Page, PowerTrack } from "./data";
import { Choice } from "./icicle_view";
import type { Line, Range } from "./line";
import { errorText, intervalText, joulesText, roundText, secondsText, wattsText } from "./quantity";
import { energyOf, powerAt, type Selection } from "./selection";
import { copyText } from "./table_view";
import { Tracks } from "./tracks_view";

// Each step's values, and one more time for the last step's end.
function lineOf(track: PowerTrack): Line {
  const n = track.energy_microjoules.length;
  const times: number[] = [];
  const values: (number | null)[] = [];
  const low: (number | null)[] = [];
  const high: (number | null)[] = [];
  for (let i = 0; i < n; ++i) {
    const begin = track.begin_seconds + i * track.step_seconds;
    const length = Math.min(begin + track.step_seconds, track.end_seconds) - begin;
    const energy = track.energy_microjoules[i];
    const error = track.error_microjoules[i];
    times.push(begin);
    const watts = energy === null ? null : energy / 1e6 / length;
    values.push(watts);
    const half = error === null ? 0 : error / 1e6 / length;
    low.push(watts === null ? null : Math.max(watts - half, 0));
    high.push(watts === null ? null : watts + half);
  }
  const close = (list: (number | null)[]) => list.push(list[list.length - 1]);
  times.push(track.end_seconds);
  [values, low, high].forEach(close);
  const line: Line = { times, values, low, high };
  if (track.low_watts && track.high_watts) {
    line.extremes = [[...track.low_watts], [...track.high_watts]];
    line.extremes.forEach(close);
  }
  return line;
}

const GAUGES: [string, string, string, number][] = [
  ["sm_clock_hertz", "SM clock", "MHz", 1e-6],
  ["memory_clock_hertz", "memory clock", "MHz", 1e-6],
  ["temperature_celsius", "temperature", "°C", 1],
  ["memory_temperature_celsius", "memory temperature", "°C", 1],
  ["gpu_utilisation_ratio", "GPU utilisation", "%", 100],
  ["memory_utilisation_ratio", "memory utilisation", "%", 100],
  ["memory_used_bytes", "memory used", "GiB", 1 / 2 ** 30],
  ["cpu_utilisation_ratio", "CPU utilisation", "%", 100],
];

function gaugeLine(page: Page, id: number, quantity: string, scale: number): Line | null {
  const gauge = page.timeline!.gauges.find((g) => g.id === id && g.quantity === quantity);
  if (!gauge || gauge.times.length < 2) return null;
  return { times: gauge.times, values: gauge.values.map((v) => v * scale) };
}

export function Timeline({ page, selection, onSelect: setSelection }: {
  page: Page;
  selection: Selection | null;
  onSelect: (selection: Selection | null) => void;
}) {
  const timeline = page.timeline!;
  const { domains } = page.profile;
  const label = (d: Domain) => page.labels[domains.indexOf(d)];
  const work: Range = { begin: timeline.begin_seconds, end: timeline.end_seconds };
  const whole: Range = useMemo(() => {
    const begins = timeline.power.map((p) => p.begin_seconds);
    const ends = timeline.power.map((p) => p.end_seconds);
    return { begin: Math.min(work.begin, ...begins), end: Math.max(work.end, ...ends) };
  }, [page]);
  const [range, setRange] = useState<Range>(whole);
  const [hover, setHover] = useState<number | null>(null);
  const [gauge, setGauge] = useState("sm_clock_hertz");
  const lines = useMemo(() => new Map(timeline.power.map((t) => [t.id, lineOf(t)])), [page]);
  const tracks = timeline.power
    .map((track) => ({ track, domain: domains.find((d) => d.id === track.id)! }))
    .filter((t) => t.domain);
  const gauges = useMemo(
    () => GAUGES.filter(([q]) => domains.some((d) => gaugeLine(page, d.id, q, 1))),
    [page],
  );
  const chosen = gauges.find(([q]) => q === gauge) ?? gauges[0];
  const extras = useMemo(() => {
    const out = new Map<number, { gauge: Line | null; limit: Line | undefined }>();
    for (const { domain } of tracks) {
      const limit = gaugeLine(page, domain.id, "power_limit_watts", 1) ?? undefined;
      const near = limit && Math.max(...limit.values.map((v) => v ?? 0)) < 2 * (domain.peak_watts ?? 0);
      out.set(domain.id, {
        gauge: chosen ? gaugeLine(page, domain.id, chosen[0], chosen[3]) : null,
        limit: near ? limit : undefined,
      });
    }
    return out;
  }, [page, chosen]);
  if (tracks.length === 0) return null;

  const zoom = (factor: number) => {
    const middle = (range.begin + range.end) / 2;
    const half = ((range.end - range.begin) * factor) / 2;
    const least = timeline.power[0].step_seconds * 4;
    if (2 * half < least) return;
    setRange({ begin: Math.max(middle - half, whole.begin), end: Math.min(middle + half, whole.end) });
  };
  const pan = (part: number) => {
    const by = part * (range.end - range.begin);
    const held = Math.min(Math.max(by, whole.begin - range.begin), whole.end - range.end);
    setRange({ begin: range.begin + held, end: range.end + held });
  };
  const key = (event: KeyboardEvent) => {
    if ((event.target as HTMLElement).closest("input, select, button")) return;
    const moves: Record<string, () => void> = {
      "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2),
      ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2),
      Escape: () => { setSelection(null); setRange(whole); },
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  };
  const shared = { range, work, selection, hover, onSelect: setSelection, onHover: setHover };
  const last = tracks.length - 1;
  return (
    <section aria-labelledby="timeline" onKeyDown={key}>
      <h2 id="timeline">Timeline</h2>
      <div class="controls">
        <IntervalInputs selection={selection} onSelect={setSelection} />
        <button type="button" disabled={!selection} onClick={() => selection && setRange(selection)}>Zoom to selection</button>
        <button type="button" onClick={() => zoom(0.5)} aria-label="Zoom in">+</button>
        <button type="button" onClick={() => zoom(2)} aria-label="Zoom out">−</button>
        <button type="button" onClick={() => { setRange(whole); setSelection(null); }}>Whole run</button>
        {gauges.length > 0 && (
          <Choice label="Also" value={chosen[0]} onChange={setGauge}
            options={gauges.map(([q, text]) => [q, text] as [string, string])} />
        )}
      </div>
      <div class="charts" tabIndex={0} role="group" aria-label="Power over time. Plus and minus zoom, left and right move, Escape shows the whole run.">
        {tracks.map(({ track, domain }, i) => {
          const extra = extras.get(domain.id)!;
          const now = hover === null ? null : powerAt(track, hover);
          const power = now
            ? `${wattsText(now.watts)}${now.high !== null && now.low !== null ? ` (${wattsText(now.low)} to ${wattsText(now.high)})` : ""}`
            : "";
          return (
            <div key={domain.id} class="lane">
              <p class="lane-title">
                <b>{label(domain)}</b>{" "}
                {domain.provenance !== "measured" && <span class={`badge ${domain.provenance}`}>{domain.provenance.toUpperCase()}</span>}{" "}
                <span class="soft">power in W, steps of {roundText(track.step_seconds)}{track.low_watts ? `, extremes of ${roundText(track.resolution_seconds)}` : ""}</span>
                <span class="now">{power}{hover !== null && power ? ` at ${secondsText(hover)}` : ""}</span>
              </p>
              <Chart {...shared} line={lines.get(domain.id)!} label={`Power of ${label(domain)} over time`}
                ink={domain.domain.startsWith("gpu") ? "gpu" : "cpu"} limit={extra.limit}
                height={domain.parent === null ? 130 : 80} axis={i === last && !extra.gauge} />
              {extra.gauge && (
                <>
                  <p class="lane-title soft">{label(domain)} {chosen[1]} in {chosen[2]}</p>
                  <Chart {...shared} line={extra.gauge} label={`${chosen[1]} of ${label(domain)} over time`}
                    ink="gauge" height={70} axis={i === last} />
                </>
              )}
            </div>
          );
        })}
      </div>
      <Tracks page={page} range={range} selection={selection} onSelect={setSelection} />
      {selection ? (
        <SelectionTable page={page} selection={selection} />
      ) : (
        <p class="soft">
          The bands are 95 % intervals; the shaded time is before and after the command. Drag over a
          chart, or give times above, for the energy of an interval;{" "}
          {page.activity && page.stacks.length > 0 ? "flame graph and tables" : "the tables"} follow.
        </p>
      )}
    </section>
  );
}

function IntervalInputs({ selection, onSelect }: {
  selection: Selection | null;
  onSelect: (selection: Selection | null) => void;
}) {
  const set = (edge: "begin" | "end", text: string) => {
    const value = Number(text);
    if (text === "" || !Number.isFinite(value)) return;
    const next = { begin: selection?.begin ?? 0, end: selection?.end ?? value, [edge]: value };
    onSelect(next.end > next.begin ? next : { begin: value, end: value + 1 });
  };
  const field = (edge: "begin" | "end", text: string) => (
    <label class="choice">
      {text}{" "}
      <input type="number" step="any" aria-label={`Selection ${text.toLowerCase()}, in seconds`} value={selection ? Number(selection[edge].toFixed(3)) : ""}
        onChange={(e) => set(edge, e.currentTarget.value)} /> s
    </label>
  );
  return <>{field("begin", "From")} {field("end", "to")}</>;
}

function SelectionTable({ page, selection }: { page: Page; selection: Selection }) {
  const { domains } = page.profile;
  const [said, setSaid] = useState("");
  const lines = page.timeline!.power.map((track) => ({
    domain: domains.find((d) => d.id === track.id)!, energy: energyOf(track, selection),
  })).filter((l) => l.domain);
  const from = `${Math.max(selection.begin, 0).toFixed(3)}s`;
  const command = `jouleprof report ${page.file ?? "FILE"} --from ${from} --to ${selection.end.toFixed(3)}s`;
  return (
    <div class="selected" role="status">
      <h3>{secondsText(selection.begin)} to {secondsText(selection.end)}</h3>
      <div class="scroll" tabIndex={0} role="region" aria-label="Energy of the selection">
        <table>
          <thead><tr><th scope="col">device</th><th scope="col">energy</th><th scope="col">95 % interval, at most</th><th scope="col">mean power</th></tr></thead>
          <tbody>
            {lines.map(({ domain, energy }) => (
              <tr key={domain.id}>
                <th scope="row">{page.labels[domains.indexOf(domain)]}{" "}
                  {domain.provenance !== "measured" && <span class={`badge ${domain.provenance}`}>{domain.provenance.toUpperCase()}</span>}</th>
                {energy ? (
                  <>
                    <td class="number">{joulesText(energy.joules)} <span class="soft">{errorText(energy.error, energy.joules)}</span></td>
                    <td class="number">{intervalText(Math.max(energy.joules - energy.error, 0), energy.joules + energy.error)}</td>
                    <td class="number">{wattsText(energy.watts)}</td>
                  </>
                ) : (
                  <td colSpan={3} class="reason">no reading covers this interval, or it is shorter than half a step</td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="soft">
        The edges are those of the charts' steps. The <a href="#tables">tables</a> show the selection. All of its
        figures:{" "}
        <code>{command}</code>{" "}
        <button type="button" onClick={async () => setSaid((await copyText(command)) ? "copied" : "not allowed")}>Copy</button>{" "}
        {said}
      </p>
    </div>
  );
}
