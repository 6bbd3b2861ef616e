import { render } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Balance } from "./balance_view";
import { BenchSections } from "./bench_view";
import { ComparisonSections } from "./comparison_view";
import { isRun, readPage, type Page } from "./data";
import { Icicle } from "./icicle_view";
import { JobSections } from "./job_view";
import { partOf } from "./part";
import type { Results } from "./results";
import type { Selection } from "./selection";
import "./style.css";
import { SweepSections } from "./sweep_view";
import { exactly } from "./table";
import { Tables, type TableName } from "./tables_view";
import { ThemeVersion, useTheme, type Theme } from "./theme";
import { Timeline } from "./timeline_view";

function App({ page, tools }: { page: Page | Results; tools: Element | null }) {
  const [theme, setTheme, version] = useTheme();
  if (tools) render(<ThemeSwitch theme={theme} onChange={setTheme} />, tools);
  return (
    <ThemeVersion.Provider value={version}>
      {isRun(page) ? <RunSections page={page} /> : <ResultSections page={page} />}
    </ThemeVersion.Provider>
  );
}

function RunSections({ page }: { page: Page }) {
  const [table, setTable] = useState<TableName>("layer");
  const [filter, setFilter] = useState("");
  const [selection, setSelection] = useState<Selection | null>(null);
  const part = useMemo(() => (selection ? partOf(page, selection) : null), [page, selection]);
  const showWhole = () => {
    setSelection(null);
    setFilter("");
  };
  const choose = (name: TableName) => {
    setTable(name);
    setFilter("");
  };
  return (
    <>
      <Balance page={page} />
      {page.activity && page.stacks.length > 0 && (
        <Icicle page={page} selection={selection} part={part} onWhole={showWhole}
          onRow={(by, name) => { setTable(by); setFilter(exactly(name)); }} onAll={() => setFilter("")} />
      )}
      {page.timeline && <Timeline page={page} selection={selection} onSelect={setSelection} />}
      <Tables page={page} chosen={table} filter={filter} onChoose={choose} onFilter={setFilter}
        selection={selection} part={part} onWhole={showWhole} />
    </>
  );
}

function ResultSections({ page }: { page: Results }) {
  return (
    <>
      {page.comparison && <ComparisonSections comparison={page.comparison} />}
      {page.recommendation && <SweepSections sweeps={page.recommendation.sweeps} runs={page.sweep_runs ?? []} />}
      {page.bench && <BenchSections cases={page.bench.cases} />}
      {page.job && <JobSections hosts={page.job.hosts} ranks={page.job.ranks} />}
    </>
  );
}

function ThemeSwitch({ theme, onChange }: { theme: Theme; onChange: (theme: Theme) => void }) {
  return (
    <label>
      Colours{" "}
      <select value={theme} onChange={(e) => onChange(e.currentTarget.value as Theme)}>
        <option value="system">as the system</option>
        <option value="light">light</option>
        <option value="dark">dark</option>
      </select>
    </label>
  );
}

function Damage({ message }: { message: string }) {
  return (
    <p class="alert" role="alert">
      {message} The figures above are complete. Write the page again with: jouleprof report FILE --html OUT.html
    </p>
  );
}

const app = document.getElementById("app")!;
try {
  const page = readPage(document.getElementById("data")?.textContent ?? "");
  render(<App page={page} tools={document.getElementById("tools")} />, app);
} catch (error) {
  render(<Damage message={(error as Error).message} />, app);
}
