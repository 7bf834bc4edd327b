// A report in a browser: report.mjs CHROMIUM PAGE RESULT [PICTURES]. The page is of the results document RESULT; with a folder PICTURES it leaves
// pictures of the page there. DUALQ_AXE names axe-core's axe.min.js. What is wrong ends it with a stack.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { withPage } from "./chromium.mjs";

const [program, file, result, pictures] = process.argv.slice(2);
const url = pathToFileURL(file).href;
const document = JSON.parse(readFileSync(result, "utf8"));
const TIME = ["goodput", "rtt", "queue_delay", "queue_packets", "probability", "marks", "drops", "cwnd", "srtt", "retransmits"];

/** As names are shown: in one line, with what turns its direction as an escape. */
const oneLine = (name) => name.replace(/\n/g, " ").replace(/[\u202a-\u202e\u2066-\u2069]/g, (c) => `\\u${c.charCodeAt(0).toString(16)}`);

/** What the page draws: of each chart its lines, with the numbers of their points that are there, and its range in x. */
const drawn = (page) => page.evaluate(`Promise.resolve(drawAll()).then(() => new Promise(requestAnimationFrame)).then(() => Object.fromEntries([...charts].map(([name, chart]) => [name, {
  labels: chart.lines.map((line) => line.label), rows: chart.lines.map((line) => line.row),
  points: chart.data.slice(1).map((values) => values.filter((value) => value !== null && value !== undefined).length),
  values: chart.data.slice(1).map((values) => [...values]),
  min: chart.scales.x.min, max: chart.scales.x.max,
}])))`);

const text = (page, selector) => page.evaluate(`[...document.querySelectorAll(${JSON.stringify(selector)})].map((one) => one.textContent)`);

/** The runs in the page's order, which ranks them, each as the index of a row has it. */
async function rows(page) {
  const labels = await page.evaluate(`JSON.parse(document.getElementById("data").textContent).rows.map((row) => [row.settings, row.world])`);
  const settings = Object.keys(document.runs[0].settings);
  return labels.map(([values, world]) => document.runs.find((run) => run.world === world && run.seed === document.seeds.first
    && settings.every((what, at) => run.settings[what] === values[at])));
}

