// Tables: sorting, filtering and copying.

export type Cell = string | number | null;

export interface Column<T> {
  key: string;
  title: string;
  help?: string;
  numeric?: boolean;
  hidden?: boolean; // at first
  value: (row: T) => Cell; // sorted by, and copied with all digits
  show?: (row: T) => string; // on the page
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
