// A sweep: energy against time with the Pareto front, and every quantity against the setting.
import { useRef, useState } from "preact/hooks";
import { paddedAxis, place, Plot, PLOT, useWidth } from "./plot";
import { joulesText, numberText, percentText, secondsText } from "./quantity";
import { useUrl, type Coding } from "./state";
import { copyText } from "./table";
import type { Interval } from "./data";
import type { Sweep, SweepPoint, SweepRun } from "./results";
import { Heading } from "./share";

// Name, unit, and the option of `jouleprof apply`.
const KNOBS: Record<string, [string, string, string]> = {
  power_limit_watts: ["power limit", "W", "--power"],
  sm_clock_megahertz: ["SM clock", "MHz", "--sm-clock"],
  memory_clock_megahertz: ["memory clock", "MHz", "--memory-clock"],
};

// The setting of the least energy among those that are at most so much slower than the reference.
export function bestWithin(sweep: Sweep, slowdown: number): SweepPoint | null {
  const fast = sweep.points.filter((p) => p.slowdown_ratio <= slowdown + 1e-9);
  return fast.sort((a, b) => a.energy_joules - b.energy_joules)[0] ?? null;
}

const signed = (ratio: number): string => `${ratio < 0 ? "-" : ""}${percentText(ratio)}`;
const withInterval = (ratio: number, interval: Interval): string =>
  signed(ratio) + (interval ? ` (95 %: ${signed(interval[0])} to ${signed(interval[1])})` : "");

// Moves the star: what is accepted, what it saves, and the command that sets it.
function Accepted({ sweep, gpus, value, onChange }: {
  sweep: Sweep; gpus: string | null; value: number | null; onChange: (value: number | null) => void;
}) {
  const [said, setSaid] = useState("");
  const [, unit, option] = KNOBS[sweep.knob] ?? [sweep.knob, "", ""];
  const most = Math.max(1, Math.ceil(100 * Math.max(...sweep.points.map((p) => p.slowdown_ratio))));
  const recommended = sweep.points.find((p) => p.setting === sweep.recommended);
  const shown = value ?? Math.min(most, Math.max(0, Math.ceil(1000 * (recommended?.slowdown_ratio ?? 0)) / 10));
  const best = value === null ? recommended ?? bestWithin(sweep, shown / 100) : bestWithin(sweep, value / 100);
  const command = best && option ? `sudo jouleprof apply ${option} ${best.setting}${gpus ? ` -i ${gpus}` : ""} -- COMMAND` : "";
  return (
    <div class="accepted">
      <label>
        I accept <b>{shown.toFixed(1)} %</b> slowdown{" "}
        <input type="range" min="0" max={most} step="0.1" value={shown} aria-label="Accepted slowdown in percent"
          onInput={(e) => onChange(Number(e.currentTarget.value))} />
      </label>
      {value !== null && <button type="button" onClick={() => onChange(null)}>As recommended</button>}
      <p role="status">
        {best ? (
          <>
            <b>{best.setting} {unit}</b>{value === null && best === recommended ? " is recommended" : ""}: saves{" "}
            <b>{withInterval(best.saving_ratio, best.saving_interval_ratio)}</b> of the energy, takes{" "}
            {withInterval(best.slowdown_ratio, best.slowdown_interval_ratio)} longer than {sweep.reference} {unit}.
            {value !== null && (best.slowdown_interval_ratio?.[1] ?? 0) > value / 100 + 1e-9 ? " Its slowdown may be above what you accept." : ""}
          </>
        ) : "No measured setting is this fast."}
      </p>
      {command && (
        <p>
          <code>{command}</code>{" "}
          <button type="button" onClick={async () => setSaid((await copyText(command)) ? "copied" : "not allowed")}>Copy</button> {said}
        </p>
      )}
    </div>
  );
}

