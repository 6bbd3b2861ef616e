// Tables: sorting, filtering and copying.
import { useMemo, useState } from "preact/hooks";

export type Cell = string | number | null;

export interface Column<T> {
  key: string;
  title: string;
  help?: string;
  numeric?: boolean;
  hidden?: boolean; // at first
  roomy?: boolean; // hidden at first in a narrow window
  value: (row: T) => Cell; // sorted by, and copied with all digits
  show?: (row: T) => string; // on the page
  within?: (row: T) => string; // the same below the row that holds it, in a tree
  below?: (row: T) => string | null; // in small letters under it, on the page
  low?: (row: T) => number | null; // of an interval bar
  high?: (row: T) => number | null;
  unsure?: (row: T) => boolean; // only the interval is drawn
  wide?: boolean;
}

export interface Order {
  key: string;
  down: boolean;
}

function compare(a: Cell, b: Cell): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b));
}

// Absent cells come last in either direction; equal rows keep their order.
export function sorted<T>(rows: T[], columns: Column<T>[], order: Order | null): T[] {
  const column = columns.find((c) => c.key === order?.key);
  if (!column || !order) return rows;
  return [...rows].sort((a, b) => {
    const x = column.value(a);
    const y = column.value(b);
    if (x === null || y === null) return x === y ? 0 : x === null ? 1 : -1;
    return order.down ? compare(y, x) : compare(x, y);
  });
}

// As a filter: the one row of this name.
export const exactly = (name: string): string => `"${name}"`;

