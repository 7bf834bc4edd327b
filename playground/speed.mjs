// How fast the engine is beside the program: speed.mjs DUALQ PACKAGE, in the project's folder. DUALQ is a release build, PACKAGE the folder of the built npm package. Data packets for each second of
// processor time, each with one thread, one after the other in one go; the first round of a scenario has the engine compiled by the way.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [program, pack] = process.argv.slice(2).map((path) => resolve(path));
const { Engine, load } = await import(pathToFileURL(join(pack, "index.js")).href);
const module = await load();
const SEEDS = 12, ROUNDS = 3;

for (const [name, options] of [["narrow-vps", { qdisc: ["fq_codel"], cc: ["cubic"] }], ["coexistence", {}], ["rrul", { qdisc: ["dualpi2"] }], ["ten-flows", {}]]) {
  const file = `scenarios/${name}.toml`;
  const scenario = readFileSync(file, "utf8");
  const words = Object.entries(options).flatMap(([option, values]) => values.flatMap((value) => [`--${option}`, value]));
  const rounds = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const engine = new Engine(module);
    const before = process.cpuUsage();
    const { text } = engine.ask({ run: { scenario, seeds: SEEDS, ...options } });
    const { user, system } = process.cpuUsage(before);
    // The shell's `times` tells of its children, which nothing in node does.
    const timed = spawnSync("bash", ["-c", `"$@"; times >&2`, "bash", program, "run", file, "--seeds", String(SEEDS), ...words, "--json", "--no-progress"], {
      encoding: "utf8", maxBuffer: 1 << 30, env: { ...process.env, RAYON_NUM_THREADS: "1" },
    });
    if (timed.stdout !== text) throw new Error(`${name}: not the bytes of the program`);
    const seconds = timed.stderr.trim().split("\n").at(-1).split(" ").map((time) => time.match(/(\d+)m([\d.]+)s/).slice(1)).reduce((sum, [minutes, rest]) => sum + 60 * Number(minutes) + Number(rest), 0);
    const packets = JSON.parse(text).runs.reduce((sum, { outcome }) => sum + outcome.data_packets, 0) / 1e6;
    const own = (user + system) / 1e6;
    rounds.push(`${(packets / own).toFixed(2)} of ${(packets / seconds).toFixed(2)} million/s (${Math.round((100 * seconds) / own)} %)`);
  }
  console.log(`${name}: ${rounds.join(", ")}`);
}
