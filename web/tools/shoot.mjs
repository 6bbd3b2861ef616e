// Screenshots of a page: node tools/shoot.mjs PAGE.html OUT.png [WIDTH [HEIGHT [light|dark [SELECTOR]]]]
// CHROMIUM names the browser (default: chromium). Nothing may be requested: the network is off.
import { chromium } from "playwright-core";
import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const [page, out, width = "1280", height = "0", scheme = "light", selector] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--force-color-profile=srgb"],
});
const context = await browser.newContext({
  viewport: { width: Number(width), height: Number(height) || 900 },
  colorScheme: scheme, offline: true, reducedMotion: "reduce",
});
const tab = await context.newPage();
tab.on("pageerror", (error) => console.error("page error:", error.message));
tab.on("console", (message) => message.type() === "error" && console.error("console:", message.text()));
await tab.goto(pathToFileURL(resolve(page)).href);
await tab.waitForFunction(() => document.querySelector("#app")?.childElementCount > 0);
await tab.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
const target = selector ? tab.locator(selector).first() : tab;
await target.screenshot({ path: out, ...(selector ? {} : { fullPage: Number(height) === 0 }) });
await browser.close();
