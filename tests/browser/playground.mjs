// The playground in a browser: playground.mjs CHROMIUM PAGE PACKAGE SCENARIOS [PICTURES]. PAGE is the built page, PACKAGE the folder of the npm package, SCENARIOS a folder
// of scenarios with what `dualq run --json` wrote of each. DUALQ_AXE names axe-core's axe.min.js. What is wrong ends it with a stack.

import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { withPage } from "./chromium.mjs";

const [program, file, pack, scenarios, pictures] = process.argv.slice(2);
const url = pathToFileURL(file).href;
const { run } = await import(pathToFileURL(join(pack, "index.js")).href);

const text = (page, selector) => page.evaluate(`document.querySelector(${JSON.stringify(selector)}).textContent`);

/** Waits until something is so; simulations take as long as the machine is busy. */
async function until(page, expression, what, most = 60_000) {
  const began = Date.now();
  while (!(await page.evaluate(expression))) {
    assert.ok(Date.now() - began < most, `${what}: not within ${most} ms`);
    await new Promise((done) => setTimeout(done, 20));
  }
  return Date.now() - began;
}

/** Both sides are simulated to their ends, and their figures are there. */
const done = `!document.querySelector(".big.waits, .big.early") && document.querySelectorAll("#figures tbody tr").length > 0`;
const settled = (page) => until(page, done, "figures");

const open = async (page, link = "") => {
  await page.load("about:blank");
  await page.load(url + link);
  await settled(page);
};

/** The scenario of a side as the page gives it away, between the lines of the command. */
async function scenarioOf(page, side) {
  const command = await text(page, `[data-text="${side}"] pre`);
  const [first, ...lines] = command.trimEnd().split("\n");
  assert.match(first, /^dualq run - --seed \d+ --world model <<'END'$/);
  assert.equal(lines.pop(), "END");
  return { scenario: `${lines.join("\n")}\n`, seed: Number(first.match(/--seed (\d+)/)[1]) };
}

/** What stands in the table, and of how many seconds, of each side. */
const table = `[0, 1].map((column) => {
  const head = document.querySelectorAll("#figures thead th")[column];
  const rows = [...document.querySelectorAll("#figures tbody tr")];
  return { head: head.textContent, known: Number(head.dataset.known), shown: Object.fromEntries(rows.map((row) => [row.dataset.figure, Number(row.querySelectorAll("td")[column].dataset.value)])) };
})`;

/** What the page shows is what the package computes of the scenarios that the page gives away; figures that are not final, of so much of them. */
async function agrees(page, what, early = null) {
  const columns = early ?? await page.evaluate(table);
  for (const [column, side] of ["now", "cured"].entries()) {
    const { scenario, seed } = await scenarioOf(page, side);
    const { known, shown } = columns[column];
    if (known === 0) continue;
    const { outcome } = (await run(scenario, { seed, ...(early ? { duration: `${known}s` } : {}) })).runs[0];
    const [ping] = outcome.probe;
    assert.deepEqual([shown.ping, shown.ping99], [ping.p50_ms, ping.p99_ms], `${what}, ${side}: round trips`);
    const goodput = (shown.download ?? 0) + (shown.upload ?? 0);
    const flows = outcome.flow.reduce((all, { total_mbit: mbit }) => all + mbit, 0);
    assert.ok(Math.abs(goodput - flows) < 1e-6, `${what}, ${side}: ${goodput} and ${flows} Mbit/s`);
    const voices = (outcome.udp ?? []).filter((_, at) => scenario.split("[[udp]]")[at + 1].includes("voice"));
    if (voices.length) assert.equal(shown.call, Math.max(...voices.map(({ delay }) => delay.p95_ms)), `${what}, ${side}: the call`);
    assert.equal(shown.drops, outcome.queue.drops + outcome.up_queue.drops, `${what}, ${side}: drops`);
  }
}

const number = (page, key) => page.evaluate(`Number(document.getElementById("choose-${key}").value)`);
const choose = (page, key, value) => page.evaluate(`(() => { const select = document.getElementById("choose-${key}"); select.value = ${JSON.stringify(value)}; select.dispatchEvent(new Event("change")); })()`);

