// A table with sorting, a filter, a choice of columns, copying and interval bars.
import { useMemo, useState } from "preact/hooks";
import { filtered, sorted, toCsv, toMarkdown, type Column, type Order } from "./table";

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

interface Props<T> {
  name: string;
  rows: T[];
  columns: Column<T>[];
  order?: Order;
  filter?: string;
  onFilter?: (words: string) => void;
  note?: string;
}

export function Table<T>({ name, rows, columns, order: first, filter, onFilter, note }: Props<T>) {
  const [order, setOrder] = useState<Order | null>(first ?? null);
  const [own, setOwn] = useState("");
  const [hidden, setHidden] = useState(() => new Set(columns.filter((c) => c.hidden || rows.every((r) => c.value(r) === null)).map((c) => c.key)));
  const [limit, setLimit] = useState(FIRST);
  const [said, setSaid] = useState("");
  const words = filter ?? own;
  const setWords = onFilter ?? setOwn;
  const shown = columns.filter((c) => !hidden.has(c.key));
  const all = useMemo(
    () => sorted(filtered(rows, columns, words), columns, order),
    [rows, columns, words, order],
  );
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
                {shown.map((c) => (
                  <TableCell key={c.key} column={c} row={row} most={most.get(c.key) ?? 0} />
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

function TableCell<T>({ column, row, most }: { column: Column<T>; row: T; most: number }) {
  const value = column.value(row);
  const text = column.show ? column.show(row) : String(value ?? "");
  const high = column.high?.(row) ?? null;
  const low = column.low?.(row) ?? null;
  return (
    <td class={column.numeric ? "number" : column.wide ? "text wide" : "text"} title={column.numeric ? String(value ?? "") : text}>
      <span>{text}</span>
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
