import { describe, expect, it } from "vitest";
import { exactly, filtered, sorted, toCsv, toMarkdown, type Column } from "../src/table";

interface Thing { name: string; energy: number | null }
const columns: Column<Thing>[] = [
  { key: "name", title: "name", value: (t) => t.name },
  { key: "energy_joules", title: "energy", numeric: true, value: (t) => t.energy, show: (t) => `${t.energy} J` },
];
const things: Thing[] = [{ name: "b", energy: 2 }, { name: "none", energy: null }, { name: "a", energy: 10 }];

describe("sorted", () => {
  it("orders numbers as numbers, absent ones last in both directions", () => {
    const order = (down: boolean) => sorted(things, columns, { key: "energy_joules", down }).map((t) => t.energy);
    expect(order(true)).toEqual([10, 2, null]);
    expect(order(false)).toEqual([2, 10, null]);
  });
  it("leaves the rows where no column is chosen", () => {
    expect(sorted(things, columns, null)).toBe(things);
    expect(sorted(things, columns, { key: "none", down: true })).toBe(things);
  });
});

describe("filtered", () => {
  it("takes words, not figures", () => {
    expect(filtered(things, columns, "NO ne").map((t) => t.name)).toEqual(["none"]);
    expect(filtered(things, columns, "10")).toEqual([]);
    expect(filtered(things, columns, " ")).toBe(things);
  });
  it("takes the one row of a name in quotation marks, whatever is in the name", () => {
    const layers = ["model.layers.10", "model.layers.1", 'say "model.layers.1"', 'a "b" c'].map((name) => ({ name, energy: 1 }));
    for (const { name } of layers) expect(filtered(layers, columns, exactly(name)).map((t) => t.name)).toEqual([name]);
    expect(filtered(layers, columns, "model.layers.1")).toHaveLength(3);
  });
});

describe("copying", () => {
  it("writes CSV with all digits, quotes and empty cells", () => {
    const rows = [{ name: 'say "a", b\nc', energy: 0.1234567891 }, { name: "x", energy: null }];
    expect(toCsv(rows, columns)).toBe('name,energy_joules\n"say ""a"", b\nc",0.1234567891\nx,\n');
  });
  it("writes Markdown in which names are text", () => {
    const rows = [{ name: "a|b<script>\n", energy: 1 }];
    expect(toMarkdown(rows, columns)).toBe("| name | energy |\n| --- | ---: |\n| a\\|b&lt;script>  | 1 J |\n");
  });
});