function describe(point: SweepPoint, sweep: Sweep, unit: string): string {
  const marks = [
    point.setting === sweep.recommended && "recommended",
    point.setting === sweep.reference && "reference",
    point.setting !== sweep.recommended && sweep.equal_within_error.includes(point.setting) && "equal within error",
    !point.feasible && "outside the constraints",
  ].filter(Boolean);
  return `${point.setting} ${unit}: ${joulesText(point.energy_joules)}, ${secondsText(point.seconds)}` +
    (marks.length > 0 ? ` (${marks.join(", ")})` : "");
}

function Pareto({ sweep, width, unit, star }: { sweep: Sweep; width: number; unit: string; star: number | null }) {
  const height = Math.min(420, Math.max(260, width * 0.5));
  const samples = sweep.points.flatMap((p) => p.samples);
  const across = paddedAxis(samples.map((s) => s.seconds), PLOT.left, width - PLOT.right);
  const up = paddedAxis(samples.map((s) => s.energy_joules), height - PLOT.bottom, PLOT.top);
  const front = sweep.points.filter((p) => p.on_pareto_front).sort((a, b) => a.seconds - b.seconds);
  const at = (p: { seconds: number; energy_joules: number }) => [place(across, p.seconds), place(up, p.energy_joules)] as const;
  return (
    <Plot width={width} height={height} across={across} up={up} name="Energy against time of each setting"
      acrossTitle="time of the work (s)" upTitle="Energy (J) against time: the Pareto front">
      {front.length > 1 && <polyline class="front" points={front.map((p) => at(p).join(",")).join(" ")} />}
      {sweep.points.map((p) => p.samples.map((s, i) => (
        <circle key={`${p.setting} ${i}`} class="raw" cx={at(s)[0]} cy={at(s)[1]} r={2.5}>
          <title>{`${p.setting} ${unit}, run ${i + 1}: ${joulesText(s.energy_joules)}, ${secondsText(s.seconds)}`}</title>
        </circle>
      )))}
      {sweep.points.map((p) => {
        const [x, y] = at(p);
        const best = p.setting === star;
        const left = x > width - 110;
        return (
          <g key={p.setting} class={best ? "best" : p.on_pareto_front ? "on-front" : "off-front"}>
            <title>{describe(p, sweep, unit)}</title>
            <circle class="mean" cx={x} cy={y} r={best ? 7 : 4.5} />
            <text class="tick" x={x + (left ? -10 : 10)} y={y - 7} text-anchor={left ? "end" : "start"}>
              {p.setting} {unit}{best ? " ★" : ""}
            </text>
          </g>
        );
      })}
    </Plot>
  );
}

interface Panel {
  title: string;
  raw: [number, number][];
}

export function panelsOf(sweep: Sweep, runs: SweepRun[]): Panel[] {
  const ofSamples = (title: string, value: (s: { seconds: number; energy_joules: number }) => number): Panel => ({
    title, raw: sweep.points.flatMap((p) => p.samples.map((s): [number, number] => [p.setting, value(s)])),
  });
  const settings = new Set(sweep.points.map((p) => p.setting));
  const ofRuns = (title: string, value: (r: SweepRun) => number | null): Panel => ({
    title,
    raw: runs.filter((r) => settings.has(r.setting)).map((r) => [r.setting, value(r)] as [number, number | null])
      .filter((p): p is [number, number] => p[1] !== null),
  });
  return [
    ofSamples("Energy (J)", (s) => s.energy_joules),
    ofSamples("Time (s)", (s) => s.seconds),
    ofSamples("Throughput (1/s)", (s) => 1 / s.seconds),
    ofSamples("Mean power (W)", (s) => s.energy_joules / s.seconds),
    ofRuns("SM clock (MHz)", (r) => r.sm_clock_megahertz),
    ofRuns("Temperature at the end (°C)", (r) => r.temperature_celsius),
    ofRuns("Utilisation of compute (%)", (r) => (r.sm_utilisation_ratio === null ? null : 100 * r.sm_utilisation_ratio)),
    ofRuns("Utilisation of memory (%)", (r) => (r.memory_utilisation_ratio === null ? null : 100 * r.memory_utilisation_ratio)),
  ].filter((panel) => panel.raw.length > 0);
}

