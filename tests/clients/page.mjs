// The status page on a phone: node page.mjs URL PICTURE. Prints what a person would see, as JSON.
import { createRequire } from "node:module";
const require = createRequire(`${process.env.CLIENTS}/`);
const { chromium } = require("playwright-core");

const [url, picture] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const page = await browser.newPage({ viewport: { width: 360, height: 740 }, hasTouch: true });
const loaded = [];
const complaints = [];
page.on("request", (request) => loaded.push(request.url()));
page.on("console", (message) => complaints.push(message.text()));
page.on("pageerror", (error) => complaints.push(String(error)));
await page.goto(url);
const seen = await page.evaluate(() => ({
  title: document.title,
  text: document.body.innerText,
  width: document.documentElement.scrollWidth,
  room: window.innerWidth,
  smallest: Math.min(...[...document.querySelectorAll("body *")]
    .map((one) => parseFloat(getComputedStyle(one).fontSize))),
  scripts: document.scripts.length,
}));
await page.screenshot({ path: picture, fullPage: true });
await browser.close();
console.log(JSON.stringify({ ...seen, loaded, complaints }));
