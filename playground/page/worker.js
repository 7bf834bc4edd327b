// One side of the comparison, simulated beside the page: steps, and what was seen in them, as soon as there is some of it.

/** Simulated seconds between two looks. */
const STEP_S = 0.05;
/** What is there is told this often, in milliseconds; only between two such turns can a newer order come in. */
const TURN_MS = 30;
/** What a page is for: some seconds of a machine's time. */
const MOST_PACKETS = 4e6;

let engineModule = null;
let order = 0;

/** What came of the run so far is told this often, in milliseconds: the first time when one begins to wait for it. */
const EARLY_MS = 120;

/** Records of what became of packets: two numbers, then flags and the flow. */
const RECORD = 3;
const UP = 1 << 4, ECHO = 1 << 5, FLOW = 8;

/** Records as they come, put in columns: of each queue, and the answers to pings. */
class Seen {
  constructor() {
    this.parts = [];
  }

  add(buffer) {
    if (buffer.byteLength) this.parts.push([new Float32Array(buffer), new Uint32Array(buffer)]);
  }

  take() {
    const counts = [0, 0, 0];
    const place = (flags) => (flags & ECHO ? 2 : flags & UP ? 1 : 0);
    for (const [, flags] of this.parts) for (let at = 2; at < flags.length; at += RECORD) counts[place(flags[at])] += 1;
    const columns = counts.slice(0, 2).map((count) => ({ from: new Float32Array(count), to: new Float32Array(count), flow: new Uint16Array(count), flags: new Uint8Array(count) }));
    const pings = new Float32Array(2 * counts[2]);
    const next = [0, 0, 0];
    for (const [times, flags] of this.parts) {
      for (let at = 0; at < times.length; at += RECORD) {
        const what = flags[at + 2];
        const number = place(what);
        const to = next[number]++;
        if (number === 2) {
          pings[2 * to] = times[at];
          pings[2 * to + 1] = times[at + 1];
          continue;
        }
        const way = columns[number];
        way.from[to] = times[at];
        way.to[to] = times[at + 1];
        way.flow[to] = what >>> FLOW;
        way.flags[to] = what;
      }
    }
    this.parts = [];
    return { ways: columns, pings };
  }
}

/** Gives way to a newer order. A timer would wait for some milliseconds each time. */
const channel = new MessageChannel();
const turn = () => new Promise((resolve) => {
  channel.port1.onmessage = resolve;
  channel.port2.postMessage(null);
});

/** What is drawn of a queue beside its packets. */
function look(queue) {
  return queue && queue.kind === "dualpi2" ? { prob: queue.prob, coupling: queue.options.coupling } : null;
}

async function simulate({ order: number, scenario, seed, duration }) {
  const engine = new Engine(engineModule);
  const ask = (request) => engine.ask(request);
  ask({ begin: { scenario: { scenario, seed, most_packets: MOST_PACKETS }, observe: { passages: true } } });
  const seen = new Seen();
  let looks = [];
  const tell = (now, outcome) => {
    const { ways, pings } = seen.take();
    self.postMessage({ order: number, now, ways, looks, pings, outcome }, [...ways.flatMap((way) => Object.values(way).map((array) => array.buffer)), pings.buffer]);
    looks = [];
  };
  const start = performance.now();
  let [began, early] = [start, start];
  for (let step = 1; ; step += 1) {
    const { text, packets } = ask({ advance: { until_s: Math.min(step * STEP_S, duration) } });
    const state = JSON.parse(text);
    seen.add(packets);
    looks.push({ at: state.now_s, down: look(state.queue), up: look(state.up_queue), bytes: state.senders.map((sender) => sender.acknowledged_bytes) });
    if (state.is_done) break;
    const now = performance.now();
    if (now - began > TURN_MS) {
      const isDue = now - early > EARLY_MS;
      tell(state.now_s, isDue ? JSON.parse(ask({ so_far: {} }).text) : null);
      if (isDue) early = performance.now();
      await turn();
      if (order !== number) return;
      began = performance.now();
    }
  }
  const { text, packets } = ask({ finish: {} });
  seen.add(packets);
  tell(duration, JSON.parse(text));
}

self.onmessage = async ({ data }) => {
  if (data.module) engineModule = data.module;
  if (data.order === undefined) return;
  order = data.order;
  try {
    await simulate(data);
  } catch (error) {
    if (order === data.order) self.postMessage({ order: data.order, wrong: error.message });
  }
};
