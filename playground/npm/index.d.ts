/** The text of a scenario file (TOML), as `dualq run` reads it. */
export type Scenario = string;

/** What the command line has beside the file; lists override lists. Rates and times are in tc's words: "50mbit", "30ms". */
export interface Input {
  /** Files that the scenario names, by their names there: traces of rates. */
  files?: Record<string, string>;
  /** The first seed, from 1. */
  seed?: number;
  /** How many seeds, one after the other. */
  seeds?: number;
  qdisc?: string[];
  cc?: string[];
  rate?: string[];
  rtt?: string[];
  duration?: string;
  interval?: string;
  /** Distributions of delays, and the intervals that pictures need. */
  distributions?: boolean;
  /** Refuse what may have more packets than this. */
  mostPackets?: number;
}

export interface RunOptions extends Input {
  /** Told as simulated time passes, of all runs together, in seconds; `false` ends the run. */
  onProgress?: (passed: number, total: number) => boolean | void;
  /** Looked at between steps. A run does not give way to other work: in a page, call it in a worker. */
  signal?: AbortSignal;
}

/** A packet seen, as in `dualq run --events`. */
export interface Packet {
  at_ns: number;
  seen: "in" | "out" | "ack" | "drop" | "sent" | "arrive";
  flow: number;
  direction: "down" | "up";
  kind: "data" | "ack" | "echo" | "udp" | "error";
  seq: number;
  bytes: number;
  /** The two bits of the ECN field: 0 Not-ECT, 1 ECT(1), 2 ECT(0), 3 CE. */
  ecn: number;
  sacks: number;
  /** How long it was in the queue that it leaves, if that is known. */
  waited_ns?: number;
  /** Why it was dropped. */
  reason?: "overlimit" | "congested" | "step" | "refused" | "flushed" | "superseded" | "random";
}

export interface Headers {
  at_ns: number;
  point: "near" | "far" | "in" | "out" | "up-in" | "up-out";
  /** Bytes of the whole IP packet. */
  length: number;
  /** From the IP header on, without payload, in hexadecimal. */
  bytes: string;
}

export interface ConnectionEvent {
  at_ns: number;
  flow: number;
  change: unknown;
}

export interface SimulateOptions extends Input {
  onPacket?: (packet: Packet) => void;
  onHeaders?: (headers: Headers) => void;
  onConnection?: (event: ConnectionEvent) => void;
  /** Have packets in each state, also without `onPacket`. */
  packets?: boolean;
}

/** A TCP sender. */
export interface SenderState {
  /** In segments. */
  cwnd: number;
  ssthresh: number | null;
  in_flight: number;
  srtt_ms: number | null;
  pacing_mbit: number | null;
  acknowledged_bytes: number;
}

export interface State {
  now_s: number;
  is_done: boolean;
  /** The queue under test: the object of `tc -j -s qdisc show`. */
  queue: Record<string, unknown>;
  /** That of the other direction, if there is one. */
  up_queue?: Record<string, unknown>;
  /** Of the flows, then of the probes. */
  senders: SenderState[];
  /** Those seen in the step before; of the first state none. */
  packets?: Packets;
}

/** The document of `dualq run --json`: docs/results.md tells of each key. */
export interface RunDocument {
  version: 1;
  command: "run";
  name: string;
  about: string;
  published: string[];
  seeds: { first: number; count: number };
  runs: { settings: Record<string, string>; world: "model"; seed: number; scenario: object; outcome: Outcome }[];
  summary: { settings: Record<string, string>; world: string; figures: object[] }[];
}

export interface Outcome {
  /** Of all flows, in Mbit/s. */
  goodput_mbit: number;
  fairness: number | null;
  flow: Record<string, unknown>[];
  probe: Record<string, unknown>[];
  udp?: Record<string, unknown>[];
  queue: Record<string, unknown>;
  up_queue?: Record<string, unknown>;
  other_queues?: { at: string; queue: Record<string, unknown> }[];
  series: Record<string, unknown>;
  data_packets: number;
  limits: object[];
}

export interface Checked {
  name: string;
  about: string;
  runs: number;
  /** Simulated seconds of all runs. */
  seconds: number;
  /** So many packets at most cross the bottlenecks. */
  packets: number;
  /** What its author may not have meant. */
  notes: string[];
  scenarios: { settings: [string, string][]; scenario: object }[];
}

/** Runs a scenario file: the document of `dualq run --json`. */
export function run(scenario: Scenario, options?: RunOptions): Promise<RunDocument>;
/** The same as text, byte for byte. */
export function runText(scenario: Scenario, options?: RunOptions): Promise<string>;
/** Reads a scenario file and runs nothing. */
export function check(scenario: Scenario, options?: Input): Promise<Checked>;
/** One scenario at its start, to be advanced step by step. */
export function simulate(scenario: Scenario, options?: SimulateOptions): Promise<Simulation>;
/** The version of the engine. */
export function version(): Promise<string>;
/** The compiled module, to be posted to workers. */
export function load(): Promise<WebAssembly.Module>;

export class Simulation {
  readonly state: State;
  /** Lets all happen that happens before `until` seconds from the start. */
  advance(until: number): State & { packets: Packets };
  /** Runs to the end; nothing is left to ask after that. */
  finish(): Outcome;
}

/** Packets in the order in which they were seen. */
export class Packets implements Iterable<Packet> {
  readonly length: number;
  at(number: number): Packet;
  [Symbol.iterator](): Iterator<Packet>;
}

/** One instance of the module, asked in its own form. */
export class Engine {
  constructor(module: WebAssembly.Module);
  ask(request: object, progress?: ((passed: number, total: number) => boolean | void) | null): { text: string; packets: ArrayBuffer };
}

export class DualqError extends Error {
  /** "usage": what was asked makes no sense; "interrupted"; "failed". */
  readonly kind: "usage" | "failed" | "interrupted";
}
