// What whoever writes TypeScript may do with the npm package, and what the compiler has to refuse. tsc reads it beside the package; nothing runs it.

import * as dualq from "dualq";
import type { Checked, Outcome, Packet, RunDocument, State } from "dualq";

const scenario: dualq.Scenario = "duration = '3s'\n";

// All that the package exports, by name: what a script has and the types do not is refused here, and the other way round in the test's own comparison.
export const names: Record<keyof typeof dualq, unknown> = {
  DualqError: dualq.DualqError, Engine: dualq.Engine, Packets: dualq.Packets, Simulation: dualq.Simulation,
  check: dualq.check, load: dualq.load, run: dualq.run, runText: dualq.runText, simulate: dualq.simulate, version: dualq.version,
};

export async function uses(): Promise<number> {
  const document: RunDocument = await dualq.run(scenario, {
    qdisc: ["fq_codel"], cc: ["cubic"], rate: ["5mbit"], rtt: ["20ms"], seed: 1, seeds: 2, duration: "3s", interval: "100ms", distributions: true, mostPackets: 1e6,
    files: { "lte.trace": "1\n" }, signal: new AbortController().signal, onProgress: (passed, total) => passed < total,
  });
  const [{ settings, outcome, seed }] = document.runs;
  const all: Outcome = outcome;
  const words: string = settings.qdisc + document.name + seed.toFixed();
  const checked: Checked = await dualq.check(scenario);
  const text: string = await dualq.runText(scenario);
  const simulation: dualq.Simulation = await dualq.simulate(scenario, {
    packets: true, onPacket: (packet: Packet) => { packet.waited_ns?.toFixed(); }, onHeaders: ({ point }) => { point satisfies string; }, onConnection: ({ change }) => change,
  });
  const state: State = simulation.advance(1.5);
  const { packets } = simulation.advance(2);
  for (const packet of packets) if (packet.seen === "drop") words.at(packet.ecn);
  const engine = new dualq.Engine(await dualq.load());
  const bytes: ArrayBuffer = engine.ask({ about: {} }, (passed, total) => passed <= total).packets;
  try {
    simulation.finish();
  } catch (error) {
    if (error instanceof dualq.DualqError && error.kind === "usage") return text.length;
  }
  return all.goodput_mbit + checked.seconds + state.senders[0].cwnd + bytes.byteLength + (await dualq.version()).length;
}

export async function refused(): Promise<void> {
  // @ts-expect-error a scenario is a text
  await dualq.run({ duration: "3s" });
  // @ts-expect-error a list, as there may be several
  await dualq.run(scenario, { qdisc: "fq_codel" });
  // @ts-expect-error no such option
  await dualq.run(scenario, { qdiscs: ["fq_codel"] });
  // @ts-expect-error progress is of runs
  await dualq.simulate(scenario, { onProgress: () => true });
  const { runs } = await dualq.run(scenario);
  // @ts-expect-error no such figure
  runs[0].outcome.goodput;
  // @ts-expect-error one of the words, and this is none
  const seen: Packet["seen"] = "gone";
  // @ts-expect-error what is known is read
  (await dualq.simulate(scenario)).state = null;
}