await withPage(program, async (page) => {
  await page.view(1280, 900, false);
  await open(page);
  await agrees(page, "the first state");

  // The queue is drawn: in the full FIFO of the upload hundreds of packets, in fq_codel few.
  await until(page, `parseFloat(document.querySelector(".clock").textContent) > 3`, "time runs");
  const waiting = await page.evaluate(`[...document.querySelectorAll(".read")].map((one) => parseInt(one.textContent, 10))`);
  assert.ok(waiting[0] > 100 && waiting[1] < 60, `packets wait: ${waiting}`);
  const painted = await page.evaluate(`[...document.querySelectorAll("canvas.queue")].map((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Set();
    for (let at = 0; at < data.length; at += 4) colours.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
    return colours.size;
  })`);
  assert.ok(painted[0] > 3, `colours of flows: ${painted}`);

  // A slider by the keyboard; what comes of it stands there soon, and the link says it.
  await page.evaluate(`document.querySelector('[data-choice="up"] input[type="range"]').focus()`);
  const before = await number(page, "up");
  const began = Date.now();
  await page.press("ArrowLeft");
  await until(page, `document.querySelector(".big.waits") || location.hash.includes("up=")`, "the change is taken");
  await until(page, `document.querySelector(".clock").textContent !== "0.0 s of 20 s"`, "it moves");
  const moves = Date.now() - began;
  await settled(page);
  console.log(`after a key: it moves after ${moves} ms, its figures are there after ${Date.now() - began} ms`);
  assert.ok((await number(page, "up")) < before);
  assert.match(await page.evaluate("location.hash"), /^#up=[\d.]+$/);
  await agrees(page, "after a key");

  // Of what takes longer there are figures before the end. They say of what they are, and are those of a run that ends then.
  const keyed = await page.evaluate("location.hash");
  const heavy = Date.now();
  await page.evaluate(`location.hash = "#down=200&up=200&downloads=16&uploads=16"`);
  await until(page, `(window.early_ ??= document.querySelector(".big.early") && ${table})`, "early figures");
  const first = Date.now() - heavy;
  const early = await page.evaluate("window.early_");
  await settled(page);
  console.log(`200 Mbit/s both ways, 16 transfers each: first figures after ${first} ms, final ones after ${Date.now() - heavy} ms`);
  assert.ok(early.some(({ known, head }) => known > 4 && known < 12 && head.endsWith(`, ${known.toFixed(2)} s of 12 s`)), JSON.stringify(early));
  await agrees(page, "early figures", early);
  await agrees(page, "final figures");
  await open(page, keyed);

  // A number typed, and one that makes no sense.
  await page.click("#choose-down");
  await page.evaluate(`document.getElementById("choose-down").select()`);
  for (const key of "20") await page.press(key);
  await page.press("Tab");
  await page.evaluate(`document.getElementById("choose-down").blur()`);
  await until(page, `location.hash.includes("down=20")`, "what was typed is taken");
  await settled(page);
  await page.evaluate(`(() => { const input = document.getElementById("choose-down"); input.value = "-3"; input.dispatchEvent(new Event("change")); })()`);
  assert.match(await text(page, ".notice"), /^Download rate: a number from 0.5 to 1000 Mbit\/s, not -3\.$/);
  assert.equal(await number(page, "down"), 20, "what made no sense is not kept");

  // Touch: a tap on a slider moves it.
  await page.send("Emulation.setTouchEmulationEnabled", { enabled: true });
  await page.tap('[data-choice="downloads"] input[type="range"]', 0.5);
  await until(page, `location.hash.includes("downloads=8")`, "a tap is taken");
  await settled(page);
  await page.send("Emulation.setTouchEmulationEnabled", { enabled: false });
  await agrees(page, "after a tap");

  // Every choice: each queue and place, each congestion control.
  for (const [key, value] of [["cure", "dualpi2"], ["cure_cc", "prague"], ["where", "line"], ["mix", "bbr"], ["router", "codel"], ["cc", "reno"]]) await choose(page, key, value);
  await until(page, `location.hash.includes("cc=reno")`, "choices are taken");
  await settled(page);
  await agrees(page, "after choices");
  assert.equal(await page.evaluate(`document.querySelector('[data-choice="share"]').hidden`), true);
  assert.equal(await page.evaluate(`document.querySelectorAll(".prob")[1].hidden`), false, "DualPI2's probabilities are shown");
  assert.match(await page.evaluate(`[...document.querySelectorAll("pre")].at(-1).textContent`), /^dualq plan --rate \d+kbit --rtt 30ms --qdisc dualpi2 --cc prague -o plan\.toml\n$/);

  // A link gives the state back.
  const link = await page.evaluate("location.hash");
  await open(page, link);
  assert.equal(await page.evaluate("location.hash"), link);
  await agrees(page, "of a link");

  // Tampered ones are refused in a line, and nothing of them is taken or run.
  for (const wrong of ["#down=1e9", "#down=0", "#down=50&down=50", "#router=%3Cimg%20src=x%20onerror=window.pwned=1%3E", "#nothing=1", "#downloads=99", "#constructor=1", "#router=constructor", `#${"x".repeat(5000)}`, "#seed=1.5.2", "#downloads=0&uploads=0&calls=0"]) {
    await open(page, wrong);
    const said = await text(page, ".notice");
    assert.match(said, /^This link is refused: .{1,400}\. What is shown is the first state\.$/, wrong);
    assert.equal(await page.evaluate("window.pwned"), undefined);
    assert.equal(await number(page, "down"), 50);
  }

  // The stories play through; each ends with what to do.
  const stories = await page.evaluate(`document.querySelectorAll("[data-story]").length`);
  assert.equal(stories, 5);
  for (let story = 0; story < stories; story += 1) {
    await page.click(`[data-story="${story}"]`);
    const steps = Number((await text(page, ".story .soft")).match(/of (\d+)$/)[1]);
    assert.equal(steps, 6, "a minute, of ten seconds a step");
    for (let step = 1; step <= steps; step += 1) {
      assert.match(await text(page, ".story .soft"), new RegExp(`: ${step} of ${steps}$`));
      await until(page, `!document.querySelector(".story .text").textContent.startsWith("…")`, `story ${story + 1}, step ${step}`);
      const words = await text(page, ".story .text");
      assert.doesNotMatch(words, /…|NaN|undefined|null|Infinity/, words);
      if (process.env.DUALQ_STORIES) console.log(`${story + 1}.${step} ${words}`);
      if (step === steps) assert.match(words, /What to do/);
      await page.click(".story .next");
    }
    assert.equal(await page.evaluate(`document.querySelector(".story").hidden`), true, "the last step ends it");
  }
  // By themselves too.
  await page.click('[data-story="4"]');
  await until(page, `document.querySelector(".story .soft").textContent.endsWith("2 of 6")`, "a story goes on by itself", 15_000);
  await page.click(".story .end");

  // The engine in this browser gives the program's bytes. It is asked in a worker, as the page does.
  for (const name of readdirSync(scenarios).filter((name) => name.endsWith(".json"))) {
    const request = JSON.parse(readFileSync(join(scenarios, name), "utf8"));
    const wanted = readFileSync(join(scenarios, name.replace(/json$/, "out")), "utf8");
    const given = await page.evaluate(`new Promise((resolve) => {
      const unpack = ${unpack};
      const code = document.getElementById("worker").textContent + ";self.onmessage = ({ data: [module, request] }) => self.postMessage(new Engine(module).ask(request).text);";
      const worker = new Worker(URL.createObjectURL(new Blob([code])));
      worker.onmessage = ({ data }) => { worker.terminate(); resolve(data); };
      unpack().then((module) => worker.postMessage([module, ${JSON.stringify(request)}]));
    })`);
    assert.ok(given === wanted, `${name}: not the bytes of the program`);
  }

  // Wherever it is seen: nothing is wider than the screen, and all can be used by everybody.
  for (const [name, width, dark] of [["light", 1280, false], ["dark", 1280, true], ["phone", 360, false], ["phone-dark", 360, true]]) {
    await page.view(width, 900, dark);
    await open(page);
    await page.click('[data-story="0"]');
    await settled(page);
    await until(page, `parseFloat(document.querySelector(".clock").textContent) > 1`, "time runs");
    await page.fits(width, name);
    if (process.env.DUALQ_AXE) await page.accessible(readFileSync(process.env.DUALQ_AXE, "utf8"), name);
    if (pictures) writeFileSync(join(pictures, `${name}.png`), await page.picture());
  }

  // Who wants nothing to move sees it stand still.
  await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-reduced-motion", value: "reduce" }] });
  await open(page);
  await until(page, `document.querySelector(".clock").textContent.startsWith("10")`, "the middle is shown");
  await new Promise((wait) => setTimeout(wait, 300));
  assert.match(await text(page, ".clock"), /^10\.0 s/, "and nothing moves");
  await page.click('[data-story="0"]');
  assert.equal(await text(page, ".story .hold"), "go on by itself");

  // A CPU six times slower: what is asked for still comes, and the page answers meanwhile.
  await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-reduced-motion", value: "no-preference" }] });
  await page.view(360, 800, false);
  await page.send("Emulation.setCPUThrottlingRate", { rate: 6 });
  await open(page);
  await page.evaluate(`(() => { const times = window.frames_ = []; let last = performance.now(); const look = (now) => { times.push(now - last); last = now; requestAnimationFrame(look); }; requestAnimationFrame(look); })()`);
  const slow = Date.now();
  await choose(page, "cure", "cake");
  await until(page, `document.querySelector(".side:last-child .soft").textContent.startsWith("CAKE")`, "the change is taken");
  await settled(page);
  const took = Date.now() - slow;
  const frames = await page.evaluate("window.frames_.slice().sort((one, other) => one - other)");
  console.log(`six times slower: figures after ${took} ms, frames of ${Math.round(frames[Math.floor(frames.length / 2)])} ms`);
  await page.send("Emulation.setCPUThrottlingRate", { rate: 1 });

  assert.deepEqual(page.seen.console, [], "nothing on the console");
  assert.deepEqual(page.seen.requests.filter((request) => !request.startsWith(url) && !/^(data:|blob:|about:)/.test(request)), [], "no request leaves");
});

async function unpack() {
  const packed = Uint8Array.from(atob(document.getElementById("engine").textContent), (c) => c.charCodeAt(0));
  return WebAssembly.compile(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}
