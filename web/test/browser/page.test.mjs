// The page in a browser, from file:// and without a network: node --test test/browser/
//
// JOULEPROF_TOOL names the tool, JOULEPROF_SIM the simulated NVML; CHROMIUM the browser.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, it } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const TOOL = process.env.JOULEPROF_TOOL;
const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const SOURCE = resolve(fileURLToPath(import.meta.url), "../../../..");
const missing = !existsSync(BROWSER)
  ? `no browser at ${BROWSER}: apt-get install chromium, or set CHROMIUM`
  : !TOOL ? "JOULEPROF_TOOL does not name the tool: use make test-browser" : false;

describe("the page in a browser", { skip: missing }, () => {
  let folder;
  let browser;
  const pages = {};

  const tool = (args, environment = {}) => {
    const done = spawnSync(TOOL, args, {
      cwd: folder, encoding: "utf8",
      env: { ...process.env, HOME: folder, XDG_STATE_HOME: folder, JOULEPROF_NVML_LIBRARY: "/nonexistent", ...environment },
    });
    assert.equal(done.status, 0, done.stderr);
    return done.stdout;
  };
  const write = (name, recording) => {
    pages[name] = join(folder, `${name}.html`);
    tool(["report", recording, "--html", pages[name]]);
  };
  // Another page, by changing the data block of one.
  const changed = (name, from, change) => {
    const text = readFileSync(pages[from], "utf8");
    const begin = text.indexOf(">", text.indexOf('id="data"')) + 1;
    const end = text.indexOf("</script>", begin);
    const block = change(text.slice(begin, end));
    pages[name] = join(folder, `${name}.html`);
    writeFileSync(pages[name], text.slice(0, begin) + block + text.slice(end));
  };
  const changedData = (name, from, change) =>
    changed(name, from, (block) => {
      const data = JSON.parse(block);
      change(data);
      return JSON.stringify(data).replaceAll("<", "\\u003c");
    });

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "jouleprof-page-"));
    write("example", join(SOURCE, "examples/h200-deit.jprof"));
    write("kernels", join(SOURCE, "tests/fixtures/h100/uncapped_mix.jprof"));
    write("traced", join(SOURCE, "examples/h200-layers.jprof"));
    tool(["run", "-o", "cpu.jprof", "--", "true"]);
    write("cpu", join(folder, "cpu.jprof"));
    // The tool is killed while it records.
    spawnSync(TOOL, ["run", "-o", "cut.jprof", "--", "sleep", "9"], {
      cwd: folder, timeout: 5000, killSignal: "SIGKILL", env: { ...process.env, HOME: folder, JOULEPROF_NVML_LIBRARY: "/nonexistent" },
    });
    write("cut", join(folder, "cut.jprof"));
    // Nothing has an energy: every figure is absent, with a reason.
    changedData("nothing", "cpu", ({ profile }) => {
      const total = profile.total;
      Object.assign(total, { provenance: "unavailable", energy_joules: null, interval_joules: null, of: [] });
      for (const d of profile.domains) {
        for (const key of Object.keys(d)) if (key.endsWith("_joules") || key.endsWith("_watts")) d[key] = null;
        for (const key of Object.keys(d.balance)) d.balance[key] = null;
        d.reason = "no sensor";
      }
    });
    tool(["import", join(SOURCE, "tests/fixtures/imports/zeus_sweep.csv"), "-o", "sweep.jprof"]);
    write("import", join(folder, "sweep.jprof"));
    pages.sweep = join(folder, "sweep.html");
    tool(["recommend", "sweep.jprof", "--html", pages.sweep]);
    pages.comparison = join(folder, "comparison.html");
    tool(["compare", join(SOURCE, "examples/h200-kernels.jprof"), join(SOURCE, "examples/h200-deit.jprof"),
      "--accept", "work_differs", "--html", pages.comparison]);
    tool(["merge", join(SOURCE, "examples/h200-kernels.jprof"), "cpu.jprof", "-o", "all.jprof"]);
    write("job", join(folder, "all.jprof"));
    const scenario = join(folder, "scenario.json");
    // Each process of a rank holds a context on one GPU.
    const held = (rank) => ({
      generation: "hopper", idle_watts: 80, held_watts: 127,
      processes: { tree: { environment: `PAGE_RANK=${rank}` }, memory_mib: 512 },
    });
    writeFileSync(scenario, JSON.stringify({ devices: [held(0), held(1)] }));
    if (process.env.JOULEPROF_SIM) {
      tool(["run", "-o", "gpus.jprof", "--", "sh", "-c", "sleep 1; PAGE_RANK=0 sleep 3 & PAGE_RANK=1 sleep 2 & wait; sleep 1"],
        { JOULEPROF_NVML_LIBRARY: process.env.JOULEPROF_SIM, JOULEPROF_NVML_SCENARIO: scenario });
      write("gpus", join(folder, "gpus.jprof"));
      // The second GPU falls off the bus while it is measured.
      const lost = join(folder, "lost.json");
      writeFileSync(lost, JSON.stringify({
        devices: [{ generation: "hopper" }, { generation: "hopper" }], faults: { kind: "gpu_lost", device: 1, at_seconds: 3 },
      }));
      tool(["run", "-q", "-o", "lost.jprof", "--", "sleep", "6"],
        { JOULEPROF_NVML_LIBRARY: process.env.JOULEPROF_SIM, JOULEPROF_NVML_SCENARIO: lost });
      write("lost", join(folder, "lost.jprof"));
    }
    changedData("many", "kernels", (data) => {
      const { rows } = data.activity.kernel[0];
      const name = rows.keys.indexOf("name");
      const number = rows.keys.indexOf("number");
      rows.rows = Array.from({ length: 1000 }, (_, i) => {
        const row = [...rows.rows[i % rows.rows.length]];
        row[name] = `</script><img src=x onerror=alert(1)> kernel ${i}`;
        row[number] = i;
        return row;
      });
      data.stacks[0].stacks = rows.rows.map((_, i) => [1 + (i % 3), null, null, i, 10, 1000000, 1000 * i]);
      const windows = data.timeline.windows;
      windows.lanes = 1;
      windows.names = ["step"];
      windows.blocks = Array.from({ length: 10000 }, (_, i) => [0, 0, i * 1e-3, 9e-4, 1, null]);
    });
    changedData("devices", "example", ({ labels, profile, timeline }) => {
      const [gpu] = profile.domains;
      const [track] = timeline.power;
      for (let i = 1; i < 32; ++i) {
        labels.push(`gpu${i}`);
        profile.domains.push({ ...gpu, id: 100 + i, device: `gpu${i}`, energy_joules: gpu.energy_joules - i });
        timeline.power.push({ ...track, id: 100 + i });
      }
    });
    // A server's requests, two or three of which are in flight at a time.
    changedData("requests", "traced", ({ timeline }) => {
      const lengths = Array.from({ length: 40 }, (_, i) => 1 + (i % 3) / 2);
      timeline.windows = {
        lanes: 4, request_lanes: 3, names: ["request", "warm-up"],
        blocks: [...lengths.map((length, i) => [i % 3, 0, i / 2, length, 1, [[0, 20e6, 1e6]]]), [3, 1, 0, 2, 1, null]],
        in_flight: { begin_seconds: 0, step_seconds: 0.1, means: Array.from({ length: 220 }, (_, i) => lengths.filter((l, k) => i / 10 >= k / 2 && i / 10 < k / 2 + l).length) },
      };
    });
    // As of a recording with layers on both sides.
    changedData("layers", "comparison", ({ comparison }) => {
      const difference = (name, before, after, verdict) => ({
        ...comparison.energy, name, detail: "<Linear>", before_joules: before, after_joules: after,
        change_ratio: after / before - 1, interval_ratio: [after / before - 1.02, after / before - 0.98], verdict,
      });
      comparison.by = "layer";
      comparison.energy = difference("energy", 1000, 800, "lower");
      comparison.rows = [
        difference("model", 900, 700, "lower"), difference("model.a", 400, 402, "same"), difference("model.b", 500, 298, "lower"),
      ];
      comparison.unmatched = [{ side: "after", name: "model.new", detail: null, count: 1, energy_joules: 50, reason: null }];
    });
    changedData("bench", "comparison", (data) => {
      delete data.comparison;
      const per = (joules) => ({ energy_joules: joules, interval_joules: [0.95 * joules, 1.05 * joules], provenance: "measured" });
      data.bench = { cases: [{
        workload: "deit-b", mode: "eager", batch: 8, energy_device: "gpu0", energy_reason: null,
        latency: {
          median_seconds: 2e-3, p50_seconds: 2e-3, p90_seconds: 2.1e-3, p99_seconds: 3e-3, quantiles_of_iterations: 1,
          distribution_seconds: Array.from({ length: 200 }, (_, i) => 1.9e-3 + i * 1e-6),
        },
        energy: { profile: {}, per: [{
          phase: null, unit: "token", count: 10, device: per(4e-4), total: per(5e-4), rest: per(1e-4), held: per(1e-4), active: per(2e-4),
        }] },
      }] };
    });
    changed("damaged", "example", (block) => block.slice(0, block.length / 2));
    browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox"] });
  });
  after(async () => {
    await browser?.close();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  const open = async (name, options = {}) => {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 900 }, offline: true, reducedMotion: "reduce", bypassCSP: false, ...options,
    });
    const tab = await context.newPage();
    const problems = [];
    tab.on("pageerror", (error) => problems.push(error.message));
    tab.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    tab.on("dialog", (dialog) => { problems.push("a dialog opened"); return dialog.dismiss(); });
    tab.on("request", (request) => {
      if (!request.url().startsWith("file://")) problems.push(`a request of ${request.url()}`);
    });
    await tab.goto(pathToFileURL(pages[name]).href);
    await tab.waitForFunction(() => document.querySelector("#app")?.childElementCount > 0);
    return { tab, problems, close: () => context.close() };
  };
  // Of a text such as "8.947 kJ": the value, and half of its last printed digit.
  const joules = (text) => {
    const [, number, unit] = /(-?[\d.]+) (mJ|J|kJ|MJ)/.exec(text) ?? [null, "NaN", "J"];
    const scale = { mJ: 1e-3, J: 1, kJ: 1e3, MJ: 1e6 }[unit];
    return [Number(number) * scale, 0.5001 * scale * 10 ** -(number.split(".")[1]?.length ?? 0)];
  };
  const axe = async (tab) => {
    await tab.evaluate(readFileSync(AXE, "utf8"));
    const { violations } = await tab.evaluate(() => globalThis.axe.run(document, {
      rules: { "target-size": { enabled: true }, "label-content-name-mismatch": { enabled: true } },
    }));
    return violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 160)).join(" | ")}`);
  };

  for (const scheme of ["light", "dark"]) {
    for (const width of [320, 1280, 2560]) {
      it(`is accessible and fits: ${scheme}, ${width} px`, async () => {
        for (const name of Object.keys(pages)) {
          const { tab, problems, close } = await open(name, { colorScheme: scheme, viewport: { width, height: 900 } });
          assert.deepEqual(problems, [], name);
          const over = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          assert.ok(over <= 0, `${name} is ${over} px wider than its window`);
          if (width < 2560) assert.deepEqual(await axe(tab), [], name);
          await close();
        }
      });
    }
  }

  it("has the headline without JavaScript", async () => {
    const context = await browser.newContext({ javaScriptEnabled: false, offline: true });
    const tab = await context.newPage();
    await tab.goto(pathToFileURL(pages.example).href);
    const text = await tab.locator("#headline").innerText();
    assert.match(text, /kJ/);
    assert.match(text, /95 % interval/);
    await context.close();
  });

  it("has a message where the data block is damaged", async () => {
    const { tab, close } = await open("damaged");
    assert.match(await tab.locator("[role=alert]").innerText(), /data block of this file is damaged/);
    assert.match(await tab.locator("#headline").innerText(), /kJ/);
    await close();
  });

  it("says that a recording was cut off", async () => {
    const { tab, problems, close } = await open("cut");
    assert.match(await tab.locator("#headline .alert").innerText(), /CUT OFF/);
    assert.deepEqual(problems, []);
    await close();
  });

  it("shows the energy of a selection", async () => {
    const { tab, problems, close } = await open("example");
    await tab.getByLabel("Selection from").fill("12");
    await tab.getByLabel("Selection from").press("Tab");
    await tab.getByLabel("Selection to,").fill("17");
    await tab.getByLabel("Selection to,").press("Tab");
    const text = await tab.locator("div.selected").innerText();
    assert.match(text, /12\.00 s to 17\.00 s/);
    assert.match(text, /gpu0\s+[\d.]+ kJ ±/);
    assert.match(text, /--from 12\.000s --to 17\.000s/);
    assert.deepEqual(problems, []);
    await close();
  });

  const select = async (tab, from, to) => {
    for (const [edge, value] of [["from", from], ["to", to]]) {
      await tab.getByLabel(`Selection ${edge}, `).fill(String(value));
      await tab.getByLabel(`Selection ${edge}, `).press("Tab");
    }
  };
  // The cells of a table's rows by their column's title.
  const rowsOf = (tab) => tab.evaluate(() => {
    const titles = [...document.querySelectorAll("#panel thead th")].map((th) => th.innerText.replace(/ [↑↓]$/, ""));
    return [...document.querySelectorAll("#panel tbody tr")].map((tr) =>
      Object.fromEntries([...tr.children].map((td, i) => [titles[i], td.querySelector("span")?.innerText ?? td.innerText])));
  });

  it("has tables of the selection, whose figures are those of report --from --to", async () => {
    const recording = join(SOURCE, "tests/fixtures/h100/uncapped_mix.jprof");
    const { tab, problems, close } = await open("kernels");
    const data = JSON.parse(await tab.locator("#data").textContent());
    const [slices] = data.slices;
    const from = slices.begin_seconds + 4 * slices.step_seconds;
    const to = slices.begin_seconds + 12 * slices.step_seconds;
    await tab.getByRole("tab", { name: "Kernels" }).click();
    const whole = (await rowsOf(tab)).length;
    await select(tab, from, to);
    const rows = await rowsOf(tab);
    assert.equal(rows.length, whole);
    const part = JSON.parse(tool(["report", recording, "--by", "kernel", "--json", "--from", `${from}s`, "--to", `${to}s`])).devices[0].rows;
    const known = data.activity.kernel[0].rows;
    const keys = known.keys;
    let compared = 0;
    for (const [number, unit, energies] of slices.kernel) {
      const cells = known.rows.find((r) => r[keys.indexOf("number")] === number);
      const [name, detail] = [cells[keys.indexOf("name")], cells[keys.indexOf("detail")]];
      const truth = part.find((r) => r.name === name && r.detail === detail);
      const held = energies.slice(4, 12).reduce((s, e) => s + e, 0) * unit / 1e6;
      if (!truth || !truth.resolvable || truth.energy_joules < 1) continue;
      assert.ok(Math.abs(held - truth.energy_joules) < 0.01 * truth.energy_joules + 0.01, `${name}: ${held} is not ${truth.energy_joules}`);
      assert.ok(rows.some((r) => Math.abs(joules(r["energy of selection"].split("≤").pop())[0] - held) <= 0.002 * held), `${name}: ${held}`);
      compared += 1;
    }
    assert.ok(compared >= 3, `${compared} kernels`);
    await tab.getByRole("tab", { name: "Processes" }).click();
    assert.doesNotMatch(await tab.locator("#panel").innerText(), /not of the selection/);
    await tab.locator("section[aria-labelledby=tables]").getByRole("button", { name: "Whole run", exact: true }).click();
    assert.doesNotMatch(await tab.locator("#panel").innerText(), /not of the selection/);
    assert.deepEqual(await axe(tab), []);
    assert.deepEqual(problems, []);
    await close();
  });

  it("has energies of processes in a selection, which are those of report --from --to", async () => {
    const recording = join(SOURCE, "examples/h200-deit.jprof");
    const { tab, problems, close } = await open("example");
    const { profile, process_slices: slices } = JSON.parse(await tab.locator("#data").textContent());
    const from = slices.begin_seconds + 6 * slices.step_seconds;
    const to = slices.begin_seconds + 20 * slices.step_seconds;
    await select(tab, from, to);
    await tab.getByRole("tab", { name: "Processes" }).click();
    const rows = await rowsOf(tab);
    assert.equal(rows.length, profile.processes.length);
    const part = JSON.parse(tool(["report", recording, "--json", "--from", `${from}s`, "--to", `${to}s`]));
    let compared = 0;
    for (const p of part.processes) {
      const row = rows.find((r) => r.pid === String(p.pid));
      const [shown] = joules(row["dynamic energy of selection, ESTIMATED"]);
      assert.ok(Math.abs(shown / p.energy_joules - 1) < 0.02, `${p.name}: ${shown} is not ${p.energy_joules}`);
      assert.notEqual(row["energy, whole run"], row["dynamic energy of selection, ESTIMATED"]);
      compared += 1;
    }
    assert.ok(compared >= 1, `${compared} processes`);
    assert.deepEqual(await axe(tab), []);
    await select(tab, from + 0.6, from + 0.9);
    assert.match(await tab.locator("#panel").innerText(), /Of the whole run, not of the selection/);
    assert.deepEqual(problems, []);
    await close();
  });

  it("has a flame graph of the selection, whose frames are rows of the tables", async () => {
    const { tab, problems, close } = await open("kernels");
    await tab.getByRole("tab", { name: "Kernels" }).click();
    const section = tab.locator("section[aria-labelledby=flame]");
    const whole = await section.locator("#frame").innerText();
    await select(tab, 12, 20);
    assert.match(await section.innerText(), /Selection: 12\.\d+ s to 20\.\d+ s.*energy only/);
    const root = await section.locator("#frame").innerText();
    assert.notEqual(root, whole);
    await section.locator("canvas").focus();
    await tab.keyboard.press("ArrowDown"); // to the widest, which may be "all else"
    for (let i = 0; i < 30; ++i) await tab.keyboard.press("ArrowLeft");
    const frame = await section.locator("#frame").innerText();
    const greatest = (await rowsOf(tab))[0];
    assert.ok(frame.includes(greatest["energy of selection"]), `${frame} has not ${greatest["energy of selection"]}`);
    assert.ok(frame.includes(greatest["95 %, at most"]), `${frame} has not ${greatest["95 %, at most"]}`);
    // The root is the measured energy of the same time.
    const device = await tab.locator("div.selected tbody tr").first().innerText();
    assert.ok(Math.abs(joules(root)[0] / joules(device)[0] - 1) < 0.02, `${root} is not ${device}`);
    assert.deepEqual(await axe(tab), []);
    await section.getByRole("button", { name: "Whole run", exact: true }).click();
    assert.equal(await section.locator("p.selected").count(), 0);
    assert.deepEqual(problems, []);
    await close();
  });

  it("says where a selection is shorter than what the tables hold", async () => {
    const { tab, problems, close } = await open("kernels");
    await tab.getByRole("tab", { name: "Kernels" }).click();
    await select(tab, 1.1, 1.2);
    assert.match(await tab.locator("#panel").innerText(), /Of the whole run, not of the selection.*less than half of a slice/);
    assert.match(await tab.locator("section[aria-labelledby=flame]").innerText(), /Of the whole run, not of the selection/);
    assert.deepEqual(problems, []);
    await close();
  });

  it("selects with a finger", async () => {
    const { tab, problems, close } = await open("example", { viewport: { width: 360, height: 800 }, hasTouch: true, isMobile: true });
    const chart = tab.locator(".lane .chart").first();
    await chart.scrollIntoViewIfNeeded();
    const box = await chart.boundingBox();
    const point = (type, x) => chart.dispatchEvent(type, {
      pointerId: 7, pointerType: "touch", isPrimary: true, button: 0, clientX: x, clientY: box.y + 40, bubbles: true });
    await chart.evaluate((e) => { e.setPointerCapture = () => {}; });  // there is no such finger
    await point("pointerdown", box.x + 120);
    await point("pointermove", box.x + 200);
    await point("pointerup", box.x + 240);
    assert.match(await tab.locator("div.selected").innerText(), / s to .* s/);
    assert.deepEqual(problems, []);
    await close();
  });

  // docs/page.md: questions and where they are answered.
  it("answers five questions with at most two clicks each", async () => {
    const { tab, close } = await open("traced");
    // Which kernel, or layer, takes most? No click.
    const rows = await rowsOf(tab);
    assert.ok(rows.length > 0 && /\d J|\d kJ/.test(Object.values(rows[0]).join(" ")));
    // How much went while nothing ran? No click.
    assert.match(await tab.locator(".balance-row .legend").first().innerText(), /(rest|idle)/);
    // What is uncertain? No click.
    assert.match(await tab.locator("#headline").innerText(), /95 % interval/);
    // What should I do? No click.
    assert.match(await tab.locator(".found .chips button").first().innerText(), /J .*\w/);
    // What did this part cost? One drag.
    await tab.locator(".lane .chart").first().scrollIntoViewIfNeeded();
    const chart = await tab.locator(".lane .chart").first().boundingBox();
    await tab.mouse.move(chart.x + 200, chart.y + 50);
    await tab.mouse.down();
    await tab.mouse.move(chart.x + 400, chart.y + 50, { steps: 4 });
    await tab.mouse.up();
    assert.match(await tab.locator("div.selected").innerText(), /J ±/);
    await close();
  });

  it("zooms the flame graph with the keyboard, and filters the table", async () => {
    const { tab, problems, close } = await open("kernels");
    await tab.locator(".icicle canvas").focus();
    await tab.keyboard.press("ArrowDown");  // to the widest part, which is idle
    await tab.keyboard.press("ArrowLeft");
    await tab.keyboard.press("Enter");
    const name = await tab.locator("#frame b").innerText();
    assert.notEqual(await tab.getByLabel("Filter kernels").inputValue(), "", name);
    await tab.getByLabel("Search the flame graph").fill("no such kernel");
    await tab.getByText("no match").waitFor();
    assert.deepEqual(problems, []);
    await close();
  });

  it("shows the row of a clicked layer alone, and all rows after Escape", async () => {
    const { tab, problems, close } = await open("traced");
    const canvas = tab.locator(".icicle canvas");
    await canvas.focus();
    const search = async () => (await tab.locator("#frame b").innerText()).trim();
    const rows = (await rowsOf(tab)).length;
    const names = new Set(JSON.parse(await tab.locator("#data").textContent()).activity.layer[0].rows.rows.map((r) => r[2]));
    await tab.keyboard.press("ArrowDown");
    for (let i = 0; i < 8; ++i) await tab.keyboard.press("ArrowLeft");
    for (let i = 0; i < 8 && !names.has(await search()); ++i) await tab.keyboard.press("ArrowDown");
    for (let i = 0; i < 3; ++i) await tab.keyboard.press("ArrowDown");
    const chosen = await search();
    await tab.keyboard.press("Enter");
    const found = await rowsOf(tab);
    assert.ok(found.length >= 1 && found.every((r) => Object.values(r)[0] === chosen), `${chosen}: ${JSON.stringify(found)}`);
    await tab.keyboard.press("Escape");
    assert.equal((await rowsOf(tab)).length, rows);
    assert.deepEqual(problems, []);
    await close();
  });

  it("has the bars of the balance in forced colours", async () => {
    const { tab, close } = await open("traced", { forcedColors: "active" });
    const colours = await tab.evaluate(() =>
      [...document.querySelector(".balance-row").querySelectorAll(".parts .part")].map((e) => getComputedStyle(e).backgroundColor));
    assert.ok(colours.length >= 3 && new Set(colours).size === colours.length, colours.join(" | "));
    await close();
  });

  it("marks rows of an estimated device in the table", async () => {
    const { tab, close } = await open("traced");
    const rows = await rowsOf(tab);
    const data = JSON.parse(await tab.locator("#data").textContent());
    const estimated = data.activity.layer.filter((d) => d.provenance === "estimated").map((d) => d.device);
    assert.ok(estimated.length > 0 && rows.some((r) => estimated.includes(r.device)), "no estimated row");
    for (const row of rows) {
      const energy = row["energy, with parts"];
      if (!/unavailable|not resolvable/.test(energy)) assert.equal(/ESTIMATED/.test(energy), estimated.includes(row.device), energy);
    }
    await close();
  });

  it("sorts a table of 1,000 hostile names and shows them as text", async () => {
    const { tab, problems, close } = await open("many");
    await tab.getByRole("tab", { name: "Kernels" }).click();
    const first = () => tab.locator("#panel tbody tr").first().innerText();
    const before = await first();
    assert.match(before, /<\/script><img src=x onerror=alert\(1\)> kernel/);
    await tab.getByRole("columnheader", { name: /^energy/ }).getByRole("button").click();
    assert.notEqual(await first(), before);
    assert.deepEqual(problems, []);
    await close();
  });

  const same = (text, value) => {
    const [shown, digit] = joules(text);
    assert.ok(Math.abs(shown - value) <= digit, `${text} is not ${value}`);
  };

  it("has the figures of report --json to their printed digits", async () => {
    const recording = join(SOURCE, "examples/h200-kernels.jprof");
    write("own", recording);
    const report = JSON.parse(tool(["report", recording, "--json"]));
    const kernels = JSON.parse(tool(["report", recording, "--by", "kernel", "--json"])).devices[0].rows;
    const { tab, close } = await open("own");
    // What was measured, and what was estimated.
    const quoted = await Promise.all((await tab.locator(".hero .energy").all()).map(async (e) => joules(await e.innerText())));
    const sum = quoted.reduce((s, [value]) => s + value, 0);
    const whole = (report.command_energy ?? report.total).energy_joules;
    assert.ok(Math.abs(sum - whole) <= quoted.reduce((s, [, digit]) => s + digit, 0), `${sum} is not ${whole}`);
    const known = report.domains.filter((d) => d.energy_joules !== null);
    const devices = await tab.locator("table.devices tbody tr").allInnerTexts();
    known.forEach((d) => same(devices.find((row) => row.startsWith(d.domain === "gpu_memory" ? "gpu_memory" : d.device)).split("\t")[1], d.energy_joules));
    const bars = await tab.locator(".balance-row").all();
    const outer = known.filter((d) => d.parent === null);
    assert.equal(bars.length, outer.length);
    for (const [i, d] of outer.entries()) {
      same(await bars[i].locator(".sum").innerText(), d.energy_joules);
      const parts = await bars[i].locator(".legend li").allInnerTexts();
      same(parts.find((p) => p.startsWith("rest")), d.rest_joules);
      let sum = 0;
      let digits = 0;
      for (const part of parts) {
        const [shown, digit] = joules(part);
        sum += shown;
        digits += digit;
      }
      assert.ok(Math.abs(sum - d.energy_joules) <= digits, `parts of ${d.device}: ${sum}`);
    }
    const rows = await tab.locator("#panel tbody tr").allInnerTexts();
    assert.equal(rows.length, kernels.length);
    const resolved = kernels.filter((k) => k.resolvable).sort((a, b) => b.energy_joules - a.energy_joules);
    same(rows[0], resolved[0].energy_joules);
    for (const kernel of kernels.filter((k) => !k.resolvable)) {
      const [, digit] = joules("1.000 J");
      assert.ok(rows.some((row) => row.includes("≤") && Math.abs(joules(row.split("≤")[1])[0] - kernel.interval_joules[1]) <= Math.max(digit, 1e-3 * kernel.interval_joules[1])), kernel.name);
    }
    await close();
  });

  it("has tables of kernels and processes that are not cut off at 1280 px", async () => {
    for (const name of ["kernels", "own"]) {
      const { tab, close } = await open(name);
      const over = await tab.evaluate(() => [...document.querySelectorAll(".scroll")].map((e) => e.scrollWidth - e.clientWidth));
      assert.deepEqual(over.filter((px) => px > 0), [], name);
      await close();
    }
  });

  it("shows a comparison as a differential flame graph", async () => {
    const { tab, problems, close } = await open("layers");
    const frames = tab.locator(".diff .frame-box");
    assert.equal(await frames.count(), 6);  // total, model, its three, and the rest
    const box = async (name) => (await tab.locator(`.diff .frame-box[aria-label^="${name}:"]`).boundingBox()).width;
    assert.ok(Math.abs(await box("model") / await box("total") - 700 / 800) < 0.01);
    assert.match(await tab.locator('.diff [aria-label^="model.a:"]').getAttribute("class"), /unclear/);
    assert.match(await tab.locator('.diff [aria-label^="model.b:"]').getAttribute("class"), /lower/);
    await frames.first().focus();
    await tab.keyboard.press("ArrowRight");
    assert.match(await tab.locator("p.frame").innerText(), /^model\b[\s\S]*900\.0 J before · 700\.0 J after · -200\.0 J/);
    await tab.getByLabel("Width").selectOption("change");
    await tab.locator('.diff [aria-label^="model.b:"]').click();
    assert.equal(await tab.getByLabel("Filter rows", { exact: true }).inputValue(), "\"model.b\"");
    assert.deepEqual(problems, []);
    await close();
  });

  it("shows a sweep with every run, its Pareto front and the recommended setting", async () => {
    const { tab, problems, close } = await open("sweep");
    const found = JSON.parse(tool(["recommend", "sweep.jprof", "--json"]));
    const samples = found.sweeps.flatMap((s) => s.points.flatMap((p) => p.samples)).length;
    assert.equal(await tab.locator("circle.raw").count(), samples * 5);  // the front, and four panels
    const best = await tab.locator("g.best text").allTextContents();
    found.sweeps.forEach((s, i) => assert.equal(best[i], `${s.recommended} W ★`));
    assert.deepEqual(problems, []);
    await close();
  });

  it("shows latencies and energies of a benchmark", async () => {
    const { tab, problems, close } = await open("bench");
    const counts = await tab.locator("rect.bin title").evaluateAll((all) => all.map((t) => Number(t.textContent.split(": ")[1])));
    assert.equal(counts.reduce((a, b) => a + b, 0), 200);
    const [bar, track] = [await tab.locator(".bench-case .parts").boundingBox(), await tab.locator(".bench-case .track").boundingBox()];
    assert.ok(Math.abs(bar.width / track.width - 1 / 1.05) < 0.01);
    const last = await tab.locator(".bench-case .parts .part").last().boundingBox();
    assert.ok(Math.abs(last.x + last.width - bar.x - bar.width) < 2);  // the parts fill the bar
    assert.deepEqual(problems, []);
    await close();
  });

  const hash = (tab) => tab.evaluate(() => Object.fromEntries(new URLSearchParams(location.hash.slice(1))));
  const dataOf = async (tab) => JSON.parse(await tab.locator("#data").textContent());

  it("answers how much, where and what now on the first screen", async () => {
    const { tab, problems, close } = await open("traced", { viewport: { width: 1280, height: 800 } });
    const { profile } = await dataOf(tab);
    const gpu = profile.domains.find((d) => d.domain === "gpu");
    const sentence = await tab.locator(".sentence").innerText();
    const [, share, rest, held] = /^(\d+) % of gpu0's energy is what it draws anyway: rest ([\d.]+ k?J), held ([\d.]+ k?J); your kernels/.exec(sentence);
    same(rest, gpu.rest_joules);
    same(held, gpu.held_joules);
    assert.ok(Math.abs(share / 100 - (gpu.rest_joules + gpu.held_joules) / gpu.energy_joules) < 0.005, sentence);
    assert.match(sentence, /of which self_attn \d+ %/);
    const flame = await tab.locator(".icicle canvas").boundingBox();
    assert.ok(flame.y + 0.8 * flame.height <= 800, `the flame graph ends at ${flame.y + flame.height} px`);
    assert.ok((await tab.locator(".found").boundingBox()).y < flame.y);
    // What was measured is large; the estimate is beside it, and neither has the other's error.
    assert.match(await tab.locator(".hero .energy").first().innerText(), /measured gpu0/);
    assert.match(await tab.locator(".hero .more").innerText(), /ESTIMATED package-0/);
    assert.deepEqual(problems, []);
    await close();
  });

  it("quotes a lower bound where a GPU was lost", { skip: !process.env.JOULEPROF_SIM && "JOULEPROF_SIM is not set" }, async () => {
    const { tab, close } = await open("lost");
    const { profile } = await dataOf(tab);
    assert.equal(profile.total.is_partial, true);
    const headline = await tab.locator("#headline").innerText();
    assert.match(await tab.locator(".hero .energy").first().innerText(), /^at least [\d.]+ k?J -[\d.]+ %[\s\S]*PARTIAL/);
    assert.match(headline, /95 % interval from [\d.]+ k?J, without an upper end/);
    const [, took] = /gpu1 took ([\d.]+ k?J) while it had readings/.exec(headline);
    same(took, profile.domains.find((d) => d.device === "gpu1" && d.parent === null).least_joules);
    await close();
  });

  it("has one interval of a device in balance, table of devices and JSON", async () => {
    // Of a log that is known to read low, both sides differ.
    tool(["import", join(SOURCE, "tests/fixtures/imports/dmon_two_gpus.txt"), "-o", "log.jprof"]);
    write("log", join(folder, "log.jprof"));
    const { tab, close } = await open("log");
    const table = (await tab.locator("table.devices tbody tr").allInnerTexts()).map((row) => row.split("\t")[2]);
    const bars = (await tab.locator(".balance-row .sum").allInnerTexts()).map((text) => text.split(/ k?J /)[1]);
    assert.equal(table.length, 2);
    assert.match(table[0], /^-[\d.]+ % \+[\d.]+ %$/);
    assert.deepEqual(bars, table);
    await close();
  });

  it("shows the CPU time of a short process as a bound", async () => {
    // The shell collects what it starts; of the command itself the tool knows more than ticks.
    tool(["run", "-o", "short.jprof", "--", "sh", "-c", "sleep 1; :"]);
    write("short", join(folder, "short.jprof"));
    const report = JSON.parse(tool(["report", "short.jprof", "--json"]));
    assert.ok(report.processes.some((p) => p.cpu_seconds === 0));
    const { tab, close } = await open("short");
    await tab.getByRole("tab", { name: "Processes" }).click();
    const rows = await tab.locator("#tables ~ * tbody tr, section[aria-labelledby=tables] tbody tr").allInnerTexts();
    assert.ok(rows.some((row) => /sleep\s+<40 ms/.test(row)), rows.join("; "));
    await close();
  });

  it("has one held energy in balance, flame graph and JSON", async () => {
    const report = JSON.parse(tool(["report", join(SOURCE, "examples/h200-layers.jprof"), "--json"]));
    const { tab, close } = await open("traced");
    const gpu = report.domains.find((d) => d.domain === "gpu");
    const parts = await tab.locator(".balance-row").first().locator(".legend li").allInnerTexts();
    const held = parts.filter((p) => p.startsWith("held")).map((p) => joules(p));
    const sum = held.reduce((s, [value]) => s + value, 0);
    assert.ok(Math.abs(sum - gpu.held_joules) <= held.reduce((s, [, digit]) => s + digit, 0), `${sum} is not ${gpu.held_joules}`);
    const { activity } = await dataOf(tab);
    // The flame graph is of the time that was traced.
    assert.ok(activity.kernel[0].held_joules > 0.5 * gpu.held_joules && activity.kernel[0].held_joules <= gpu.held_joules);
    await close();
  });

  it("has the held energy of every GPU of a job in the balance", { skip: !process.env.JOULEPROF_SIM && "JOULEPROF_SIM is not set" }, async () => {
    const report = JSON.parse(tool(["report", "gpus.jprof", "--json"]));
    const { tab, close } = await open("gpus");
    const gpus = report.domains.filter((d) => d.domain === "gpu");
    assert.equal(gpus.length, 2);
    for (const [i, gpu] of gpus.entries()) {
      assert.ok(gpu.held_joules > 20, `${gpu.device} held ${gpu.held_joules} J`);
      const parts = await tab.locator(".balance-row").nth(i).locator(".legend li").allInnerTexts();
      const held = parts.filter((p) => p.startsWith("held")).map((p) => joules(p));
      const sum = held.reduce((s, [value]) => s + value, 0);
      assert.ok(Math.abs(sum - gpu.held_joules) <= held.reduce((s, [, digit]) => s + digit, 0), `${gpu.device}: ${sum} is not ${gpu.held_joules}`);
      const unattributed = parts.filter((p) => p.startsWith("unattributed")).map((p) => joules(p)[0]);
      assert.ok(unattributed.every((value) => value < 0.1 * gpu.held_joules), parts.join(", "));
    }
    await close();
  });

  it("names readings that are stamped far after all others", async () => {
    changedData("ahead", "kernels", ({ timeline }) => { timeline.power[0].left_out_until_seconds = timeline.power[0].end_seconds + 36 * 3600; });
    const { tab, problems, close } = await open("ahead");
    assert.match(await tab.locator(".lane").first().innerText(), /readings stamped up to 36 h 0 min later are not shown/);
    assert.deepEqual(problems, []);
    await close();
  });

  it("selects the time and the frames of a finding", async () => {
    const { tab, problems, close } = await open("traced");
    const button = tab.locator(".found .chips button").first();
    await button.click();
    assert.equal(await button.getAttribute("aria-expanded"), "true");
    assert.match(await tab.locator("#finding").innerText(), /J ±[\s\S]*\w\.$/);
    const { find, sel } = await hash(tab);
    assert.equal(await tab.getByLabel("Search the flame graph").inputValue(), find);
    const [begin, end] = sel.split("_").map(Number);
    const { timeline } = await dataOf(tab);
    assert.ok(begin >= timeline.begin_seconds && end <= timeline.end_seconds && end > begin, sel);
    await button.click();
    assert.deepEqual(await hash(tab), {});
    assert.deepEqual(problems, []);
    await close();
  });

  it("zooms the timeline with the wheel around the pointer, and says what ran at it", async () => {
    const { tab, problems, close } = await open("traced");
    const chart = tab.locator(".lane .chart").first();
    await chart.scrollIntoViewIfNeeded();
    await tab.waitForTimeout(500);  // after a scroll the wheel goes on scrolling
    const box = await chart.boundingBox();
    await tab.mouse.move(box.x + 0.8 * box.width, box.y + 40);
    const tip = await tab.locator(".tip").innerText();
    assert.match(tip, /gpu0 [\d.]+ W, [\d.]+ m?J in 20 ms/);
    assert.match(tip, /phase: (forward|backward)[\s\S]*kernel: /);
    const scrolled = await tab.evaluate(() => scrollY);
    await tab.mouse.wheel(0, -400);
    await tab.waitForFunction(() => location.hash.includes("zoom="));
    const [begin, end] = (await hash(tab)).zoom.split("_").map(Number);
    const { timeline } = await dataOf(tab);
    const whole = [Math.min(...timeline.power.map((p) => p.begin_seconds)), Math.max(...timeline.power.map((p) => p.end_seconds))];
    const at = whole[0] + 0.8 * (whole[1] - whole[0]);
    assert.ok(begin > whole[0] && end < whole[1] + 1e-6 && begin < at && at < end + 2, `${begin} to ${end}`);
    assert.equal(await tab.evaluate(() => scrollY), scrolled);
    const brush = await tab.locator(".minimap .brush").boundingBox();
    assert.ok(Math.abs(brush.width / ((await chart.boundingBox()).width - 80) - (end - begin) / (whole[1] - whole[0])) < 0.02);
    await tab.locator(".charts").focus();
    await tab.keyboard.press("Escape");
    assert.equal((await hash(tab)).zoom, undefined);
    assert.deepEqual(problems, []);
    await close();
  });

  it("has a track of requests, and how many are in flight", async () => {
    const { tab, problems, close } = await open("requests");
    const tracks = tab.locator(".tracks canvas");
    assert.match(await tracks.getAttribute("aria-label"), /^requests, in flight, windows over time/);
    await tracks.scrollIntoViewIfNeeded();
    const box = await tracks.boundingBox();
    const words = tab.locator("#span");
    const row = box.height / 5;
    await tab.mouse.move(box.x + 0.6 * box.width, box.y + 1.5 * row);
    assert.match(await words.innerText(), /^request · 1\.500 s · gpu0 20\.00 J ±5\.0 %$/);
    await tab.mouse.move(box.x + 0.6 * box.width, box.y + 3.5 * row);
    assert.match(await words.innerText(), /^3 requests in flight, mean of 100 ms; the greatest is 3$/);
    // The windows below are those of other names.
    await tab.mouse.move(box.x + 0.13 * box.width, box.y + 4.5 * row);
    assert.match(await words.innerText(), /^warm-up · 2\.000 s/);
    // The keys go from window to window.
    await tracks.focus();
    await tab.mouse.move(0, 0);
    for (let i = 0; i < 41; ++i) await tab.keyboard.press("ArrowRight");
    assert.match(await words.innerText(), /^warm-up/);
    const chart = await tab.locator(".lane .chart").first();
    await chart.scrollIntoViewIfNeeded();
    const at = await chart.boundingBox();
    await tab.mouse.move(at.x + 0.6 * at.width, at.y + 30);
    assert.match(await tab.locator(".tip").innerText(), /window \d × request\n\d requests in flight/);
    assert.deepEqual(problems, []);
    await close();
  });

  it("shows the devices with the most energy of many, and all after a click", async () => {
    const { tab, problems, close } = await open("devices");
    const rows = tab.locator("section[aria-labelledby=balance] .balance-row:visible");
    assert.deepEqual((await rows.locator("h3").allInnerTexts()).map((t) => /^gpu\d+/.exec(t)[0]), ["gpu0", "gpu1", "gpu2", "gpu3", "gpu4"]);
    const more = tab.getByText(/^28 more devices, [\d.]+ kJ$/);
    const { profile } = await dataOf(tab);
    const known = profile.domains.filter((d) => d.parent === null && d.energy_joules !== null).map((d) => d.energy_joules).sort((a, b) => b - a);
    same((await more.innerText()).split(", ")[1], known.slice(5).reduce((s, e) => s + e, 0));
    await more.click();
    assert.equal(await rows.count(), 33);
    const charts = tab.locator(".lane");
    assert.equal(await charts.count(), 18);
    await tab.getByRole("button", { name: /more charts$/ }).click();
    assert.ok((await charts.count()) > 32);
    assert.deepEqual(await axe(tab), []);
    assert.deepEqual(problems, []);
    await close();
  });

  it("lights the time of a frame, and the frames of a time", async () => {
    const { tab, close } = await open("traced");
    const picture = () => tab.locator(".icicle canvas").evaluate((c) => c.toDataURL());
    await tab.locator(".icicle canvas").focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft", "ArrowLeft"]) await tab.keyboard.press(key);
    assert.match(await tab.locator("#frame b").innerText(), /backward/);
    const { slices } = await dataOf(tab);
    const lit = await tab.locator(".lane .chart").first().locator(".lit").count();
    assert.ok(lit > 0 && lit < slices[0].count, `${lit} of ${slices[0].count}`);
    await tab.locator("h1").hover();
    const before = await picture();
    const chart = await tab.locator(".lane .chart").first();
    await chart.scrollIntoViewIfNeeded();
    const box = await chart.boundingBox();
    await tab.mouse.move(box.x + 0.8 * box.width, box.y + 30);
    assert.notEqual(await picture(), before);
    await close();
  });

  it("has alike layers as one frame and one row, whose parts sum to it", async () => {
    const { tab, problems, close } = await open("traced");
    const folded = (await rowsOf(tab)).find((r) => r.layer.endsWith("layers.* ×12"));
    assert.match(folded.each, /^[\d.]+ k?J ±[\d.]+ m?J$/);
    const { activity } = await dataOf(tab);
    const { keys, rows } = activity.layer[0].rows;
    const alike = rows.filter((r) => /^model\.layers\.\d+$/.test(r[keys.indexOf("name")])).map((r) => r[keys.indexOf("inclusive_joules")]);
    assert.equal(alike.length, 12);
    const sum = alike.reduce((s, v) => s + v, 0);
    same(folded["energy, with parts"], sum);
    same(folded.each, sum / 12);
    const count = (await rowsOf(tab)).length;
    await tab.getByRole("button", { name: /^Open .*layers\.\* ×12/ }).first().click();
    assert.ok((await rowsOf(tab)).length > count);
    assert.ok((await rowsOf(tab)).some((r) => r.layer.endsWith("self_attn ×12")));
    await tab.getByLabel("fold", { exact: true }).uncheck();
    assert.equal((await hash(tab)).fold, "0");
    assert.ok(!(await rowsOf(tab)).some((r) => r.layer.includes("×12")));
    assert.deepEqual(problems, []);
    await close();
  });

  it("has in its address what is shown, and shows it again", async () => {
    const { tab, problems, close } = await open("traced");
    await select(tab, "0m16s", "20.5");
    await tab.getByRole("button", { name: "Zoom to selection" }).click();
    await tab.getByRole("tab", { name: "Kernels" }).click();
    await tab.getByLabel(/^Filter kernels/).fill("gemm");
    await tab.getByLabel("Colours").selectOption("dark");
    await tab.waitForFunction(() => location.hash.includes("theme=dark"));
    const address = await tab.evaluate(() => location.href);
    const shown = async (of) => [
      await of.locator("div.selected h3").innerText(), await of.getByLabel(/^Filter kernels/).inputValue(),
      await of.locator("html").getAttribute("data-theme"), (await hash(of)).zoom, (await rowsOf(of)).length,
    ];
    const here = await shown(tab);
    assert.match(here[0], /16\.00 s to 20\.50 s/);
    const other = await (await browser.newContext({ offline: true, viewport: { width: 1280, height: 900 } })).newPage();
    await other.goto(address);
    await other.waitForFunction(() => document.querySelector("#app")?.childElementCount > 0);
    assert.deepEqual(await shown(other), here);
    await other.context().close();
    assert.deepEqual(problems, []);
    await close();
  });

  it("takes times as they are read, and says what is none", async () => {
    const { tab, close } = await open("example");
    const from = tab.getByLabel("Selection from");
    for (const [text, said] of [["soon", /"soon" is no time/], ["500", /the recording is from/]]) {
      await from.fill(text);
      await from.press("Tab");
      assert.match(await tab.locator("section[aria-labelledby=timeline] [role=alert]").innerText(), said);
      assert.equal((await hash(tab)).sel, undefined);
    }
    await close();
  });

  it("copies a link, and a panel as SVG and PNG", async () => {
    const { tab, problems, close } = await open("example", { permissions: ["clipboard-read", "clipboard-write"] });
    await tab.getByRole("button", { name: "Copy link" }).click();
    await tab.getByText("link copied").waitFor();
    const section = tab.locator("section[aria-labelledby=timeline]");
    await section.getByRole("button", { name: "Copy timeline as SVG" }).click();
    await section.getByText(/SVG (copied|saved)/).waitFor();
    const text = await tab.evaluate(() => navigator.clipboard.readText());
    assert.match(text, /^<svg [\s\S]*Timeline[\s\S]*data:image\/png[\s\S]*<\/svg>$/);
    await section.getByRole("button", { name: "Copy timeline as PNG" }).click();
    await section.getByText(/PNG (copied|saved)/).waitFor();
    assert.deepEqual(problems, []);
    await close();
  });

  it("is printed in the colours of paper", async () => {
    const light = await open("example", { colorScheme: "light" });
    const { tab, close } = await open("example", { colorScheme: "dark" });
    const picture = (of) => of.locator(".lane .chart canvas").first().evaluate((c) => c.toDataURL());
    const [white, black] = [await picture(light.tab), await picture(tab)];
    assert.notEqual(black, white);
    const printed = await tab.evaluate(() => {
      dispatchEvent(new Event("beforeprint"));
      const image = document.querySelector(".lane .chart canvas").toDataURL();
      dispatchEvent(new Event("afterprint"));
      return image;
    });
    assert.equal(printed, white);
    assert.equal(await picture(tab), black);
    await tab.emulateMedia({ media: "print" });
    await tab.setViewportSize({ width: 718, height: 1000 });
    const cut = await tab.evaluate(() => [...document.querySelectorAll("canvas")].map((c) => c.getBoundingClientRect().right - innerWidth).filter((px) => px > 0));
    assert.deepEqual(cut, []);
    assert.ok((await tab.pdf({ format: "A4" })).length > 20_000);
    await light.close();
    await close();
  });

  it("shows whole energies at 320 px", async () => {
    const { tab, close } = await open("traced", { viewport: { width: 320, height: 700 } });
    const cells = await tab.evaluate(() => {
      const at = [...document.querySelectorAll("#panel thead th")].findIndex((th) => th.innerText.startsWith("energy"));
      return [...document.querySelectorAll("#panel tbody tr")].map((tr) => tr.children[at].getBoundingClientRect()).map((b) => [b.left, b.right]);
    });
    assert.ok(cells.length > 5 && cells.every(([left, right]) => left >= 0 && right <= 320), JSON.stringify(cells.slice(0, 3)));
    await close();
  });

  it("moves the star of a sweep to the slowdown that is accepted", async () => {
    const { tab, problems, close } = await open("sweep");
    const [sweep] = (await dataOf(tab)).recommendation.sweeps;
    const box = tab.locator(".accepted").first();
    for (const accepted of [0, 10, 25]) {
      await box.getByLabel("Accepted slowdown in percent").fill(String(accepted));
      const best = sweep.points.filter((p) => p.slowdown_ratio <= accepted / 100 + 1e-9).sort((a, b) => a.energy_joules - b.energy_joules)[0];
      assert.equal(await tab.locator("g.best text").first().textContent(), `${best.setting} W ★`);
      assert.match(await box.innerText(), new RegExp(`apply --power ${best.setting}`));
      assert.equal((await hash(tab)).accept, String(accepted));
    }
    await box.getByRole("button", { name: "As recommended" }).click();
    assert.equal(await tab.locator("g.best text").first().textContent(), `${sweep.recommended} W ★`);
    assert.match(await tab.locator("circle.raw title").first().textContent(), /W, run 1: [\d.]+ k?J, [\d.]+ s/);
    assert.deepEqual(problems, []);
    await close();
  });

  it("lays the power of both sides of a comparison over one another", async () => {
    const { tab, problems, close } = await open("comparison");
    assert.equal(await tab.locator("path.curve.before").count(), 1);
    assert.equal(await tab.locator("path.curve.after").count(), 1);
    const { compared_runs: runs, comparison } = await dataOf(tab);
    const [before] = runs.before;
    assert.ok(Math.abs(before.energy_joules / comparison.energy.before_joules - 1) < 1e-6);
    const [curve] = before.curves;
    const sum = curve.watts.reduce((s, w) => s + (w ?? 0) * curve.step_seconds, 0);
    assert.ok(Math.abs(sum / before.energy_joules - 1) < 0.03, `${sum} J under the curve of ${before.energy_joules}`);
    const kilojoules = (run) => `${(run.energy_joules / 1e3).toFixed(3)} kJ`;
    assert.deepEqual(await tab.locator(".strips circle title").allTextContents(), [
      `before, run 1: ${kilojoules(before)}`, `after, run 1: ${kilojoules(runs.after[0])}`]);
    assert.deepEqual(problems, []);
    await close();
  });

  it("has the size that docs/costs.md names", () => {
    assert.ok(statSync(join(SOURCE, "src/report/html/template.html")).size <= 150e3);
    assert.ok(statSync(pages.example).size <= 500e3);
  });
});
