import { render } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Balance, Findings } from "./balance";
import { BenchSections } from "./bench_view";
import { ComparisonSections } from "./comparison_view";
import { isRun, readPage, type Page } from "./data";
import { Icicle, type RowOf } from "./icicle_view";
import { JobSections } from "./job_view";
import { partOf } from "./part";
import { Requests } from "./requests_view";
import type { Results } from "./results";
import type { Selection } from "./part";
import { CopyLink, Heading } from "./share";
import "./style.css";
import { SweepSections } from "./sweep_view";
import { exactly } from "./table";
import { Tables, type TableName } from "./tables_view";
import { interval, oneOf, Shared, ThemeVersion, useTheme, useUrl, type Theme } from "./state";
import { Timeline } from "./timeline_view";

// By the build (vite.config.ts): of two pages each has its own parts only.
declare const IS_RUN: boolean;

function App({ page, tools }: { page: Page | Results; tools: Element | null }) {
  const [theme, setTheme, version] = useTheme();
  if (tools) render(<ThemeSwitch theme={theme} onChange={setTheme} />, tools);
  return (
    <ThemeVersion.Provider value={version}>
      {IS_RUN ? isRun(page) && <RunSections page={page} /> : !isRun(page) && <ResultSections page={page} />}
    </ThemeVersion.Provider>
  );
}

const TABLES: readonly TableName[] = ["layer", "kernel", "phase", "range", "window", "process"];
const text = oneOf<string>("");

// What the page has without a script, at another place.
function Moved({ what }: { what: string }) {
  const holder = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = document.querySelector(`#headline ${what}`);
    if (element) holder.current!.append(element);
  }, []);
  return <div ref={holder} />;
}

function RunSections({ page }: { page: Page }) {
  const [table, setTable] = useUrl<TableName>("tab", "layer", oneOf<TableName>("layer", TABLES));
  const [filter, setFilter] = useUrl("filter", "", text);
  const [selection, setSelection] = useUrl<Selection | null>("sel", null, interval);
  const [search, setSearch] = useUrl("find", "", text);
  const time = useMemo(() => new Shared<number | null>(null), []);
  const pointed = useMemo(() => new Shared<RowOf[] | null>(null), []);
  const part = useMemo(() => (selection ? partOf(page, selection) : null), [page, selection]);
  useLayoutEffect(() => document.querySelector("#headline .findings")?.remove(), []);
  const showWhole = () => {
    setSelection(null);
    setFilter("");
  };
  const choose = (name: TableName) => {
    setTable(name);
    setFilter("");
  };
  const hasFrames = page.activity !== null && page.stacks.length > 0;
  return (
    <>
      <Balance page={page} />
      <Findings page={page} onTarget={(target) => { setSelection(target.time); setSearch(hasFrames ? target.search : ""); }} />
      {hasFrames && (
        <Icicle page={page} time={time} pointed={pointed} search={search} onSearch={setSearch} selection={selection} part={part}
          onWhole={showWhole} onRow={(by, name) => { setTable(by); setFilter(exactly(name)); }} onAll={() => setFilter("")} />
      )}
      {page.timeline && <Timeline page={page} time={time} pointed={pointed} selection={selection} onSelect={setSelection} />}
      <Tables page={page} chosen={table} filter={filter} onChoose={choose} onFilter={setFilter}
        selection={selection} part={part} onWhole={showWhole} />
      {page.serving && <Requests serving={page.serving} />}
      <section aria-labelledby="devices">
        <Heading id="devices">Devices</Heading>
        <Moved what=".scroll" />
        <Moved what=".hero .whose" />
        <Moved what=".total" />
      </section>
    </>
  );
}

function ResultSections({ page }: { page: Results }) {
  return (
    <>
      {page.comparison && <ComparisonSections comparison={page.comparison} runs={page.compared_runs} />}
      {page.recommendation && (
        <SweepSections sweeps={page.recommendation.sweeps} gpus={page.recommendation.gpus} runs={page.sweep_runs ?? []} />
      )}
      {page.bench && <BenchSections cases={page.bench.cases} />}
      {page.job && <JobSections hosts={page.job.hosts} ranks={page.job.ranks} />}
    </>
  );
}

function ThemeSwitch({ theme, onChange }: { theme: Theme; onChange: (theme: Theme) => void }) {
  return (
    <>
    <CopyLink />{" "}
    <label>
      Colours{" "}
      <select value={theme} onChange={(e) => onChange(e.currentTarget.value as Theme)}>
        <option value="system">as the system</option>
        <option value="light">light</option>
        <option value="dark">dark</option>
      </select>
    </label>
    </>
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
