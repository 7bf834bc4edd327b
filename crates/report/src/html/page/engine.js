// The engine in WebAssembly, as an object. It is a part of the npm package and of pages' workers, and knows neither.

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** What was asked makes no sense ("usage"), was stopped ("interrupted"), or did not work ("failed"); the message is one line. */
export class DualqError extends Error {
  constructor(kind, message) {
    super(message);
    this.name = "DualqError";
    this.kind = kind;
  }
}

const KINDS = { 1: "failed", 2: "usage", 3: "interrupted" };

/** One instance of the module: whatever it needs in memory goes with it. */
export class Engine {
  #exports;
  #progress = null;
  #fault = null;
  #broken = false;

  /** Of a module that was compiled. */
  constructor(module) {
    const text = (from, length) => decoder.decode(new Uint8Array(this.#exports.memory.buffer, from, length));
    const progress = (passed, total) => (this.#progress && this.#progress(passed, total) === false ? 1 : 0);
    const panicked = (from, length) => { this.#fault = text(from, length); };
    this.#exports = new WebAssembly.Instance(module, { dualq: { progress, panicked } }).exports;
  }

  /** Asks one thing, in the engine's own form: the text of the reply, and the bytes of the packets that were seen. */
  ask(request, progress = null) {
    if (this.#broken) throw new DualqError("failed", "this engine broke before: make another");
    const { memory, take, call, reply, reply_length: replyLength, events, events_length: eventsLength } = this.#exports;
    const bytes = encoder.encode(JSON.stringify(request));
    const place = take(bytes.length);
    new Uint8Array(memory.buffer, place, bytes.length).set(bytes);
    this.#progress = progress;
    let status;
    try {
      status = call();
    } catch (error) {
      // What the module cannot go on after leaves it half way: nothing more is asked of it.
      this.#broken = true;
      if (!(error instanceof WebAssembly.RuntimeError) && !(error instanceof RangeError)) throw error;
      throw new DualqError("failed", `the engine stopped: ${(this.#fault || error.message).replaceAll("\n", " ")}`);
    } finally {
      this.#progress = null;
    }
    const text = decoder.decode(new Uint8Array(memory.buffer, reply(), replyLength()));
    if (status !== 0) throw new DualqError(KINDS[status] ?? "failed", text);
    return { text, packets: memory.buffer.slice(events(), events() + eventsLength()) };
  }
}

/** Packets that were seen, in the order of time. Read where they lie, for there may be a million. */
export class Packets {
  #view;
  #words;

  constructor(buffer, words) {
    this.#view = new DataView(buffer);
    this.#words = words;
  }

  get length() {
    return this.#view.byteLength / this.#words.record;
  }

  at(number) {
    const from = number * this.#words.record;
    const [view, words] = [this.#view, this.#words];
    const float = (place) => view.getFloat64(from + place, true);
    const byte = (place) => view.getUint8(from + place);
    const packet = {
      at_ns: float(0), seen: words.seen[byte(32)], flow: view.getUint32(from + 24, true), direction: words.direction[byte(33)], kind: words.kind[byte(34)],
      seq: float(16), bytes: view.getUint32(from + 28, true), ecn: byte(35), sacks: byte(36),
    };
    if (!Number.isNaN(float(8))) packet.waited_ns = float(8);
    if (byte(37) < words.reason.length) packet.reason = words.reason[byte(37)];
    return packet;
  }

  *[Symbol.iterator]() {
    for (let number = 0; number < this.length; number += 1) yield this.at(number);
  }
}

/** A simulation that stands still between its steps. */
export class Simulation {
  #engine;
  #words;
  #observers;
  #state;

  constructor(engine, scenario, { onPacket, onHeaders, onConnection, packets = false } = {}) {
    this.#engine = engine;
    this.#observers = { onPacket, onHeaders, onConnection };
    this.#words = JSON.parse(engine.ask({ about: {} }).text).words;
    const observe = { packets: packets || Boolean(onPacket), headers: Boolean(onHeaders), connections: Boolean(onConnection) };
    this.#state = JSON.parse(engine.ask({ begin: { scenario, observe } }).text);
  }

  /** What is known now. */
  get state() {
    return this.#state;
  }

  /** Lets all happen that happens before `until` seconds from the start; tells observers, and gives the state then. */
  advance(until) {
    const { text, packets } = this.#engine.ask({ advance: { until_s: until } });
    const { headers = [], connections = [], ...state } = JSON.parse(text);
    this.#state = { ...state, packets: new Packets(packets, this.#words) };
    this.#tell(this.#state.packets, headers, connections);
    return this.#state;
  }

  /** Runs to the end and gives the outcome, after which nothing is left to ask. */
  finish() {
    this.advance(Number.MAX_SAFE_INTEGER);
    return JSON.parse(this.#engine.ask({ finish: {} }).text);
  }

  #tell(packets, headers, connections) {
    const { onPacket, onHeaders, onConnection } = this.#observers;
    if (onPacket) for (const packet of packets) onPacket(packet);
    if (onHeaders) headers.forEach((one) => onHeaders(one));
    if (onConnection) connections.forEach((one) => onConnection(one));
  }
}