function SettingPanel({ panel, width, recommended, title, unit }: { panel: Panel; width: number; recommended: number | null; title: string; unit: string }) {
  const height = 210;
  const across = paddedAxis(panel.raw.map((p) => p[0]), PLOT.left, width - PLOT.right);
  const up = paddedAxis(panel.raw.map((p) => p[1]), height - PLOT.bottom, PLOT.top);
  const sums = new Map<number, [number, number]>();
  for (const [x, y] of panel.raw) {
    const sum = sums.get(x) ?? [0, 0];
    sums.set(x, [sum[0] + y, sum[1] + 1]);
  }
  const means = [...sums].map(([x, [sum, count]]) => [x, sum / count] as const).sort((a, b) => a[0] - b[0]);
  return (
    <Plot width={width} height={height} across={across} up={up} name={`${panel.title} against the setting`} acrossTitle={title} upTitle={panel.title}>
      {recommended !== null && (
        <line class="chosen" x1={place(across, recommended)} x2={place(across, recommended)} y1={up.to} y2={up.from} />
      )}
      <polyline class="front" points={means.map(([x, y]) => `${place(across, x)},${place(up, y)}`).join(" ")} />
      {panel.raw.map(([x, y], i) => (
        <circle key={i} class="raw" cx={place(across, x)} cy={place(up, y)} r={2.5}><title>{`${x} ${unit}: ${numberText(y)}, ${panel.title}`}</title></circle>
      ))}
    </Plot>
  );
}

const percent: Coding<number | null> = {
  text: (value) => (value === null ? null : String(value)),
  value: (text) => (Number.isFinite(Number(text)) ? Number(text) : undefined),
};

function OneSweep({ sweep, gpus, runs, width, place }: {
  sweep: Sweep; gpus: string | null; runs: SweepRun[]; width: number; place: number;
}) {
  const [knob, unit] = KNOBS[sweep.knob] ?? [sweep.knob, ""];
  const [accepted, setAccepted] = useUrl<number | null>(`accept${place === 0 ? "" : place}`, null, percent);
  const star = accepted === null ? sweep.recommended : bestWithin(sweep, accepted / 100)?.setting ?? null;
  if (sweep.points.length === 0 || width === 0) return null;
  const columns = Math.max(1, Math.min(4, Math.floor(width / 300)));
  const each = Math.floor((width - 16 * (columns - 1)) / columns);
  const best = sweep.points.find((p) => p.setting === sweep.recommended);
  return (
    <>
      {sweep.labels.length > 0 && <h3>{sweep.labels.map((l) => `${l.name} ${l.value}`).join(", ")}</h3>}
      <Accepted sweep={sweep} gpus={gpus} value={accepted} onChange={setAccepted} />
      <Pareto sweep={sweep} width={width} unit={unit} star={star} />
      {best && best.probability_of_best_ratio !== null && (
        <p class="soft">
          The recommended setting has the best score with a probability of {percentText(best.probability_of_best_ratio)}, by
          the spread of the runs.
        </p>
      )}
      <div class="panels">
        {panelsOf(sweep, runs).map((panel) => (
          <SettingPanel key={panel.title} panel={panel} width={each} recommended={star} title={`${knob} (${unit})`} unit={unit} />
        ))}
      </div>
    </>
  );
}

export function SweepSections({ sweeps, gpus, runs }: { sweeps: Sweep[]; gpus: string | null; runs: SweepRun[] }) {
  const holder = useRef<HTMLDivElement>(null);
  const width = useWidth(holder);
  return (
    <section aria-labelledby="sweep">
      <Heading id="sweep">Settings</Heading>
      <p class="soft">Small dots are runs, large ones the mean of a setting. The dashed line is the setting of the star.</p>
      <div ref={holder}>
        {sweeps.map((sweep, i) => (
          <OneSweep key={i} place={i} sweep={sweep} gpus={gpus} runs={sweeps.length === 1 ? runs : []} width={width} />
        ))}
      </div>
    </section>
  );
}
