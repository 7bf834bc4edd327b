// One of the two sides: its worker, what that has told so far, and how it is drawn at a moment.

/** A list of numbers that grows. */
class Growing {
  constructor(Type) {
    this.values = new Type(1024);
    this.length = 0;
  }

  append(more) {
    if (this.length + more.length > this.values.length) {
      const larger = new this.values.constructor(Math.max(2 * this.values.length, this.length + more.length));
      larger.set(this.values.subarray(0, this.length));
      this.values = larger;
    }
    this.values.set(more, this.length);
    this.length += more.length;
  }
}

/** The packets that passed one queue, in the order in which they left. */
class Way {
  constructor() {
    this.from = new Growing(Float32Array);
    this.to = new Growing(Float32Array);
    this.flow = new Growing(Uint16Array);
    this.flags = new Growing(Uint8Array);
    this.longest = 0;
  }

  append(more) {
    for (const [name, values] of Object.entries(more)) this[name].append(values);
    more.from.forEach((from, at) => { if (more.to[at] - from < Infinity) this.longest = Math.max(this.longest, more.to[at] - from); });
  }

  /** The first that left after a moment. */
  after(time) {
    let [low, high] = [0, this.to.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.to.values[middle] > time) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Those that are inside at a moment, the next to leave first. */
  inside(time) {
    const found = [];
    // Whoever leaves later than that came later too.
    const last = time + this.longest;
    for (let at = this.after(time); at < this.to.length; at += 1) {
      const to = this.to.values[at];
      if (this.from.values[at] <= time) found.push(at);
      if (to > last && to !== Infinity) break;
    }
    return found;
  }

  /** Those that were dropped within a while before a moment. */
  dropped(time, within) {
    const found = [];
    for (let at = this.after(time - within); at < this.to.length && this.to.values[at] <= time; at += 1) {
      if (this.flags.values[at] & 2) found.push(at);
    }
    return found;
  }
}

class Side {
  constructor(isCured, changed) {
    this.isCured = isCured;
    this.changed = changed;
    this.order = 0;
    this.reset(firstState());
  }

  reset(state) {
    this.state = state;
    this.ways = [new Way(), new Way()];
    this.looks = [];
    this.pings = new Growing(Float32Array);
    this.known = 0;
    this.duration = lengths(state).duration;
    /** What came of it, up to what is known; its last word where that is all. */
    this.outcome = null;
    this.figured = 0;
    this.wrong = null;
    this.flows = flowsOf(state, this.isCured);
    // How large packets are drawn each way: places in the list of sizes.
    this.squares = [0, 0];
    /** Where they wait, each way; made when first drawn. */
    this.lanes = [null, null];
  }

  /** Begins with a state; whatever was under way is left. */
  begin(state, worker) {
    this.reset(state);
    this.order += 1;
    this.began = performance.now();
    this.text = scenarioOf(state, this.isCured);
    worker.onmessage = ({ data }) => this.told(data);
    worker.postMessage({ order: this.order, scenario: this.text, seed: state.seed, duration: this.duration });
  }

  told({ order, now, ways, looks, pings, outcome, wrong }) {
    if (order !== this.order) return;
    if (wrong) this.wrong = wrong;
    else {
      ways.forEach((way, at) => this.ways[at].append(way));
      this.looks.push(...looks);
      this.pings.append(pings);
      this.known = now;
      if (outcome) [this.outcome, this.figured] = [outcome, now];
    }
    this.changed(this);
  }

  /** All of it is simulated: what is known of it is final. */
  get isDone() {
    return this.figured === this.duration;
  }

  /** What was looked at last before a moment. */
  lookAt(time) {
    return this.looks[Math.max(0, Math.min(this.looks.length - 1, Math.round(time / 0.05) - 1))];
  }

