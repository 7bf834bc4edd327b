// What a full queue does to a call, in the model of dualq. Run with: node example.mjs

import { run, simulate } from "./index.js";

const scenario = `
duration = "20s"
warmup = "5s"
[link]
rate = "10mbit"
rtt = "30ms"
qdisc = ["pfifo limit 1000", "fq_codel"]
[sender]
gso = false
[[flow]]
cc = "cubic"
[[udp]]
kind = "voice"
`;

// A whole scenario file: all combinations of its lists.
const { runs } = await run(scenario);
for (const { settings, outcome } of runs) {
  console.log(`${settings.qdisc}: the call's packets wait up to ${outcome.udp[0].delay.p99_ms} ms, the download has ${outcome.goodput_mbit} Mbit/s`);
}

// One of them step by step, told of each packet that is dropped.
let dropped = 0;
const simulation = await simulate(scenario, { qdisc: ["fq_codel"], onPacket: ({ seen }) => { dropped += seen === "drop" ? 1 : 0; } });
for (let second = 1; second <= 5; second += 1) {
  const { queue, senders } = simulation.advance(second);
  console.log(`${second} s: ${queue.qlen} packets wait, the window is ${senders[0].cwnd} segments, ${dropped} dropped`);
}
