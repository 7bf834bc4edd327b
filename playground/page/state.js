// What a person chooses: each choice with its bounds, and all of them as a link.

const QUEUES = {
  deep: ["FIFO of 1000 packets", "pfifo limit 1000"],
  short: ["FIFO of 100 packets", "pfifo limit 100"],
  codel: ["CoDel", "codel"],
  pie: ["PIE", "pie"],
  fq: ["fq", "fq"],
  fq_codel: ["fq_codel", "fq_codel"],
  cake: ["CAKE", "cake"],
  dualpi2: ["DualPI2", "dualpi2"],
  dualpi2_any: ["DualPI2 with any_ect", "dualpi2 any_ect"],
};

const CONTROLS = { cubic: "CUBIC", reno: "Reno", bbr: "BBR", bbr3: "BBRv3", dctcp: "DCTCP", prague: "Prague" };

const PLACES = {
  shaper: "on my router, with a shaper below the line's rate",
  router: "on my router, without a shaper",
  line: "in the device at the line itself (modem, provider)",
};

const named = (queues) => Object.fromEntries(Object.entries(queues).map(([key, [name]]) => [key, name]));

/** The choices: a number from `least` to `most`, or a word of `words`. What stands first is what is there without a link. */
const CHOICES = {
  down: { group: "line", title: "Download rate", unit: "Mbit/s", value: 50, least: 0.5, most: 1000, log: true },
  up: { group: "line", title: "Upload rate", unit: "Mbit/s", value: 10, least: 0.5, most: 1000, log: true },
  rtt: { group: "line", title: "Round trip when idle", unit: "ms", value: 30, least: 1, most: 500, log: true },
  router: { group: "line", title: "What waits at the line, waits in", words: named(QUEUES), value: "deep" },
  downloads: { group: "use", title: "Downloads", value: 1, least: 0, most: 16 },
  uploads: { group: "use", title: "Uploads", value: 1, least: 0, most: 16 },
  calls: { group: "use", title: "Calls", value: 1, least: 0, most: 8 },
  games: { group: "use", title: "Games", value: 0, least: 0, most: 8 },
  ssh: { group: "use", title: "SSH sessions", value: 0, least: 0, most: 4 },
  cc: { group: "use", title: "Congestion control of the senders", words: CONTROLS, value: "cubic" },
  mix: { group: "use", title: "One transfer each way uses instead", words: { none: "the same", ...CONTROLS }, value: "none" },
  cure: { group: "cure", title: "Queue discipline", words: named(QUEUES), value: "fq_codel" },
  where: { group: "cure", title: "It stands", words: PLACES, value: "shaper" },
  share: { group: "cure", title: "Shaper, of the line's rate", unit: "%", value: 95, least: 50, most: 100, of: ({ where }) => where === "shaper" },
  cure_cc: { group: "cure", title: "Congestion control of the senders", words: { same: "as now", ...CONTROLS }, value: "same" },
  seed: { group: "line", title: "Seed of what is random", value: 1, least: 1, most: 1000000 },
};

const firstState = () => Object.fromEntries(Object.entries(CHOICES).map(([key, { value }]) => [key, value]));

/** A number as people write it: three digits that say something, and no more. */
function rounded(value, { unit }) {
  return unit ? Number(value.toPrecision(3)) : Math.round(value);
}

/** Why a word is no value of a choice, or null and the value. */
function readChoice(key, text) {
  const choice = CHOICES[key];
  if (choice.words) {
    return Object.hasOwn(choice.words, text) ? [null, text] : [`${key}=${text}: give one of ${Object.keys(choice.words).join(", ")}`];
  }
  const { least, most, unit = "" } = choice;
  const value = /^\d{1,7}(\.\d{1,6})?$/.test(text) ? Number(text) : NaN;
  if (!(value >= least && value <= most)) return [`${key}=${text}: a number from ${least} to ${most}${unit && ` ${unit}`}`];
  return [null, rounded(value, choice)];
}

/** The state of a link's part behind `#`, or what is wrong with it. Nothing that stands there goes anywhere but through here. */
function readLink(hash) {
  const state = firstState();
  const seen = new Set();
  for (const part of hash.replace(/^#/, "").split("&").filter((part) => part !== "")) {
    const [, key, text] = part.match(/^([a-z_]{1,20})=([a-z0-9_.]{1,20})$/) ?? [];
    const short = part.length > 40 ? `${part.slice(0, 40)}…` : part;
    if (key === undefined || !Object.hasOwn(CHOICES, key)) return { wrong: `${short}: there is no such choice; they are ${Object.keys(CHOICES).join(", ")}` };
    if (seen.has(key)) return { wrong: `${key} is there twice` };
    seen.add(key);
    const [wrong, value] = readChoice(key, text);
    if (wrong) return { wrong };
    state[key] = value;
  }
  const wrong = senseless(state);
  return wrong ? { wrong } : { state };
}

/** What cannot be simulated, in a line. */
function senseless(state) {
  return state.downloads + state.uploads + state.calls + state.games + state.ssh === 0 ? "nothing is done on the line: choose a download, an upload, a call, a game or SSH" : null;
}

function linkOf(state) {
  const first = firstState();
  const parts = Object.entries(state).filter(([key, value]) => value !== first[key]).map(([key, value]) => `${key}=${value}`);
  return parts.length ? `#${parts.join("&")}` : "#";
}