  /** What arrived of a direction in the half second before a moment, in Mbit/s. */
  speed(time, direction) {
    const [now, before] = [this.lookAt(time), this.lookAt(time - 0.5)];
    if (!now || !before || now.at <= before.at) return null;
    const kind = direction === 0 ? "download" : "upload";
    const bytes = (look) => look.bytes.reduce((sum, bytes, flow) => (this.flows[flow]?.kind === kind ? sum + bytes : sum), 0);
    return ((bytes(now) - bytes(before)) * 8) / (now.at - before.at) / 1e6;
  }

  /** The figures of the run as far as it is known, in the order in which they are shown; null where there is nothing of the kind. */
  figures() {
    if (!this.outcome) return null;
    return figuresOf(this.state, this.isCured, this.outcome);
  }
}

/** Figures of an outcome, from its warm-up to its end. */
function figuresOf(state, isCured, outcome) {
  const groups = flowGroups(state, isCured);
  const sum = (direction) => {
    const own = outcome.flow.filter((_, at) => groups[at].direction === direction);
    return own.length ? own.reduce((all, { total_mbit: mbit }) => all + mbit, 0) : null;
  };
  const udp = (kind) => {
    const own = (outcome.udp ?? []).filter((_, at) => udpGroups(state)[at].kind === kind);
    if (!own.length) return null;
    // What was still on its way at the end is neither.
    const [lost, received] = [own.reduce((all, one) => all + one.lost, 0), own.reduce((all, one) => all + one.received, 0)];
    return { delay: Math.max(...own.map(({ delay }) => (delay ? delay.p95_ms : Infinity))), lost: lost ? lost / (lost + received) : 0 };
  };
  // Of the transfers each way those with another congestion control, if there are any, come last.
  const other = state.mix === "none" ? -1 : groups.findLastIndex(({ direction }) => direction === (state.downloads ? "down" : "up"));
  const first = groups.findIndex((_, at) => at < other);
  const of = (at, key) => (at < 0 ? null : outcome.flow[at][key]);
  const [ping, ...ssh] = outcome.probe;
  const [call, game] = [udp("voice"), udp("game")];
  const queues = [outcome.queue, outcome.up_queue].filter(Boolean);
  return {
    download: sum("down"), upload: sum("up"), first: of(first, "total_mbit"), other: of(other, "total_mbit"), otherRtt: of(other, "srtt_ms_p50"), ping: ping.n ? ping.p50_ms : null, ping99: ping.n ? ping.p99_ms : null,
    call: call && call.delay, callLost: call && call.lost, game: game && game.delay,
    ssh: ssh.length ? Math.max(...ssh.map(({ n, p99_ms: ms }) => (n ? ms : Infinity))) : null,
    drops: queues.reduce((all, { drops }) => all + drops, 0), marks: queues.reduce((all, { marks }) => all + marks, 0),
  };
}

const ms = (value) => (value === Infinity ? "none arrives" : `${fixed(value, value < 10 ? 1 : 0)} ms`);
const mbit = (value) => `${fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0)} Mbit/s`;

/** The figures by name: words, how they are written, and what is better. */
const FIGURES = {
  download: ["Download", mbit, "more"],
  upload: ["Upload", mbit, "more"],
  first: ["Of that, the others together", mbit, null],
  other: ["Of that, the one with another congestion control", mbit, null],
  otherRtt: ["Round trip that this one measures itself", ms, "less"],
  call: ["Call, one way: 95 of 100 packets within", ms, "less"],
  callLost: ["Call: packets lost", percent, "less"],
  game: ["Game, one way: 95 of 100 packets within", ms, "less"],
  ssh: ["A key pressed in SSH: 99 of 100 within", ms, "less"],
  ping: ["Round trip, half of them within", ms, "less"],
  ping99: ["Round trip, 99 of 100 within", ms, "less"],
  drops: ["Packets dropped", (value) => fixed(value, 0), null],
  marks: ["Packets marked (ECN)", (value) => fixed(value, 0), null],
};