// Rows in which some text has every word; of a filter in quotation marks, in which some text is it.
export function filtered<T>(rows: T[], columns: Column<T>[], words: string): T[] {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return rows;
  const texts = columns.filter((c) => !c.numeric);
  const exact = /^"([^]+)"$/.exec(words)?.[1];
  if (exact !== undefined) return rows.filter((row) => texts.some((c) => c.value(row) === exact));
  return rows.filter((row) => {
    const text = texts.map((c) => String(c.value(row) ?? "")).join(" ").toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

const csvField = (cell: Cell): string => {
  const text = cell === null ? "" : String(cell);
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
};

export function toCsv<T>(rows: T[], columns: Column<T>[]): string {
  const lines = [columns.map((c) => csvField(c.key)).join(",")];
  for (const row of rows) lines.push(columns.map((c) => csvField(c.value(row))).join(","));
  return lines.join("\n") + "\n";
}

const markdownCell = (text: string): string =>
  text.replace(/\\/g, "\\\\").replace(/\|/g, "\\|").replace(/</g, "&lt;").replace(/\s+/g, " ");

export function toMarkdown<T>(rows: T[], columns: Column<T>[]): string {
  const line = (cells: string[]) => `| ${cells.join(" | ")} |`;
  const out = [
    line(columns.map((c) => markdownCell(c.title))),
    line(columns.map((c) => (c.numeric ? "---:" : "---"))),
  ];
  for (const row of rows) {
    out.push(line(columns.map((c) => markdownCell(c.show ? c.show(row) : String(c.value(row) ?? "")))));
  }
  return out.join("\n") + "\n";
}

// A table with sorting, a filter, a choice of columns, copying and interval bars.

const FIRST = 50;

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages from file:// may lack the clipboard's interface.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

// Where a row of a tree stands.
export interface Tree<T> {
  id: (row: T) => number;
  parent: (row: T) => number; // -1: none
  depth: (row: T) => number;
}

const NARROW = 480; // pixels
const OPEN = 24; // rows that are seen at first

// The rows whose children are seen at first: the first levels.
function openAtFirst<T>(rows: T[], tree: Tree<T>): Set<number> {
  const open = new Set<number>();
  const below = new Map<number, T[]>();
  for (const row of rows) below.set(tree.parent(row), [...(below.get(tree.parent(row)) ?? []), row]);
  let level = below.get(-1) ?? [];
  let seen = level.length;
  while (level.length > 0) {
    const next = level.flatMap((row) => below.get(tree.id(row)) ?? []);
    if (next.length === 0 || (seen + next.length > OPEN && open.size > 0)) break;
    level.forEach((row) => below.has(tree.id(row)) && open.add(tree.id(row)));
    seen += next.length;
    level = next;
  }
  return open;
}

// Parents first, siblings in the order of `rows`; without what lies below a closed row.
function inTree<T>(rows: T[], tree: Tree<T>, open: Set<number>): T[] {
  const below = new Map<number, T[]>();
  for (const row of rows) below.set(tree.parent(row), [...(below.get(tree.parent(row)) ?? []), row]);
  const out: T[] = [];
  const visit = (parent: number) => {
    for (const row of below.get(parent) ?? []) {
      out.push(row);
      if (open.has(tree.id(row))) visit(tree.id(row));
    }
  };
  visit(-1);
  return out;
}

interface Props<T> {
  name: string;
  rows: T[];
  columns: Column<T>[];
  order?: Order;
  filter?: string;
  onFilter?: (words: string) => void;
  note?: string;
  tree?: Tree<T>; // rows are shown as one where there is no filter
}

export function Table<T>({ name, rows, columns, order: first, filter, onFilter, note, tree }: Props<T>) {
  const [order, setOrder] = useState<Order | null>(first ?? null);
  const [own, setOwn] = useState("");
  const [hidden, setHidden] = useState(() => new Set(columns.filter((c) => c.hidden || (c.roomy && innerWidth < NARROW) || rows.every((r) => c.value(r) === null)).map((c) => c.key)));
  const [limit, setLimit] = useState(FIRST);
  const [said, setSaid] = useState("");
  const words = filter ?? own;
  const setWords = onFilter ?? setOwn;
  const shown = columns.filter((c) => !hidden.has(c.key));
  const [open, setOpen] = useState(() => (tree ? openAtFirst(rows, tree) : new Set<number>()));
  const holders = useMemo(() => new Set(tree ? rows.map(tree.parent) : []), [rows, tree]);
  const isTree = tree !== undefined && words.trim() === "";
  const all = useMemo(
    () => {
      const found = sorted(filtered(rows, columns, words), columns, order);
      return isTree ? inTree(found, tree, open) : found;
    },
    [rows, columns, words, order, isTree, open],
  );
  const toggle = (id: number) => {
    const next = new Set(open);
    if (!next.delete(id)) next.add(id);
    setOpen(next);
  };
  const most = useMemo(() => {
    const greatest = new Map<string, number>();
    for (const c of columns) {
      if (c.high) greatest.set(c.key, Math.max(0, ...rows.map((r) => c.high!(r) ?? 0)));
    }
    return greatest;
  }, [rows, columns]);
  const copy = async (text: string, what: string) => {
    setSaid((await copyText(text)) ? `${what} copied: ${all.length} rows` : "the browser did not allow it");
  };
  const sortBy = (key: string, numeric: boolean) =>
    setOrder((o) => (o?.key === key ? { key, down: !o.down } : { key, down: numeric }));
  return (
    <div class="table">
      <div class="controls">
        <input
          type="search"
          placeholder={`Filter ${name}`}
          aria-label={`Filter ${name}`}
          value={words}
          onInput={(e) => setWords(e.currentTarget.value)}
        />
        <details class="columns">
          <summary>Columns</summary>
          <div>
            {columns.map((c) => (
              <label key={c.key}>
                <input
                  type="checkbox"
                  checked={!hidden.has(c.key)}
                  onChange={() => {
                    const next = new Set(hidden);
                    if (!next.delete(c.key)) next.add(c.key);
                    setHidden(next);
                  }}
                />{" "}
                {c.title}
              </label>
            ))}
          </div>
        </details>
        <button type="button" onClick={() => copy(toCsv(all, shown), "CSV")}>Copy CSV</button>
        <button type="button" onClick={() => copy(toMarkdown(all, shown), "Markdown")}>Copy Markdown</button>
        <span class="soft" role="status">{said}</span>
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Table of ${name}`}>
        <table>
          <thead>
            <tr>
              {shown.map((c) => (
                <th
                  key={c.key}
                  scope="col"
                  class={c.numeric ? "number" : ""}
                  aria-sort={order?.key === c.key ? (order.down ? "descending" : "ascending") : "none"}
                >
                  <button type="button" title={c.help} onClick={() => sortBy(c.key, !!c.numeric)}>
                    {c.title}
                    <span aria-hidden="true">{order?.key === c.key ? (order.down ? " ↓" : " ↑") : ""}</span>
                  </button>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {all.slice(0, limit).map((row, i) => (
              <tr key={i}>
                {shown.map((c, k) => (
                  <TableCell key={c.key} column={c} row={row} most={most.get(c.key) ?? 0}
                    branch={k > 0 || !isTree ? undefined : {
                      depth: tree.depth(row), open: holders.has(tree.id(row)) ? open.has(tree.id(row)) : null,
                      toggle: () => toggle(tree.id(row)),
                    }} />
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="soft">
        {all.length > limit ? (
          <button type="button" onClick={() => setLimit(limit + 500)}>
            Show more: {all.length - limit} of {all.length} rows are not shown
          </button>
        ) : (
          `${all.length}${all.length < rows.length ? ` of ${rows.length}` : ""} ${all.length === 1 ? "row" : "rows"}`
        )}
        {note && ` · ${note}`}
      </p>
    </div>
  );
}

interface Branch {
  depth: number;
  open: boolean | null; // null: nothing lies below
  toggle: () => void;
}

function TableCell<T>({ column, row, most, branch }: { column: Column<T>; row: T; most: number; branch?: Branch }) {
  const value = column.value(row);
  const show = (branch && column.within) ?? column.show;
  const text = show ? show(row) : String(value ?? "");
  const high = column.high?.(row) ?? null;
  const low = column.low?.(row) ?? null;
  return (
    <td class={column.numeric ? "number" : column.wide ? "text wide" : "text"} title={String(value ?? text)}>
      <span style={branch && { paddingLeft: `${0.9 * branch.depth}rem` }}>
        {branch && (branch.open === null ? <i class="leaf" /> : (
          <button type="button" class="twist" aria-expanded={branch.open} aria-label={`${branch.open ? "Close" : "Open"} ${text}`} onClick={branch.toggle}>
            {branch.open ? "▾" : "▸"}
          </button>
        ))}
        {text}
      </span>
      {column.below?.(row) && <small>{column.below(row)}</small>}
      {high !== null && low !== null && most > 0 && (
        <span class="cell-bar" aria-hidden="true">
          {!column.unsure?.(row) && typeof value === "number" && value > 0 && <i style={{ width: `${(100 * value) / most}%` }} />}
          <b style={{ left: `${(100 * low) / most}%`, width: `${Math.max((100 * (high - low)) / most, 0.5)}%` }} />
        </span>
      )}
    </td>
  );
}

export function Choice<T extends string>({ label, value, options, onChange }: {
  label: string;
  value: T;
  options: [T, string][];
  onChange: (value: T) => void;
}) {
  if (options.length < 2) return null;
  return (
    <label class="choice">
      {label}{" "}
      <select value={value} onChange={(e) => onChange(e.currentTarget.value as T)}>
        {options.map(([key, text]) => <option key={key} value={key}>{text}</option>)}
      </select>
    </label>
  );
}
