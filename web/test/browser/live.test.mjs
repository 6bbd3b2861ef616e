// The live page of `jouleprof serve` in a browser.
//
// JOULEPROF_TOOL names the tool, JOULEPROF_SIM the simulated NVML; CHROMIUM the browser.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { chromium } from "playwright-core";

const { JOULEPROF_TOOL: TOOL, JOULEPROF_SIM: SIM } = process.env;
const BROWSER = process.env.CHROMIUM ?? "/usr/bin/chromium";
const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const missing = !existsSync(BROWSER) ? `no browser at ${BROWSER}` : !TOOL || !SIM ? "JOULEPROF_TOOL and JOULEPROF_SIM are not set" : false;

describe("the live page in a browser", { skip: missing }, () => {
  let folder;
  let service;
  let url;
  let browser;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "jouleprof-live-"));
    service = spawn(TOOL, ["serve", "--listen", "127.0.0.1:0", "--tick", "500ms"], {
      cwd: folder, stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, HOME: folder, XDG_STATE_HOME: folder, JOULEPROF_NVML_LIBRARY: SIM },
    });
    url = await new Promise((found, failed) => {
      let text = "";
      service.stderr.on("data", (more) => {
        text += more;
        const at = /https?:\/\/[^/\s]+/.exec(text);
        if (at) found(at[0]);
      });
      service.on("exit", () => failed(new Error(text)));
    });
    browser = await chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox"] });
  });
  after(async () => {
    await browser?.close();
    service?.kill();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  const open = async (options) => {
    const context = await browser.newContext(options);
    const tab = await context.newPage();
    const problems = [];
    tab.on("pageerror", (error) => problems.push(error.message));
    tab.on("console", (message) => message.type() === "error" && problems.push(message.text()));
    tab.on("request", (request) => {
      if (!request.url().startsWith(url) && !request.url().startsWith("data:")) problems.push(`a request of ${request.url()}`);
    });
    await tab.goto(url);
    await tab.locator("#flame button").nth(1).waitFor();
    return { tab, problems, close: () => context.close() };
  };

  for (const [width, colorScheme] of [[320, "light"], [1280, "dark"], [3840, "light"]]) {
    it(`is accessible and fits: ${colorScheme}, ${width} px`, async () => {
      const { tab, problems, close } = await open({ viewport: { width, height: 800 }, colorScheme });
      assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth) <= 0);
      await tab.evaluate(readFileSync(AXE, "utf8"));
      const { violations } = await tab.evaluate(() => globalThis.axe.run(document));
      assert.deepEqual(violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" | ")}`), []);
      assert.deepEqual(problems, []);
      await close();
    });
  }

  it("has a flame graph whose parts fill the machine, and keeps the focus over ticks", async () => {
    const { tab, problems, close } = await open({ viewport: { width: 1280, height: 800 } });
    for (const family of ["job", "process"]) {
      await tab.locator(`#families [data-family=${family}]`).click();
      const [whole, ...parts] = await tab.locator("#flame button").evaluateAll((all) => all.map((b) => {
        const { x, width, top } = b.getBoundingClientRect();
        return { x, width, top, text: b.getAttribute("aria-label") };
      }));
      const second = parts.filter((p) => p.top === parts[0].top);
      const sum = second.reduce((s, p) => s + p.width, 0);
      assert.ok(Math.abs(sum - whole.width) < 4 * second.length, `${family}: ${sum} of ${whole.width}`);
      assert.match(whole.text, /J, 100\.0 % of/);
    }
    await tab.locator("#flame button").nth(1).focus();
    const key = await tab.evaluate(() => document.activeElement.dataset.key);
    const ticks = () => tab.locator("#state").innerText();
    const first = await ticks();
    await tab.waitForFunction((text) => document.querySelector("#state").textContent !== text, first);
    assert.equal(await tab.evaluate(() => document.activeElement.dataset.key), key);
    assert.match(await tab.locator("#frame").innerText(), / J, /);
    assert.deepEqual(problems, []);
    await close();
  });

  it("has the power of before at load, its interval, and a tab with energy", async () => {
    const first = await open({ viewport: { width: 1280, height: 800 } });
    await first.tab.waitForFunction(async () => (await (await fetch("api/v1/history")).json()).times_unix_seconds.length >= 4);
    await first.close();
    const { tab, problems, close } = await open({ viewport: { width: 1280, height: 800 } });
    const label = await tab.locator(".card svg").first().getAttribute("aria-label");
    assert.ok(Number(/latest (\d+) ticks/.exec(label)[1]) >= 4, label);
    assert.match(await tab.locator(".card .watts").first().innerText(), /W ±\d/);
    assert.match(await tab.locator("#sum").innerText(), /J ±[\d.]+ %/);
    const pressed = await tab.locator("#families [aria-pressed=true]").getAttribute("data-family");
    const now = await tab.evaluate(async () => (await fetch("api/v1/snapshot")).json());
    const energy = (family) => now.families[family].entities.reduce((s, e) => s + e.energy_joules, 0);
    assert.ok(energy(pressed) >= 0.1 * Math.max(...Object.keys(now.families).map(energy)), pressed);
    assert.deepEqual(problems, []);
    await close();
  });

  it("keeps its stream for longer than a request may take", async () => {
    const { tab, problems, close } = await open({});
    const states = await tab.evaluate(() => new Promise((done) => {
      const seen = [];
      const look = new MutationObserver(() => {
        seen.push(document.querySelector("#state").textContent);
        if (seen.length >= 36) { look.disconnect(); done(seen); }  // ticks of half a second: 18 s
      });
      look.observe(document.querySelector("#state"), { childList: true, characterData: true, subtree: true });
    }));
    assert.deepEqual(states.filter((text) => /no connection/.test(text)), []);
    assert.deepEqual(problems, []);
    await close();
  });
});
