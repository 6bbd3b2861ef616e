// The energy flame graph, from the whole at the top to kernels below.
import { useContext, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { cividis, cut, hatch, inkOn, prepare, textScale, useWidth } from "./plot";
import type { By, Page } from "./data";
import { IDLE_COLOUR, KIND_COLOURS, kindOf, type Kind } from "./kinds";
import { folded, spreadOf } from "./fold";
import { wholeReason, type Part, type Selection } from "./part";
import { countText, errorText, intervalErrorText, joulesText, percentText, secondsText, wattsText } from "./quantity";
import { Heading } from "./share";
import { Choice } from "./table";
import { colour, flag, oneOf, ThemeVersion, useUrl, type Shared } from "./state";
import {
  buildPartTree, buildTimeTree, buildTree, REST_OF_PART, type PartView, layOut, outermostMatches, wattsOf, weightOf, type Frame, type Measure, type View,
} from "./tree";

const ROW = 22;
type Colouring = "kind" | "power";

// Of what has no kind; in the dark, too.
const NEUTRAL = { small: "#dfe3e8", device: "#c9d3de", phase: "#b5c7dd", layer: "#d6dfe9", range: "#d6dfe9", process: "#b5c7dd", idle: IDLE_COLOUR, unattributed: "#b9b3a9" };

function kindOfFrame(frame: Frame): Kind | null {
  if (frame.kind in KIND_COLOURS) return frame.kind as Kind;
  // A layer without parts, by its type.
  if (frame.kind !== "layer" || frame.children.length > 0 || !frame.row?.detail) return null;
  return kindOf(frame.row.detail.split(" ")[0]);
}

function baseColour(frame: Frame): string {
  const kind = kindOfFrame(frame);
  if (kind) return KIND_COLOURS[kind];
  return (NEUTRAL as Record<string, string>)[frame.kind];
}

export function describe(frame: Frame, root: Frame, measure: Measure): string[] {
  const whole = weightOf(root, measure);
  const parts = [joulesText(frame.joules)];
  if (frame.part) parts[0] += ` ${errorText(frame.part.error, frame.joules)} at most`;
  if (frame.kind === "device" && frame.seconds > 0) parts[0] += " while it was traced";
  if (frame.name === REST_OF_PART) parts.push("idle, other processes, rows of little energy, unattributed");
  const own = frame.row;
  const interval = own ? (own.inclusive_interval_joules ?? own.interval_joules) : null;
  const energy = own ? (own.inclusive_joules ?? own.energy_joules) : null;
  if (whole > 0) parts.push(`${percentText(weightOf(frame, measure) / whole)} of ${root.name}`);
  // The time of CPU threads and that of GPUs are no sum.
  const isSum = frame.kind === "device" && frame.device < 0 && measure !== "time";
  if (frame.seconds > 0 && !isSum) parts.push(secondsText(frame.seconds));
  if (frame.launches > 0) parts.push(`${countText(frame.launches)} launches`);
  const watts = wattsOf(frame);
  if (watts !== null) parts.push(`${wattsText(watts)} above idle`);
  if (own && energy !== null && interval) {
    parts.push(
      `${frame.by} in all${frame.part ? " of the run" : ""} ${joulesText(energy)} ${intervalErrorText(interval, energy)}`,
    );
  }
  if (!frame.resolvable) {
    parts.push(`not resolvable${own?.reason ? `: ${own.reason}` : ""}`);
    if (own && own.group_joules !== null) parts.push(`sum of its group ${joulesText(own.group_joules)}`);
  }
  if (frame.members && frame.members.length > 1) {
    const { count, mean, deviation } = spreadOf(frame.members.map((f) => f.joules));
    parts.push(`${count} alike, each ${joulesText(mean)}, spread ${joulesText(deviation)}`);
  }
  if (frame.estimated) parts.push("ESTIMATED");
  return parts;
}

// A row of a table of one device.
export interface RowOf {
  device: number;
  by: By;
  number: number;
}

// The rows that a frame is of, or the nearest one above it that has some.
export function rowsOfFrame(frame: Frame): RowOf[] {
  for (let f: Frame | null = frame; f; f = f.parent) {
    const own = (f.members ?? [f]).filter((m) => m.row && m.by && m.device >= 0);
    if (own.length > 0) return own.map((m) => ({ device: m.device, by: m.by!, number: m.row!.number }));
    if (f.kind !== "small") return [];
  }
  return [];
}

// Rows with energy in the slice that holds a time, as "device by number".
export function rowsAt(page: Page, time: number): Set<string> {
  const found = new Set<string>();
  for (const slices of page.slices) {
    const device = page.stacks.findIndex((s) => s.id === slices.id);
    const at = Math.floor((time - slices.begin_seconds) / slices.step_seconds);
    if (device < 0 || at < 0 || at >= slices.count) continue;
    for (const by of ["kernel", "layer", "range", "phase"] as By[]) {
      for (const [number, , energies] of slices[by]) if (energies[at] > 0) found.add(`${device} ${by} ${number}`);
    }
  }
  return found;
}

interface Props {
  page: Page;
  time: Shared<number | null>; // that the pointer is at in the timeline
  pointed: Shared<RowOf[] | null>; // what the pointer is at here
  search: string;
  onSearch: (words: string) => void;
  selection: Selection | null;
  part: Part | null; // of the selection
  onRow: (by: By, name: string) => void;
  onAll: () => void; // ends the choice of a row
  onWhole: () => void; // ends the selection
}

const PART_VIEWS: [PartView, string][] = [["layer", "layer"], ["range", "range"], ["phase", "phase"], ["kernel", "kernel"]];

const pathOf = (frame: Frame | null): string => {
  const names: string[] = [];
  for (let f = frame; f?.parent; f = f.parent) if (f.kind !== "small") names.unshift(f.full);
  return names.join("\n");
};

function frameAt(root: Frame, path: string): Frame {
  let at = root;
  for (const name of path ? path.split("\n") : []) at = at.children.find((c) => c.full === name) ?? at;
  return at;
}

const VIEWS = ["layer", "range", "process", "kind", "kernel"] as const;

export function Icicle({ page, time, pointed, search, onSearch: setSearch, selection, part, onRow, onAll, onWhole }: Props) {
  const hasLayers = page.activity!.layer.some((d) => d.rows.some((r) => !r.name.startsWith("(")));
  const hasRanges = page.activity!.range.some((d) => d.rows.some((r) => !r.name.startsWith("(")));
  const hasProcesses = page.stacks.some((d) => d.processes.length > 0);
  const usual: View = hasLayers ? "layer" : hasRanges ? "range" : "kernel";
  const [view, setView] = useUrl<View>("stack", usual, oneOf<View>(usual, VIEWS));
  const [partView, setPartView] = useState<PartView>(view === "process" || view === "kind" ? "kernel" : view);
  const [wholeMeasure, setMeasure] = useUrl<Measure>("width", "energy", oneOf<Measure>("energy", ["energy", "time", "number"]));
  const [wholeColouring, setColouring] = useUrl<Colouring>("colour", "kind", oneOf<Colouring>("kind", ["kind", "power"]));
  const [inverted, setInverted] = useUrl("upward", false, flag(false));
  const [fold, setFold] = useUrl("fold", true, flag(true));
  const partViews = useMemo(() => PART_VIEWS.filter(([by]) => part?.rows[by].some((rows) => rows?.size > 0)), [part]);
  const shown = partViews.some(([by]) => by === partView) ? partView : partViews[0]?.[0];
  const partTree = useMemo(() => (part && shown ? buildPartTree(page, part, shown) : null), [page, part, shown]);
  // Times and launches are not held by time.
  const measure = partTree ? "energy" : wholeMeasure;
  const tree = useMemo(
    () => folded(partTree ?? (measure === "energy" ? buildTree(page, view) : buildTimeTree(page, view)), fold),
    [page, view, partTree, measure, fold]);
  const colouring = partTree ? "kind" : wholeColouring;
  const [path, setPath] = useUrl("frame", "", oneOf<string>(""));
  const [group, setGroup] = useState<Frame | null>(null); // of small frames, which have no path
  const setZoom = (frame: Frame | null) => {
    setGroup(frame?.kind === "small" ? frame : null);
    setPath(pathOf(frame));
  };
  const root = useMemo(
    () => (group && rootOf(group) === tree ? group : frameAt(tree, path)), [tree, path, group]);
  // Which slice the pointer is at, so that frames are drawn again once a slice.
  const slice = time.use((t) => {
    const slices = page.slices[0];
    return t === null || !slices ? null : Math.floor((t - slices.begin_seconds) / slices.step_seconds);
  });
  const ran = useMemo(() => (slice === null || time.value === null ? null : rowsAt(page, time.value)), [page, slice]);
  const [focus, setFocus] = useState<Frame | null>(null);
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const searchBox = useRef<HTMLInputElement>(null);
  const width = useWidth(holder);
  const scale = textScale();
  const rowHeight = Math.round(ROW * scale);
  const theme = useContext(ThemeVersion);
  const frames = useMemo(() => layOut(root, measure, width > 0 ? 1.5 / width : 0), [root, measure, width]);
  const levels = Math.max(...frames.map((f) => f.depth)) + 1;
  const height = levels * rowHeight;
  const found = useMemo(() => (search.trim() ? outermostMatches(root, search) : []), [root, search]);
  const powers = useMemo(() => {
    const all = frames.filter((f) => f.kind !== "idle" && f.kind !== "unattributed")
      .map(wattsOf).filter((w): w is number => w !== null);
    return { low: Math.min(...all, 0), high: Math.max(...all, 1) };
  }, [frames]);

  const top = (frame: Frame) => (inverted ? levels - 1 - frame.depth : frame.depth) * rowHeight;

  useLayoutEffect(() => {
    if (!canvas.current || width === 0) return;
    const context = prepare(canvas.current, width, height);
    const strong = hatch(context, 0.4);
    const faint = hatch(context, 0.13);
    const paper = colour("paper");
    const searching = search.trim() !== "";
    context.font = `${12 * scale}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    for (const frame of frames) {
      const x = frame.x * width;
      const w = frame.width * width;
      const y = top(frame);
      const watts = wattsOf(frame);
      const fill = colouring === "power"
        ? watts === null ? NEUTRAL.idle : cividis((watts - powers.low) / (powers.high - powers.low))
        : baseColour(frame);
      const own = ran && frame.kind !== "device" ? rowsOfFrame(frame) : [];
      const away = own.length > 0 && !own.some((r) => ran!.has(`${r.device} ${r.by} ${r.number}`));
      const dim = away || searching && !found.some((f) => f === frame || isWithin(frame, f) || (frame.kind === "small" && isWithin(f, frame.parent!)));
      context.globalAlpha = dim ? 0.22 : 1;
      context.fillStyle = fill;
      context.fillRect(x, y, Math.max(w - (w > 3 ? 1 : 0), 0.5), rowHeight - 1);
      const lines = !frame.resolvable || frame.kind === "unattributed" ? strong : frame.estimated ? faint : null;
      if (lines) {
        context.fillStyle = lines;
        context.fillRect(x, y, Math.max(w - 1, 0.5), rowHeight - 1);
      }
      const text = cut(context, frame.name, w - 9);
      if (text) {
        if (lines === strong) {
          context.fillStyle = fill;
          context.fillRect(x + 2, y + 3, Math.min(context.measureText(text).width + 5, w - 5), rowHeight - 7);
        }
        context.fillStyle = inkOn(fill);
        context.fillText(text, x + 4, y + rowHeight / 2);
      }
      context.globalAlpha = 1;
    }
    if (focus && frames.includes(focus)) {
      context.strokeStyle = paper;
      context.lineWidth = 4;
      const box = [focus.x * width + 1, top(focus) + 1, Math.max(focus.width * width - 2, 2), rowHeight - 3] as const;
      context.strokeRect(...box);
      context.strokeStyle = colour("ink");
      context.lineWidth = 2;
      context.strokeRect(...box);
    }
  }, [frames, width, height, colouring, inverted, found, search, focus, theme, powers, ran]);
  useEffect(() => pointed.set(focus ? rowsOfFrame(focus) : null), [focus]);

  const at = (event: MouseEvent): Frame | null => {
    const box = canvas.current!.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width;
    const level = Math.floor((event.clientY - box.top) / rowHeight);
    const depth = inverted ? levels - 1 - level : level;
    return frames.find((f) => f.depth === depth && x >= f.x && x < f.x + f.width) ?? null;
  };
  const enter = (frame: Frame | null) => {
    if (!frame) return;
    setZoom(frame.children.length > 0 ? frame : root);
    setFocus(frame);
    const row = (frame.members ?? [frame])[0];
    if (row.by && row.row) onRow(row.by, frame.members ? frame.full : row.row.name);
  };
  const leave = () => {
    setZoom(root.parent);
    onAll();
  };
  const key = (event: KeyboardEvent) => {
    const frame = focus && frames.includes(focus) ? focus : root;
    const drawn = (f: Frame) => frames.includes(f);
    const siblings = frames.filter((f) => f.depth === frame.depth).sort((a, b) => a.x - b.x);
    const place = siblings.indexOf(frame);
    const below = frame.children.filter(drawn).sort((a, b) => b.width - a.width)[0];
    const above = frame !== root ? frame.parent : null;
    const moves: Record<string, () => void> = {
      ArrowRight: () => setFocus(siblings[place + 1] ?? frame),
      ArrowLeft: () => setFocus(siblings[place - 1] ?? frame),
      ArrowDown: () => setFocus((inverted ? above : below) ?? frame),
      ArrowUp: () => setFocus((inverted ? below : above) ?? frame),
      Enter: () => enter(frame),
      Backspace: leave,
      Escape: () => { setZoom(null); onAll(); },
      "/": () => searchBox.current?.focus(),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  };

  const notes = page.activity!.kernel.flatMap((d) => d.warnings.map((w) => `${d.device}: ${w}`));
  const said = focus && frames.includes(focus) ? focus : root;
  const sum = found.reduce((s, f) => s + weightOf(f, measure), 0);
  const sumText = measure === "energy" ? joulesText(sum) : measure === "time" ? secondsText(sum) : countText(sum);
  const kinds = [...new Set(frames.map(kindOfFrame))].filter((k): k is Kind => k !== null);
  const trail: Frame[] = [];
  for (let f: Frame | null = root; f; f = f.parent) trail.unshift(f);
  return (
    <section aria-labelledby="flame">
      <Heading id="flame" more={(
      <div class="controls">
        {partTree ? <Choice label="Stack" value={shown} onChange={setPartView} options={partViews} /> : <>
          <Choice label="Stack" value={view} onChange={(v) => { setView(v); setZoom(null); }} options={[
            ...(hasLayers ? [["layer", "phase > layer > kernel"] as [View, string]] : []),
            ...(hasRanges ? [["range", "range > kernel"] as [View, string]] : []),
            ...(hasProcesses ? [["process", "process > kernel"] as [View, string]] : []),
            ["kind", "kind > kernel"],
            ["kernel", "kernel"],
          ]} />
          <Choice label="Width" value={measure} onChange={setMeasure} options={[
            ["energy", "energy"], ["time", "time"], ["number", "launches"],
          ]} />
          <Choice label="Colour" value={colouring} onChange={setColouring} options={[
            ["kind", "kind"], ["power", "power"],
          ]} />
        </>}
        {(hasLayers || hasRanges) && <label title="layers.0 to layers.11 as one frame"><input type="checkbox" checked={fold} onChange={() => setFold(!fold)} /> fold</label>}
        <label><input type="checkbox" checked={inverted} onChange={() => setInverted(!inverted)} /> upward</label>
        <input ref={searchBox} type="search" placeholder="Search" aria-label="Search the flame graph"
          value={search} onInput={(e) => setSearch(e.currentTarget.value)} />
        {search.trim() && (
          <span class="soft" role="status">
            {found.length === 0 ? "no match" : `${sumText}, ${percentText(sum / weightOf(root, measure))}`}
          </span>
        )}
      </div>
      )}>Energy flame graph</Heading>
      {selection && <OfSelection page={page} part={part} shows={partTree !== null} onWhole={onWhole} />}
      {trail.length > 1 && <nav class="trail" aria-label="Zoom">
        {trail.map((f, i) => (
          <button type="button" key={i} disabled={f === root} onClick={() => { setZoom(f); onAll(); }}>
            {f.name.length > 40 ? `${f.name.slice(0, 40)}…` : f.name}
          </button>
        ))}
      </nav>}
      <div ref={holder} class="icicle">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-label="Energy flame graph. Arrow keys move, Enter zooms in, Backspace zooms out, slash searches."
          aria-describedby="frame"
          onKeyDown={key}
          onMouseMove={(e) => setFocus(at(e))}
          onMouseLeave={() => setFocus(null)}
          onClick={(e) => enter(at(e))}
        />
      </div>
      <div class="frame" id="frame" aria-live="polite">
        <b>{said.full.length > 600 ? `${said.full.slice(0, 600)}…` : said.full}</b>
        {said.row?.detail && <span class="soft"> {said.row.detail}</span>}
        <br />
        {describe(said, tree, measure).join(" · ")}
      </div>
      {notes.length > 0 && (
        <details class="warnings" open={!page.activity!.kernel.some((d) => d.kernels_joules > 0)}>
          <summary>{notes.length} {notes.length === 1 ? "note" : "notes"} on the attribution</summary>
          <ul>{notes.map((n) => <li key={n}>{n}</li>)}</ul>
        </details>
      )}
      {colouring === "kind" ? (
        <ul class="legend">
          {kinds.map((k) => (
            <li key={k}><span class="swatch" style={{ background: KIND_COLOURS[k] }} />{k}</li>
          ))}
          {frames.some((f) => f.kind === "idle") && <li><span class="swatch" style={{ background: NEUTRAL.idle }} />idle</li>}
          <li><span class="swatch hatched" style={{ background: NEUTRAL.unattributed }} />not resolvable, or unattributed</li>
        </ul>
      ) : (
        <p class="legend scale">
          {wattsText(powers.low)}
          <span style={{ background: `linear-gradient(90deg, ${[0, 0.25, 0.5, 0.75, 1].map(cividis).join(", ")})` }} />
          {wattsText(powers.high)} above idle
        </p>
      )}
    </section>
  );
}

function OfSelection({ page, part, shows, onWhole }: {
  page: Page; part: Part | null; shows: boolean; onWhole: () => void;
}) {
  const whole = <button type="button" onClick={onWhole}>Whole run</button>;
  if (!shows) {
    return <p class="selected"><b>Of the whole run, not of the selection.</b> {wholeReason(page)} {whole}</p>;
  }
  const missing = page.stacks.filter((_, i) => part!.wholes[i] === null).map((d) => d.device);
  return (
    <p class="selected">
      Selection: <b>{secondsText(part!.begin)} to {secondsText(part!.end)}</b>, energy only: times, launches and the
      kernels of each layer are held for the whole run.
      {missing.length > 0 ? ` Not held by time: ${missing.join(", ")}.` : ""} {whole}
    </p>
  );
}

function rootOf(frame: Frame): Frame {
  let at = frame;
  while (at.parent) at = at.parent;
  return at;
}

function isWithin(frame: Frame, holder: Frame): boolean {
  for (let f: Frame | null = frame; f; f = f.parent) if (f === holder) return true;
  return false;
}
