// Windows, isolated re-runs and reduced clocks under the power charts.
import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { cut, inkOn, prepare, textScale, useWidth } from "./canvas";
import { gutter, MARGIN } from "./chart";
import type { Page } from "./data";
import type { Range } from "./line";
import { countText, errorText, joulesText, secondsText } from "./quantity";
import type { Selection } from "./selection";
import { colour, ThemeVersion } from "./theme";

const ROW = 20;
const COLOURS = ["#3d8fd1", "#e0762b", "#1fa882", "#d28fb5", "#e8b23a", "#7cc4ec", "#a9b0b8", "#efe26a"];

interface Span {
  row: number;
  begin: number;
  length: number;
  text: string;
  words: string; // with figures
  fill: string;
}

function spansOf(page: Page): { rows: string[]; spans: Span[] } {
  const timeline = page.timeline!;
  const rows: string[] = [];
  const spans: Span[] = [];
  const label = (id: number) => {
    const at = page.profile.domains.findIndex((d) => d.id === id);
    return at < 0 ? `domain ${id}` : page.labels[at];
  };
  for (let lane = 0; lane < timeline.windows.lanes; ++lane) rows.push(lane === 0 ? "windows" : "");
  for (const [lane, name, begin, length, count, energies] of timeline.windows.blocks) {
    const one = name < 0 ? "windows of several names" : timeline.windows.names[name];
    const text = count > 1 ? `${countText(count)} × ${one}` : one;
    const total = new Set(page.profile.total.of);
    const figures = (energies ?? [])
      .filter(([id]) => total.has(id))
      .map(([id, energy, error]) => `${label(id)} ${joulesText(energy / 1e6)} ${errorText(error, energy)}`);
    spans.push({
      row: lane, begin, length, text, fill: COLOURS[Math.max(name, 0) % COLOURS.length],
      words: [text, secondsText(length), ...figures].join(" · "),
    });
  }
  for (const id of new Set(timeline.clock_limits.map((l) => l.id))) {
    rows.push(`${label(id)} limit`);
    for (const limit of timeline.clock_limits.filter((l) => l.id === id)) {
      const reasons = limit.reasons.map((r) => r.replace(/_/g, " ")).join(", ");
      const length = limit.end_seconds - limit.begin_seconds;
      spans.push({
        row: rows.length - 1, begin: limit.begin_seconds, length, text: reasons, fill: "#e8b23a",
        words: `${label(id)}: clocks reduced by ${reasons} · ${secondsText(length)}`,
      });
    }
  }
  if (timeline.replays.length > 0) {
    rows.push("re-runs");
    for (const [begin, length, name] of timeline.replays) {
      spans.push({
        row: rows.length - 1, begin, length, text: name ?? "between", fill: "#a9b0b8",
        words: `isolated re-run, in no figure: ${name ?? "between two re-runs"} · ${secondsText(length)}`,
      });
    }
  }
  spans.sort((a, b) => a.row - b.row || a.begin - b.begin);
  return { rows, spans };
}

interface Props {
  page: Page;
  range: Range;
  selection: Selection | null;
  onSelect: (selection: Selection | null) => void;
}

export function Tracks({ page, range, selection, onSelect }: Props) {
  const { rows, spans } = useMemo(() => spansOf(page), [page]);
  const [focus, setFocus] = useState<number | null>(null);
  const holder = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(holder);
  const scale = textScale();
  const rowHeight = Math.round(ROW * scale);
  const theme = useContext(ThemeVersion);
  const left = gutter();
  const plot = Math.max(width - left - MARGIN, 10);
  const edge = (t: number) => left + (plot * (t - range.begin)) / (range.end - range.begin);

  useEffect(() => {
    if (!canvas.current || width === 0) return;
    const context = prepare(canvas.current, width, rows.length * rowHeight);
    context.font = `${11 * scale}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    context.save();
    context.beginPath();
    context.rect(left, 0, plot, rows.length * rowHeight);
    context.clip();
    spans.forEach((span, i) => {
      const x = edge(span.begin);
      const w = Math.max(edge(span.begin + span.length) - x, 1);
      if (x > width || x + w < left) return;
      const y = span.row * rowHeight;
      context.fillStyle = span.fill;
      context.fillRect(x, y + 1, w > 3 ? w - 1 : w, rowHeight - 2);
      const from = Math.max(x, left);
      const text = cut(context, span.text, Math.min(x + w, width) - from - 8);
      context.fillStyle = inkOn(span.fill);
      if (text) context.fillText(text, from + 4, y + rowHeight / 2);
      if (i === focus) {
        context.strokeStyle = colour("ink");
        context.lineWidth = 2;
        context.strokeRect(x + 1, y + 1, Math.max(w - 2, 1), rowHeight - 3);
      }
    });
    if (selection) {
      context.fillStyle = colour("selected");
      context.fillRect(edge(selection.begin), 0, edge(selection.end) - edge(selection.begin), rows.length * rowHeight);
    }
    context.restore();
    context.fillStyle = colour("soft");
    context.textAlign = "right";
    rows.forEach((row, i) => {
      context.fillText(cut(context, row, left - 4), left - 6, i * rowHeight + rowHeight / 2);
    });
  }, [spans, rows, width, range.begin, range.end, selection, focus, theme]);

  if (rows.length === 0) return null;
  const at = (event: MouseEvent): number | null => {
    const box = canvas.current!.getBoundingClientRect();
    const t = range.begin + ((event.clientX - box.left - left) / plot) * (range.end - range.begin);
    const row = Math.floor((event.clientY - box.top) / rowHeight);
    const slack = (2 * (range.end - range.begin)) / plot;
    for (let i = spans.length - 1; i >= 0; --i) {
      const s = spans[i];
      if (s.row === row && t >= s.begin - slack && t <= s.begin + s.length + slack) return i;
    }
    return null;
  };
  const select = (i: number | null) =>
    onSelect(i === null ? null : { begin: spans[i].begin, end: spans[i].begin + spans[i].length });
  const key = (event: KeyboardEvent) => {
    const i = focus ?? -1;
    if (event.key === "ArrowRight") setFocus(Math.min(i + 1, spans.length - 1));
    else if (event.key === "ArrowLeft") setFocus(Math.max(i - 1, 0));
    else if (event.key === "Enter" && focus !== null) select(focus);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div>
      <div ref={holder} class="tracks">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-label={`${rows.filter(Boolean).join(", ")} over time. Left and right move, Enter selects the interval.`}
          aria-describedby="span"
          onKeyDown={key}
          onMouseMove={(e) => setFocus(at(e))}
          onMouseLeave={() => setFocus(null)}
          onClick={(e) => select(at(e))}
        />
      </div>
      <p class="frame one" id="span" aria-live="polite">{focus === null ? "" : spans[focus].words}</p>
    </div>
  );
}