await withPage(program, async (page) => {
  await page.view(1280, 900, false);
  const took = await page.load(url);
  console.log(`opened in ${took} ms`);
  const runs = await rows(page);
  assert.equal(runs.length, document.summary.length, "a row for each scenario and world");
  assert.ok(!runs.includes(undefined), "each row is of a run");
  assert.equal((await text(page, "#comparison tbody tr")).length, runs.length);

  // All rows on: lines and points are those of the document.
  await page.click(".legend button:nth-last-child(2)");
  const all = await drawn(page);
  const there = (values) => values.filter((value) => value !== null).length;
  const check = (name, of) => {
    const expected = runs.flatMap((run, row) => of(run.outcome.series).map((values) => [row, values])).filter(([, values]) => there(values) > 0);
    const { rows, values } = all[name];
    assert.deepEqual(rows, expected.map(([row]) => row), `lines of ${name}`);
    expected.forEach(([, wanted], at) => assert.deepEqual(values[at], wanted, `${name}, line ${at}`));
  };
  check("rtt", (series) => series.rtt_ms);
  check("queue_delay", (series) => [series.queue_delay_ms]);
  check("cwnd", (series) => series.cwnd);
  const flows = runs.reduce((sum, run) => sum + (run.outcome.series.each_goodput_mbit || []).flat().length, 0);
  check("goodput", (series) => (flows > 0 && flows <= 48 ? series.each_goodput_mbit.flat() : series.goodput_mbit));
  const dropped = runs.some((run) => run.outcome.series.queue_drops.some((drops) => drops > 0));
  assert.equal("drops" in all, dropped, "a chart of drops if there are any");
  const distributions = runs.flatMap((run) => [run.outcome.queue.distribution_ect, run.outcome.queue.distribution_not_ect]).filter(Boolean);
  assert.equal(all.queue_cdf.labels.length, distributions.length);
  assert.equal(all.probe_cdf.labels.length, runs.flatMap((run) => run.outcome.probe.filter((probe) => probe.distribution)).length);
  // Sizes of transfers have a chart each, with lines that begin at none and end at the share that ended.
  const sizes = runs.flatMap((run) => run.outcome.flow.flatMap((flow) => flow.completions || []).filter(({ distribution }) => distribution));
  const completions = Object.keys(all).filter((name) => name.startsWith("completion_"));
  assert.equal(completions.length, new Set(sizes.map(({ from_bytes }) => from_bytes)).size);
  const ends = completions.flatMap((name) => all[name].values.map((values) => values.filter((value) => value !== null && value !== undefined)));
  assert.deepEqual(ends.map((values) => values[0]), sizes.map(() => 0));
  assert.deepEqual(ends.map((values) => values.at(-1)).sort(), sizes.map(({ done, transfers }) => done / transfers).sort());
  // A number that varies is the axis of lines.
  const swept = await page.evaluate(`JSON.parse(document.getElementById("data").textContent).sweep`);
  assert.equal("sweep" in all, swept.length === 1);
  assert.deepEqual(Object.keys(all).filter((name) => ![...TIME, ...completions, "sweep", "front-0"].includes(name) && !name.endsWith("cdf")), [], "no other charts");
  // Delay against goodput has a dot for each scenario, those that nothing beats on the line.
  if ("front-0" in all) {
    const mean = (at, name) => document.summary[at].figures.find((figure) => figure.name === name).mean;
    const places = document.summary.map((_, at) => [mean(at, "p99"), document.summary[at].figures.find(({ unit }) => unit === "Mbit/s").mean]);
    const leads = places.filter(([delay, goodput]) => !places.some(([less, more]) => less <= delay && more >= goodput && (less < delay || more > goodput)));
    const goodputs = (values) => values.filter((value) => typeof value === "number").sort();
    const [others, best] = all["front-0"].values.map(goodputs);
    assert.deepEqual(best, goodputs(leads.map(([, goodput]) => goodput)));
    assert.equal(others.length + best.length, document.summary.length);
  }
  if (swept.length === 1) {
    const [{ name, values }] = swept;
    const means = values.map((value) => document.summary.find(({ settings }) => settings[name] === value).figures.find(({ name }) => name === "above base").mean);
    assert.deepEqual(all.sweep.values[0], means, "the line is of the summary");
  }
  if (swept.length === 2) {
    // Two are a heat map, of any figure.
    for (const figure of await page.evaluate(`[...document.getElementById("figure").options].map(({ value, text }) => [value, text])`)) {
      await page.evaluate(`(() => { const select = document.getElementById("figure"); select.value = ${figure[0]}; select.dispatchEvent(new Event("change")); })()`);
      const cells = await text(page, ".heat tbody td");
      assert.equal(cells.length, swept[0].values.length * swept[1].values.length, figure[1]);
      assert.ok(cells.some((cell) => /^[\d,.]+$/.test(cell)), figure[1]);
    }
  }

  // A row off, by the legend; on again, by the table and the keyboard.
  await page.click('.legend button[data-row="0"]');
  const without = await drawn(page);
  assert.equal(without.rtt.labels.length, all.rtt.labels.length - runs[0].outcome.series.rtt_ms.length);
  assert.ok(Object.entries(without).every(([name, { rows }]) => name === "sweep" || name === "front-0" || !rows.includes(0)), "everything follows but the sweep and the front, which have all rows");
  await page.evaluate(`document.querySelector('#comparison input[data-row="0"]').focus()`);
  await page.press(" ");
  assert.deepEqual(Object.keys(await drawn(page)), Object.keys(all));
  assert.equal((await drawn(page)).rtt.labels.length, all.rtt.labels.length);

  // Commands to copy: nothing that a scenario holds ends the text before its end.
  const commands = (await text(page, "pre")).filter((command) => command.startsWith("dualq run - "));
  assert.equal(commands.length, runs.length);
  for (const command of commands) {
    const [first, ...lines] = command.trimEnd().split("\n");
    const end = first.match(/<<'(\w+)'$/)[1];
    assert.equal(lines.indexOf(end), lines.length - 1, `one end: ${command}`);
    assert.doesNotMatch(command, /[\u202a-\u202e\u2066-\u2069]/u);
  }

  // Sorting: by the last column up and down.
  const last = (await text(page, "#comparison th button")).length - 1;
  const column = async () => (await page.evaluate(`[...document.querySelectorAll("#comparison tbody tr")].map((row) => row.lastElementChild.firstChild && row.lastElementChild.firstChild.data)`))
    .filter((cell) => cell !== null).map((cell) => Number(cell.replace(/,/g, "")));
  await page.click(`#comparison th button[data-column="${last}"]`);
  assert.deepEqual(await column(), (await column()).sort((one, other) => one - other));
  assert.equal(await page.evaluate(`document.querySelector("#comparison th[aria-sort]").getAttribute("aria-sort")`), "ascending");
  await page.click(`#comparison th button[data-column="${last}"]`);
  assert.deepEqual(await column(), (await column()).sort((one, other) => other - one));

  // Zoom: a drag in one chart zooms all over time and no other; keys do it too.
  const before = await drawn(page);
  await page.drag('[data-chart="rtt"] .u-over', 0.25, 0.5);
  const zoomed = await drawn(page);
  const end = before.rtt.max;
  assert.ok(Math.abs(zoomed.rtt.min - end * 0.25) < end * 0.02 && Math.abs(zoomed.rtt.max - end * 0.5) < end * 0.02, `${zoomed.rtt.min} to ${zoomed.rtt.max}`);
  const together = (charts) => {
    for (const name of TIME.filter((name) => name in charts)) assert.deepEqual([charts[name].min, charts[name].max], [charts.rtt.min, charts.rtt.max], name);
  };
  together(zoomed);
  assert.equal(zoomed.probe_cdf.max, before.probe_cdf.max);
  await page.click('.legend button[data-row="0"]');
  together(await drawn(page));
  assert.ok(Math.abs((await drawn(page)).rtt.max - zoomed.rtt.max) < 1e-9, "what is zoomed stays when rows change");
  await page.evaluate(`document.querySelector('[data-chart="cwnd"]').focus()`);
  await page.press("+");
  const closer = await drawn(page);
  assert.ok(closer.rtt.max - closer.rtt.min < 0.6 * (zoomed.rtt.max - zoomed.rtt.min), "plus zooms");
  together(closer);
  await page.press("ArrowRight");
  assert.ok((await drawn(page)).rtt.min > closer.rtt.min, "an arrow moves");
  await page.press("0");
  assert.ok((await drawn(page)).rtt.max >= end * 0.99, "0 shows all");

  // Whatever a name holds stands there as text.
  assert.equal(await page.evaluate("window.pwned"), undefined);
  assert.equal((await text(page, "h1"))[0], oneLine(document.name));
  assert.equal(await page.evaluate(`document.querySelectorAll("img").length`), 0);

  for (const [name, width, dark] of [["light", 1280, false], ["dark", 1280, true], ["phone", 360, false]]) {
    await page.view(width, 900, dark);
    await page.load(url);
    await page.fits(width, name);
    if (process.env.DUALQ_AXE) await page.accessible(readFileSync(process.env.DUALQ_AXE, "utf8"), name);
    await page.evaluate("drawAll()");
    if (pictures) writeFileSync(join(pictures, `${name}.png`), await page.picture());
  }
  // In print all is on paper's ground.
  await page.send("Page.printToPDF");
  await page.settle();
  assert.deepEqual(page.seen.console, [], "nothing on the console");
  assert.deepEqual(page.seen.requests.filter((request) => request !== url && !request.startsWith("data:")), [], "no request leaves");
});
