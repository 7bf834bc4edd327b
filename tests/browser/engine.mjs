// The npm package in node: engine.mjs PACKAGE SCENARIOS. SCENARIOS is a folder of requests (*.json), each with the document that the program wrote of the same (*.out).
// What is wrong ends it with a stack.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [pack, scenarios] = process.argv.slice(2);
const { check, DualqError, Engine, load, run, runText, simulate, version } = await import(pathToFileURL(join(pack, "index.js")).href);
const refusal = async (kind, message, work) => {
  await assert.rejects(work, (error) => {
    assert.ok(error instanceof DualqError, error.stack);
    assert.equal(error.kind, kind);
    assert.match(error.message, message);
    assert.ok(!error.message.includes("\n"), "one line");
    return true;
  });
};

// The types name what the package has.
const declared = [...readFileSync(join(pack, "index.d.ts"), "utf8").matchAll(/^export (?:function|class) (\w+)/gm)].map(([, name]) => name);
assert.deepEqual(declared.sort(), Object.keys(await import(pathToFileURL(join(pack, "index.js")).href)).sort());

// The program's bytes.
const names = readdirSync(scenarios).filter((name) => name.endsWith(".json"));
assert.ok(names.length >= 17, `${names}`);
for (const name of names) {
  const { run: { scenario, ...options } } = JSON.parse(readFileSync(join(scenarios, name), "utf8"));
  const wanted = readFileSync(join(scenarios, name.replace(/json$/, "out")), "utf8");
  const began = Date.now();
  const given = await runText(scenario, options);
  assert.ok(given === wanted, `${name}: not the bytes of the program`);
  console.log(`${name}: ${given.length} bytes, ${Date.now() - began} ms`);
}

const small = "duration = '3s'\nwarmup = '1s'\n[link]\nrate = '5mbit'\nqdisc = ['pfifo', 'dualpi2']\n[sender]\ngso = false\n[[flow]]\ncc = 'cubic'\n[[probe]]\nkind = 'ping'\n";
assert.match(await version(), /^\d+\.\d+\.\d+$/);

// Progress, and ways to stop.
const told = [];
await run(small, { onProgress: (passed, total) => { told.push([passed, total]); } });
assert.deepEqual(told.at(-1), [6, 6]);
assert.ok(told.length > 100 && told.every(([passed], at) => at === 0 || passed >= told[at - 1][0]));
await refusal("interrupted", /^interrupted$/, run(small, { onProgress: (passed) => passed < 1 }));
const aborted = new AbortController();
aborted.abort();
await refusal("interrupted", /^interrupted$/, run(small, { signal: aborted.signal }));

// Bad input: what, where, what would be right.
await refusal("usage", /^line 2: .*rat/, run("[link]\nrat = '5mbit'\n"));
await refusal("usage", /--qdisc: .*fq_codle.*fq_codel/, run(small, { qdisc: ["fq_codle"] }));
await refusal("usage", /^line 2: trace "lte.trace": there is no such file beside the scenario$/, run("[link]\ntrace = 'lte.trace'\n"));
await refusal("usage", /up to 5 million packets, and here at most 0.1 million are simulated.*dualq run/, run("duration = '60s'\n[link]\nrate = '1gbit'\n", { mostPackets: 100_000 }));
await refusal("usage", /^0 seeds/, run(small, { seeds: 0 }));
await refusal("usage", /^seed: -1 is no whole number$/, run(small, { seed: -1 }));
await refusal("usage", /unknown field `sede`/, run(small, { sede: 1 }));
await refusal("usage", /^these are 2 scenarios/, simulate(small));
assert.deepEqual(await check(small).then(({ runs, seconds, scenarios: all }) => [runs, seconds, all.map(({ settings }) => settings)]), [2, 6, [[["qdisc", "pfifo"]], [["qdisc", "dualpi2"]]]]);

// Step by step, in whatever steps: what a run gives in one go.
const [{ outcome }] = (await run(small, { qdisc: ["dualpi2"], seed: 7 })).runs;
for (const step of [0.003, 0.5, 10]) {
  let [left, dropped, changes, headers] = [0, 0, 0, 0];
  const onPacket = ({ seen, direction, waited_ns: waited }) => {
    if (direction === "down" && seen === "out") {
      left += 1;
      assert.ok(waited >= 0);
    }
    if (direction === "down" && seen === "drop") dropped += 1;
  };
  const simulation = await simulate(small, { qdisc: ["dualpi2"], seed: 7, onPacket, onConnection: () => { changes += 1; }, onHeaders: ({ bytes }) => { assert.match(bytes, /^45/); headers += 1; } });
  let state = simulation.state;
  assert.equal(state.now_s, 0);
  for (let at = step; !state.is_done; at += step) state = simulation.advance(at);
  assert.equal(state.queue.kind, "dualpi2");
  assert.ok(state.senders[0].acknowledged_bytes > 1e6 && state.senders[0].srtt_ms > 50);
  assert.equal(left, state.queue.packets, "each packet that left was told");
  assert.equal(dropped, state.queue.drops);
  assert.ok(changes > 1000 && headers > 1000);
  assert.deepEqual(simulation.finish(), outcome, `in steps of ${step} s`);
  assert.throws(() => simulation.advance(1), /no simulation is under way/);
}
const simulation = await simulate(small, { qdisc: ["pfifo"] });
assert.throws(() => simulation.advance(-1), /until_s: -1 is no time/);

// An instance on its own, as workers have it.
const engine = new Engine(await load());
assert.throws(() => engine.ask({ nonsense: {} }), /unknown variant `nonsense`/);
assert.ok(JSON.parse(engine.ask({ page: { scenario: small } }).text).rows.length === 2);
