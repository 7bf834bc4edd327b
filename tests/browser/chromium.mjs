// A headless Chromium, driven over the DevTools protocol through a pipe: nothing listens anywhere.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Starts the browser, opens a page and hands `work` what drives it; ends the browser whatever comes of that. */
export async function withPage(program, work) {
  const folder = mkdtempSync(join(tmpdir(), "dualq-browser-"));
  const args = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-default-apps", "--disable-sync", "--hide-scrollbars", `--user-data-dir=${folder}`, "about:blank"];
  const browser = spawn(program, args, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
  const ended = new Promise((resolve) => browser.once("exit", resolve));
  try {
    return await work(await open(browser));
  } finally {
    browser.kill();
    await ended;
    await remove(folder);
  }
}

/** Its children may write for a moment longer: what they leave is looked for anew each time, which rmSync's own retries don't do. */
async function remove(folder, tries = 20) {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch (error) {
    if (tries === 0) throw error;
    await new Promise((done) => setTimeout(done, 100));
    await remove(folder, tries - 1);
  }
}

async function open(browser) {
  const [to, from] = [browser.stdio[3], browser.stdio[4]];
  const waiting = new Map();
  const listeners = [];
  let last = 0, rest = "";
  from.setEncoding("utf8");
  from.on("data", (text) => {
    const messages = (rest + text).split("\0");
    rest = messages.pop();
    for (const message of messages.map((one) => JSON.parse(one))) {
      const { id, method, params, error, result } = message;
      if (id === undefined) listeners.forEach((listener) => listener(method, params));
      else if (error) waiting.get(id).reject(new Error(JSON.stringify(error)));
      else waiting.get(id).resolve(result);
    }
  });
  const ask = (method, params, sessionId) => new Promise((resolve, reject) => {
    last += 1;
    waiting.set(last, { resolve, reject });
    to.write(`${JSON.stringify({ id: last, method, params, sessionId })}\0`);
  });
  const { targetId } = await ask("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await ask("Target.attachToTarget", { targetId, flatten: true });
  const send = (method, params = {}) => ask(method, params, sessionId);
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await send(`${domain}.enable`);
  return page(send, listeners);
}

function page(send, listeners) {
  const seen = { console: [], requests: [] };
  let loaded = () => {};
  listeners.push((method, params) => {
    if (method === "Runtime.consoleAPICalled") seen.console.push(params.args.map((arg) => arg.value ?? arg.description).join(" "));
    if (method === "Runtime.exceptionThrown") seen.console.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === "Log.entryAdded") seen.console.push(params.entry.text);
    if (method === "Network.requestWillBeSent") seen.requests.push(params.request.url);
    if (method === "Page.loadEventFired") loaded();
  });
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  };
  const settle = () => evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
  const mouse = (type, x, y, more) => send("Input.dispatchMouseEvent", { type, x, y, button: "left", clickCount: 1, ...more });
  /** Where the middle of an element is on the screen, which is scrolled to it. */
  const place = (selector) => evaluate(`(() => {
    const element = document.querySelector(${JSON.stringify(selector)});
    element.scrollIntoView({ block: "center" });
    const { left, top, width, height } = element.getBoundingClientRect();
    return { left, top, width, height };
  })()`);
  return {
    seen, send, evaluate, settle,
    async view(width, height, dark) {
      await send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 600 });
      await send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
    },
    async load(url) {
      const done = new Promise((resolve) => { loaded = resolve; });
      const began = Date.now();
      await send("Page.navigate", { url });
      await done;
      await settle();
      return Date.now() - began;
    },
    async click(selector) {
      const { left, top, width, height } = await place(selector);
      const [x, y] = [left + width / 2, top + height / 2];
      await mouse("mouseMoved", x, y);
      await mouse("mousePressed", x, y);
      await mouse("mouseReleased", x, y);
      await settle();
    },
    /** Touches an element, at a share of its width. */
    async tap(selector, share) {
      const { left, top, width, height } = await place(selector);
      await send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: [{ x: left + width * share, y: top + height / 2 }] });
      await send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
      await settle();
    },
    /** Drags across an element, from one share of its width to another. */
    async drag(selector, from, to) {
      const { left, top, width, height } = await place(selector);
      const y = top + height / 2;
      await mouse("mouseMoved", left + width * from, y);
      await mouse("mousePressed", left + width * from, y, { buttons: 1 });
      for (let step = 1; step <= 5; step += 1) await mouse("mouseMoved", left + width * (from + ((to - from) * step) / 5), y, { buttons: 1 });
      await mouse("mouseReleased", left + width * to, y);
      await settle();
    },
    async press(key) {
      const text = key.length === 1 ? key : undefined;
      await send("Input.dispatchKeyEvent", { type: "keyDown", key, text });
      await send("Input.dispatchKeyEvent", { type: "keyUp", key });
      await settle();
    },
    /** No page is wider than what it is seen on. */
    async fits(width, name) {
      const wide = await evaluate("document.documentElement.scrollWidth");
      assert.ok(wide <= width, `${name}: ${wide} of ${width} columns`);
    },
    /** What axe-core, given as its script, finds wrong. */
    async accessible(script, name) {
      await evaluate(script);
      const found = await evaluate(`axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes.slice(0, 3).map(({ html, any }) => html.slice(0, 160) + " " + (any[0] ? any[0].message : "")).join(" | ")))`);
      assert.deepEqual(found, [], `accessibility, ${name}`);
    },
    async picture() {
      const { cssContentSize } = await send("Page.getLayoutMetrics");
      const clip = { x: 0, y: 0, width: cssContentSize.width, height: Math.min(cssContentSize.height, 9000), scale: 1 };
      const { data } = await send("Page.captureScreenshot", { clip, captureBeyondViewport: true });
      return Buffer.from(data, "base64");
    },
  };
}
