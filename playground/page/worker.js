// One side of the comparison, simulated beside the page: steps, and what was seen in them, as soon as there is some of it.

/** Simulated seconds between two looks. */
const STEP_S = 0.05;
/** What is there is told this often, in milliseconds; only between two such turns can a newer order come in. */
const TURN_MS = 30;
/** What a page is for: some seconds of a machine's time. */
const MOST_PACKETS = 4e6;

let engineModule = null;
let order = 0;

const IN = 0, OUT = 1, ACK = 2, DROP = 3;
const ECHO = 2;

/** Flags of a packet that left a queue: marked there, dropped there; then the ECN field with which it came. */
const MARKED = 1, DROPPED = 2;
const CE = 3;

/** Packets that wait, until it is known what becomes of them; what has left is put in columns. */
class Waiting {
  constructor() {
    this.inside = new Map();
    this.columns();
  }

  columns() {
    this.left = { from: [], to: [], flow: [], flags: [] };
  }

  /** One number for a packet of a flow; no place in a stream is beyond 2^38 here. */
  static key(flow, kind, seq) {
    return (flow * 8 + kind) * 2 ** 38 + seq;
  }

  came(key, at, ecn) {
    this.inside.set(key, at * 4 + ecn);
  }

  gone(key, at, flow, ecn, isDropped) {
    const came = this.inside.get(key);
    if (came === undefined) return;
    this.inside.delete(key);
    const isMarked = ecn === CE && came % 4 !== CE;
    this.put(Math.floor(came / 4), at, flow, (isDropped ? DROPPED : isMarked ? MARKED : 0) | (came % 4) << 2);
  }

  put(from, to, flow, flags) {
    const { left } = this;
    left.from.push(from / 1e9);
    left.to.push(to / 1e9);
    left.flow.push(flow);
    left.flags.push(flags);
  }

  take() {
    const { from, to, flow, flags } = this.left;
    this.columns();
    return { from: Float32Array.from(from), to: Float32Array.from(to), flow: Uint16Array.from(flow), flags: Uint8Array.from(flags) };
  }
}

function read(buffer, size, ways, pings) {
  const view = new DataView(buffer);
  for (let at = 0; at < view.byteLength; at += size) {
    const seen = view.getUint8(at + 32);
    if (seen > DROP) continue;
    const [time, seq, flow] = [view.getFloat64(at, true), view.getFloat64(at + 16, true), view.getUint32(at + 24, true)];
    const [direction, kind, ecn] = [view.getUint8(at + 33), view.getUint8(at + 34), view.getUint8(at + 35)];
    if (seen === ACK) {
      if (kind === ECHO) pings.push(time / 1e9, (time - seq) / 1e6);
      continue;
    }
    const way = ways[direction];
    const key = Waiting.key(flow, kind, seq);
    if (seen === IN) way.came(key, time, ecn);
    else way.gone(key, time, flow, ecn, seen === DROP);
  }
}

const turn = () => new Promise((resolve) => { setTimeout(resolve, 0); });

/** What is drawn of a queue beside its packets. */
function look(queue) {
  return queue && queue.kind === "dualpi2" ? { prob: queue.prob, coupling: queue.options.coupling } : null;
}

async function simulate(number, scenario, seed) {
  const engine = new Engine(engineModule);
  const observed = new Simulation(engine, { scenario, seed, most_packets: MOST_PACKETS }, { packets: true });
  const { words } = JSON.parse(engine.ask({ about: {} }).text);
  const duration = JSON.parse(engine.ask({ check: { scenario, seed } }).text).seconds;
  const ways = [new Waiting(), new Waiting()];
  let looks = [], pings = [];
  const tell = (now) => {
    const columns = ways.map((way) => way.take());
    const message = { order: number, now, duration, ways: columns, looks, pings: Float32Array.from(pings) };
    self.postMessage(message, [...columns.flatMap((way) => Object.values(way).map((array) => array.buffer)), message.pings.buffer]);
    looks = [];
    pings = [];
  };
  let began = performance.now();
  for (let step = 1; ; step += 1) {
    const state = observed.advanceRaw(Math.min(step * STEP_S, duration));
    read(state.packets, words.record, ways, pings);
    looks.push({ at: state.now_s, down: look(state.queue), up: look(state.up_queue), bytes: state.senders.map((sender) => sender.acknowledged_bytes) });
    if (state.is_done) break;
    if (performance.now() - began > TURN_MS) {
      tell(state.now_s);
      await turn();
      if (order !== number) return;
      began = performance.now();
    }
  }
  for (const way of ways) for (const [key, came] of way.inside) way.put(Math.floor(came / 4), Infinity, Math.floor(key / 2 ** 38 / 8), (came % 4) << 2);
  const outcome = observed.finish();
  tell(duration);
  self.postMessage({ order: number, outcome });
}

self.onmessage = async ({ data }) => {
  if (data.module) engineModule = data.module;
  if (data.order === undefined) return;
  order = data.order;
  try {
    await simulate(data.order, data.scenario, data.seed);
  } catch (error) {
    if (order === data.order) self.postMessage({ order: data.order, wrong: error.message });
  }
};
