// Power over time, and the energy of a selected interval.
import { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { prepare, textScale, useWidth } from "./plot";
import { Chart, Drawing, gutter, MARGIN, topOf, type Line, type Lit, type Range } from "./chart";
import type { Domain, Page, PowerTrack } from "./data";
import type { RowOf } from "./icicle_view";
import { energyOf, powerAt, type Selection } from "./part";
import { errorText, intervalText, joulesText, parseTime, roundText, secondsText, wattsText } from "./quantity";
import { Heading } from "./share";
import { colour, interval, oneOf, ThemeVersion, useUrl, type Shared } from "./state";
import { Choice, copyText } from "./table";
import { ranAt, SliceTracks, Tracks, windowsAt } from "./tracks_view";

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

// The parts of the time in which a device's rows have energy, by how much of their greatest.
function litBy(page: Page, rows: RowOf[] | null, id: number): Lit[] {
  const slices = page.slices.find((s) => s.id === id);
  const device = page.stacks.findIndex((s) => s.id === id);
  const own = rows?.filter((r) => r.device === device) ?? [];
  if (!slices || own.length === 0) return [];
  const sums = new Array<number>(slices.count).fill(0);
  for (const [number, unit, energies] of slices[own[0].by]) {
    if (own.some((r) => r.number === number)) energies.forEach((e, i) => { sums[i] += e * unit; });
  }
  const most = Math.max(...sums, 1e-9);
  const out: Lit[] = [];
  sums.forEach((sum, i) => {
    const strength = Math.ceil((4 * sum) / most) / 4;
    if (strength <= 0) return;
    const begin = slices.begin_seconds + i * slices.step_seconds;
    const last = out[out.length - 1];
    if (last && last.strength === strength && last.end >= begin - 1e-9) last.end = begin + slices.step_seconds;
    else out.push({ begin, end: begin + slices.step_seconds, strength });
  });
  return out;
}

const MOST_CHARTS = 18; // of eight GPUs with their memory, and a CPU
const QUIET = 400; // milliseconds after the page was scrolled, in which the wheel scrolls on

export function Timeline({ page, time, pointed, selection, onSelect: setSelection }: {
  page: Page;
  time: Shared<number | null>;
  pointed: Shared<RowOf[] | null>;
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
  const [zoomed, setZoomed] = useUrl<Range | null>("zoom", null, interval);
  const range = zoomed ?? whole;
  const setRange = (next: Range) => setZoomed(next.begin <= whole.begin && next.end >= whole.end ? null : next);
  const hover = time.use((t) => t);
  const setHover = time.set;
  const rows = pointed.use((r) => r);
  const [gauge, setGauge] = useUrl("also", "sm_clock_hertz", oneOf<string>("sm_clock_hertz"));
  const charts = useRef<HTMLDivElement>(null);
  const wheel = useRef<(event: WheelEvent) => void>();
  useEffect(() => {
    let scrolled = -Infinity;
    const onScroll = () => { scrolled = performance.now(); };
    const onWheel = (event: WheelEvent) => {
      // Who scrolls the page past the charts goes on scrolling it.
      if (event.ctrlKey || performance.now() - scrolled > QUIET) wheel.current?.(event);
    };
    const element = charts.current;
    element?.addEventListener("wheel", onWheel, { passive: false });
    addEventListener("scroll", onScroll, { passive: true });
    return () => {
      element?.removeEventListener("wheel", onWheel);
      removeEventListener("scroll", onScroll);
    };
  }, []);
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
  const [all, setAll] = useState(false);
  if (tracks.length === 0) return null;
  const drawn = all ? tracks : tracks.slice(0, MOST_CHARTS);

  // Around a time that stays where it is. Returns whether anything changed.
  const zoom = (factor: number, around = (range.begin + range.end) / 2): boolean => {
    const least = timeline.power[0].step_seconds * 4;
    const length = (range.end - range.begin) * factor;
    if (length < least || (factor > 1 && !zoomed)) return false;
    const begin = Math.max(around - (around - range.begin) * factor, whole.begin);
    setRange({ begin, end: Math.min(begin + length, whole.end) });
    return true;
  };
  wheel.current = (event) => {
    const box = charts.current!.getBoundingClientRect();
    const plot = box.width - gutter() - MARGIN;
    const part = Math.min(Math.max((event.clientX - box.left - gutter()) / plot, 0), 1);
    const moved = Math.abs(event.deltaX) > Math.abs(event.deltaY)
      ? (pan(event.deltaX / plot), zoomed !== null)
      : zoom(Math.exp(event.deltaY * 0.0022), range.begin + part * (range.end - range.begin));
    if (moved) event.preventDefault();
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
      Escape: () => { setSelection(null); setZoomed(null); },
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  };
  const shared = { range, work, selection, hover, onSelect: setSelection, onHover: setHover };
  const last = drawn.length - 1;
  return (
    <section aria-labelledby="timeline" onKeyDown={key}>
      <Heading id="timeline">Timeline</Heading>
      <div class="controls">
        <IntervalInputs whole={whole} selection={selection} onSelect={setSelection} />
        <button type="button" disabled={!selection} onClick={() => selection && setRange(selection)}>Zoom to selection</button>
        <button type="button" onClick={() => zoom(0.5)} aria-label="Zoom in">+</button>
        <button type="button" onClick={() => zoom(2)} aria-label="Zoom out">−</button>
        <button type="button" onClick={() => { setZoomed(null); setSelection(null); }}>Whole run</button>
        {gauges.length > 0 && (
          <Choice label="Also" value={chosen[0]} onChange={setGauge}
            options={gauges.map(([q, text]) => [q, text] as [string, string])} />
        )}
      </div>
      <Minimap line={lines.get(tracks[0].track.id)!} ink={tracks[0].domain.domain.startsWith("gpu") ? "gpu" : "cpu"} whole={whole} range={range} onRange={setRange} />
      <div class="charts" ref={charts} tabIndex={0} role="group" aria-label="Power over time. Plus, minus and the wheel zoom, left and right move, Escape shows the whole run.">
        <Tip page={page} hover={hover} range={range} tracks={tracks} />
        {drawn.map(({ track, domain }, i) => {
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
                {track.left_out_until_seconds !== undefined && (
                  <span class="alert-text">readings stamped up to {secondsText(track.left_out_until_seconds - track.end_seconds)} later are not shown</span>
                )}
                <span class="now">{power}{hover !== null && power ? ` at ${secondsText(hover)}` : ""}</span>
              </p>
              <Chart {...shared} line={lines.get(domain.id)!} label={`Power of ${label(domain)} over time`}
                ink={domain.domain.startsWith("gpu") ? "gpu" : "cpu"} limit={extra.limit} lit={litBy(page, rows, domain.id)}
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
        {tracks.length > MOST_CHARTS && (
          <button type="button" class="more-charts" aria-expanded={all} onClick={() => setAll(!all)}>{all ? "Fewer charts" : `${tracks.length - MOST_CHARTS} more charts`}</button>
        )}
        <SliceTracks page={page} range={range} hover={hover} onHover={setHover} />
        <Tracks page={page} range={range} selection={selection} onSelect={setSelection} />
      </div>
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

// The whole time, with the part that the charts show.
function Minimap({ line, ink, whole, range, onRange }: {
  line: Line; ink: string; whole: Range; range: Range; onRange: (range: Range) => void;
}) {
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const from = useRef<{ at: number; range: Range | null } | null>(null); // of a drag: with a range it is moved
  const width = useWidth(holder);
  const theme = useContext(ThemeVersion);
  const height = Math.round(28 * textScale());
  const [left, right] = [gutter(), Math.max(width - MARGIN, gutter() + 10)];
  useLayoutEffect(() => {
    if (!canvas.current || width === 0) return;
    const axis = { low: whole.begin, high: whole.end, from: left, to: right };
    new Drawing(prepare(canvas.current, width, height), axis, { low: 0, high: topOf(line), from: height - 1, to: 1 })
      .line(line.times, line.values, colour(ink), 1);
  }, [width, theme, line, whole]);
  const place = (t: number) => left + ((t - whole.begin) / (whole.end - whole.begin)) * (right - left);
  const timeAt = (event: PointerEvent) => {
    const x = event.clientX - holder.current!.getBoundingClientRect().left;
    return whole.begin + ((Math.min(Math.max(x, left), right) - left) / (right - left)) * (whole.end - whole.begin);
  };
  const isWhole = range.begin <= whole.begin && range.end >= whole.end;
  const move = (event: PointerEvent) => {
    if (!from.current) return;
    const at = timeAt(event);
    const { at: began, range: old } = from.current;
    if (old) {
      const by = Math.min(Math.max(at - began, whole.begin - old.begin), whole.end - old.end);
      onRange({ begin: old.begin + by, end: old.end + by });
    } else if (Math.abs(place(at) - place(began)) > 3) {
      onRange({ begin: Math.min(at, began), end: Math.max(at, began) });
    }
  };
  return (
    <div ref={holder} class="chart minimap" role="img" aria-label="The whole time; the part that is shown is framed. Drag to move it, or to choose another."
      style={{ height: `${height}px` }}
      onPointerDown={(e: PointerEvent) => {
        const at = timeAt(e);
        from.current = { at, range: !isWhole && at >= range.begin && at <= range.end ? range : null };
        holder.current!.setPointerCapture(e.pointerId);
      }}
      onPointerMove={move}
      onPointerUp={() => { from.current = null; }} onPointerCancel={() => { from.current = null; }}>
      <canvas ref={canvas} />
      <i class="brush" style={{ left: `${place(range.begin)}px`, width: `${Math.max(place(range.end) - place(range.begin), 3)}px`, height: `${height}px` }} />
    </div>
  );
}

// At the cursor: power, the energy of its step, and what ran.
function Tip({ page, hover, range, tracks }: {
  page: Page; hover: number | null; range: Range; tracks: { track: PowerTrack; domain: Domain }[];
}) {
  if (hover === null) return null;
  const part = (hover - range.begin) / (range.end - range.begin);
  const lines = tracks.slice(0, 4).flatMap(({ track, domain }) => {
    const now = powerAt(track, hover);
    const step = Math.floor((hover - track.begin_seconds) / track.step_seconds);
    const energy = track.energy_microjoules[step];
    return now && energy != null
      ? [`${page.labels[page.profile.domains.indexOf(domain)]} ${wattsText(now.watts)}, ${joulesText(energy / 1e6)} in ${roundText(track.step_seconds)}`] : [];
  });
  return (
    <div class="tip" aria-hidden="true" style={part > 0.6 ? { right: `calc(${100 * (1 - part)}% + 10px)` } : { left: `calc(${gutter()}px + ${100 * part}% + 6px)` }}>
      <b>{secondsText(hover)}</b>
      {lines.map((l) => <div key={l}>{l}</div>)}
      {[...ranAt(page, hover), ...windowsAt(page, hover)].map((l) => <div key={l} class="soft">{l}</div>)}
    </div>
  );
}

function IntervalInputs({ whole, selection, onSelect }: {
  whole: Range;
  selection: Selection | null;
  onSelect: (selection: Selection | null) => void;
}) {
  const [wrong, setWrong] = useState("");
  const clamp = (t: number) => Math.min(Math.max(t, whole.begin), whole.end);
  const set = (edge: "begin" | "end", text: string) => {
    if (text.trim() === "") return;
    const value = parseTime(text);
    if (value === null) return setWrong(`"${text}" is no time: give seconds, or such as 28m35s`);
    const next = { begin: selection?.begin ?? 0, end: selection?.end ?? value, [edge]: value };
    const made = next.end > next.begin ? next : { begin: value, end: value + 1 };
    const held = { begin: clamp(made.begin), end: clamp(made.end) };
    if (held.end <= held.begin) {
      return setWrong(`the recording is from ${secondsText(whole.begin)} to ${secondsText(whole.end)}`);
    }
    setWrong("");
    onSelect(held);
  };
  const field = (edge: "begin" | "end", text: string) => (
    <label class="choice">
      {text}{" "}
      <input type="text" class="time" inputMode="text" placeholder={edge === "begin" ? "0" : String(Number(whole.end.toFixed(3)))} aria-label={`Selection ${text.toLowerCase()}, in seconds or such as 28m35s`}
        value={selection ? String(Number(selection[edge].toFixed(3))) : ""}
        onChange={(e) => set(edge, e.currentTarget.value)} />
    </label>
  );
  return <>{field("begin", "From")} {field("end", "to")}{wrong && <span class="soft" role="alert">{wrong}</span>}</>;
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
