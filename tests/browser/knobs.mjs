// A report that carries the engine: knobs.mjs CHROMIUM PAGE PACKAGE PLAN TRACED_PAGE TRACED_PLAN TRACE. Each page was written of its plan with --interactive and --seed 7; the second
// plan names TRACE as lte.trace. What is wrong ends it with a stack.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { withPage } from "./chromium.mjs";

const [program, file, pack, plan, tracedFile, tracedPlan, trace] = process.argv.slice(2);
const url = pathToFileURL(file).href;
const scenario = readFileSync(plan, "utf8");
const { run } = await import(pathToFileURL(join(pack, "index.js")).href);

await withPage(program, async (page) => {
  await page.view(1280, 900, false);
  await page.load(url);
  const rows = () => page.evaluate(`JSON.parse(document.getElementById("data").textContent).rows.length`);
  const set = (id, value) => page.evaluate(`document.getElementById("knob-${id}").value = ${JSON.stringify(value)}`);
  const said = () => page.evaluate(`document.querySelector("#knob-run").closest("section").querySelector("[role=status]").textContent`);
  /** Clicks, and waits for an end: other data, or a line that says why not. */
  const simulate = async () => {
    const before = await page.evaluate(`document.getElementById("data").textContent`);
    await page.evaluate(`window.before_ = ${JSON.stringify(before)}`);
    await page.click("#knob-run");
    for (let turn = 0; !(await page.evaluate(`document.getElementById("data").textContent !== window.before_ || document.querySelector("#knob-run").closest("section").querySelector("[role=status]").textContent !== ""`)); turn += 1) {
      assert.ok(turn < 1000, "a simulation ends");
      await new Promise((done) => setTimeout(done, 30));
    }
    await page.settle();
  };
  assert.equal(await rows(), 2);

  /** The report is of these runs. */
  const isOf = async (runs) => {
    const series = await page.evaluate(`JSON.parse(document.getElementById("data").textContent).rows.map((row) => [row.settings, row.series.rtt[0]])`);
    assert.equal(series.length, runs.length);
    for (const { settings, outcome } of runs) {
      const [, shown] = series.find(([values]) => values.join() === Object.values(settings).join());
      assert.deepEqual(shown, outcome.series.rtt_ms[0]);
    }
  };

  // What is left empty is as it was, the seed too.
  assert.equal(await page.evaluate(`document.getElementById("knob-seed").placeholder`), "7");
  await set("rate", "3mbit");
  await simulate();
  assert.equal(await rows(), 2);
  await isOf((await run(scenario, { rate: ["3mbit"], seed: 7, distributions: true })).runs);

  // Other rates: the report is of these, and its figures are the package's.
  await set("rate", "2mbit, 10mbit");
  await set("seed", "3");
  await simulate();
  assert.equal(await rows(), 4);
  assert.equal(await page.evaluate(`document.querySelectorAll("#comparison tbody tr").length`), 4);
  assert.equal(await page.evaluate(`document.getElementById("knob-rate").value`), "2mbit, 10mbit", "the knobs stay as they were");
  await isOf((await run(scenario, { rate: ["2mbit", "10mbit"], seed: 3, distributions: true })).runs);

  // Nonsense is said in a line, and the report stays what it was.
  await set("qdisc", "fq_codle");
  await simulate();
  assert.match(await said(), /^--qdisc: .*fq_codel/);
  assert.equal(await rows(), 4);
  await set("qdisc", "");
  await set("rate", "100gbit");
  await set("duration", "60s");
  await simulate();
  assert.match(await said(), /million packets, and here at most 50.0 million are simulated/);

  for (const [name, width, dark] of [["light", 1280, false], ["phone", 360, true]]) {
    await page.view(width, 900, dark);
    await page.settle();
    await page.fits(width, name);
    if (process.env.DUALQ_AXE) await page.accessible(readFileSync(process.env.DUALQ_AXE, "utf8"), name);
  }
  // A trace goes along, also into the report that comes of the first one; another file is not there.
  const tracedUrl = pathToFileURL(tracedFile).href;
  await page.load(tracedUrl);
  const traced = { files: { "lte.trace": readFileSync(trace, "utf8") }, distributions: true };
  for (const seed of [2, 3]) {
    await set("seed", String(seed));
    await simulate();
    assert.equal(await said(), "");
    await isOf((await run(readFileSync(tracedPlan, "utf8"), { ...traced, seed })).runs);
  }
  await page.evaluate(`(() => { const file = document.getElementById("knob-file"); file.value = file.value.replace("lte.trace", "gsm.trace"); })()`);
  await simulate();
  assert.match(await said(), /^line 5: trace "gsm\.trace": there is no such file beside the scenario$/);

  assert.deepEqual(page.seen.console, [], "nothing on the console");
  assert.deepEqual(page.seen.requests.filter((request) => ![url, tracedUrl].includes(request) && !/^(data|blob):/.test(request)), [], "no request leaves");
});
