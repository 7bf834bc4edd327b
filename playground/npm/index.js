// dualq's model: the same scenario and seed give the same bytes as `dualq run --json`.

import { DualqError, Engine, Packets, Simulation } from "./engine.js";

export { DualqError, Engine, Packets, Simulation };

let compiled = null;

/** The module, compiled once. A file is read, anything else fetched. */
async function bytes(url) {
  if (url.protocol === "file:") return (await import("node:fs/promises")).readFile(url);
  const answer = await fetch(url);
  if (!answer.ok) throw new DualqError("failed", `cannot fetch ${url}: ${answer.status} ${answer.statusText}`);
  return answer.arrayBuffer();
}

/** The compiled module, for workers to make engines of. */
export function load() {
  compiled ??= bytes(new URL("dualq.wasm", import.meta.url)).then((code) => WebAssembly.compile(code));
  // A failure is not for ever.
  compiled.catch(() => { compiled = null; });
  return compiled;
}

async function engine() {
  return new Engine(await load());
}

/** What the engine is asked: options that are its own, and no callbacks. */
function input(scenario, { onProgress, signal, packets, onPacket, onHeaders, onConnection, mostPackets, ...rest }) {
  for (const key of ["seed", "seeds"]) {
    if (rest[key] !== undefined && !(Number.isSafeInteger(rest[key]) && rest[key] >= 0)) throw new DualqError("usage", `${key}: ${rest[key]} is no whole number`);
  }
  const most = mostPackets === undefined ? {} : { most_packets: mostPackets };
  return { scenario, ...rest, ...most };
}

/** Who may stop a run: the callback, or a signal that was set from it or before. */
function watcher({ onProgress, signal }) {
  return (passed, total) => (signal?.aborted ? false : onProgress?.(passed, total));
}

/** The document of `dualq run --json`, as text, byte for byte. */
export async function runText(scenario, options = {}) {
  return (await engine()).ask({ run: input(scenario, options) }, watcher(options)).text;
}

/** The document of `dualq run --json`. */
export async function run(scenario, options = {}) {
  return JSON.parse(await runText(scenario, options));
}

/** What a scenario comes to: how many runs, seconds and packets, and each of its scenarios with all defaults. Nothing is run. */
export async function check(scenario, options = {}) {
  return JSON.parse((await engine()).ask({ check: input(scenario, options) }).text);
}

/** A simulation of one scenario at its start. */
export async function simulate(scenario, options = {}) {
  return new Simulation(await engine(), input(scenario, options), options);
}

/** The version of the engine. */
export async function version() {
  return JSON.parse((await engine()).ask({ about: {} }).text).version;
}
