// A state as scenarios, one without the cure and one with it, and as calls of the program.

/** On slow lines flows take longer to show what they do; on fast ones there is more to compute. */
function lengths({ down, up }) {
  const both = down + up;
  if (both <= 120) return { duration: 20, warmup: 5 };
  return both <= 400 ? { duration: 12, warmup: 4 } : { duration: 8, warmup: 3 };
}

/** A rate in tc's words. */
function rateWord(mbit) {
  return mbit >= 1 && Number.isInteger(mbit) ? `${mbit}mbit` : `${Math.round(mbit * 1000)}kbit`;
}

const quoted = (text) => `"${text}"`;
const inline = (rate, qdisc) => `[{ rate = ${quoted(rateWord(rate))}, qdisc = ${quoted(qdisc)} }]`;

/** A router's own network, where nothing waits. */
const LAN_MBIT = 2500;

/** The lines of both directions: what stands where. */
function lines(state, cured) {
  const { down, up, router, cure, where, share } = state;
  const [, old] = QUEUES[router];
  const [, better] = QUEUES[cure];
  if (!cured) return { down: { rate: down, qdisc: old }, up: { rate: up, qdisc: old } };
  if (where === "line") return { down: { rate: down, qdisc: better }, up: { rate: up, qdisc: better } };
  // Downloads pass the line before the router, uploads the router before the line.
  if (where === "router") {
    return {
      down: { rate: down, qdisc: old, behind: inline(LAN_MBIT, better) },
      up: { rate: up, qdisc: old, before: inline(LAN_MBIT, better) },
    };
  }
  const shaped = (rate) => Number(((rate * share) / 100).toPrecision(4));
  return {
    down: { rate: shaped(down), qdisc: better, before: inline(down, old) },
    up: { rate: shaped(up), qdisc: better, behind: inline(up, old) },
  };
}

/** The groups of flows that there are, each in a direction: what they are called and how many. */
function flowGroups(state, cured) {
  const cc = cured && state.cure_cc !== "same" ? state.cure_cc : state.cc;
  return [["down", state.downloads], ["up", state.uploads]].flatMap(([direction, count]) => {
    const others = state.mix !== "none" && count > 0 ? 1 : 0;
    return [{ direction, cc, count: count - others }, { direction, cc: state.mix, count: others }].filter((group) => group.count > 0);
  });
}

function udpGroups({ calls, games }) {
  return [["voice", calls], ["game", games]].filter(([, count]) => count > 0).flatMap(([kind, count]) => ["down", "up"].map((direction) => ({ kind, count, direction })));
}

/** The scenario of a state as TOML, as it is now or cured. */
function scenarioOf(state, cured) {
  const { duration, warmup } = lengths(state);
  const half = quoted(`${state.rtt / 2}ms`);
  const { down, up } = lines(state, cured);
  const way = ({ rate, qdisc, before, behind }) => [`rate = ${quoted(rateWord(rate))}`, `qdisc = ${quoted(qdisc)}`, before && `before = ${before}`, behind && `behind = ${behind}`];
  const direction = (group) => group.direction === "up" && `direction = "up"`;
  const count = (group) => group.count > 1 && `count = ${group.count}`;
  const tables = [
    [`name = "${cured ? "cured" : "now"}"`, `duration = "${duration}s"`, `warmup = "${warmup}s"`, `interval = "100ms"`],
    ["[link]", ...way(down).slice(0, 1), `forward = ${half}`, `reverse = ${half}`, ...way(down).slice(1)],
    ["[link.up]", ...way(up)],
    ["[sender]", "gso = false"],
    ...flowGroups(state, cured).map((group) => ["[[flow]]", `cc = ${quoted(group.cc)}`, count(group), direction(group)]),
    ...udpGroups(state).map((group) => ["[[udp]]", `kind = ${quoted(group.kind)}`, count(group), direction(group)]),
    ["[[probe]]", `kind = "ping"`, `interval = "50ms"`],
    ...Array.from({ length: state.ssh }, () => ["[[probe]]", `kind = "ssh"`]),
  ];
  return `${tables.map((lines) => lines.filter(Boolean).join("\n")).join("\n\n")}\n`;
}

/** How strong the colours of flows of a kind are, one after the other. */
const SHADES = [1, 0.6, 0.35];

/** What each number of a flow in packets is: a kind with a name, in the order in which the engine numbers them. */
function flowsOf(state, cured) {
  const flows = flowGroups(state, cured).flatMap(({ direction, cc, count }) => Array.from({ length: count }, (_, at) => ({
    kind: direction === "down" ? "download" : "upload", name: `${direction === "down" ? "download" : "upload"}${count > 1 ? ` ${at + 1}` : ""} (${CONTROLS[cc]})`,
  })));
  const probes = [{ kind: "ping", name: "ping" }, ...Array.from({ length: state.ssh }, (_, at) => ({ kind: "ssh", name: `SSH ${at + 1}` }))];
  const udp = udpGroups(state).flatMap(({ kind, count, direction }) => Array.from({ length: count }, () => {
    const name = kind === "voice" ? "call" : "game";
    return { kind: name, name, way: direction === "down" ? 0 : 1 };
  }));
  const all = [...flows, ...probes, ...udp];
  // Flows of a kind have its colour in shades.
  return all.map((flow, at) => ({ ...flow, shade: all.slice(0, at).filter(({ kind }) => kind === flow.kind).length % SHADES.length }));
}

/** The call of `dualq plan` for whoever can change something: the router where there is a shaper, else the host itself. */
function planOf(state) {
  const { up, rtt, cure, where, cc, cure_cc: other } = state;
  const words = ["dualq plan"];
  if (where !== "line") words.push("--profile gateway");
  if (where !== "router") words.push(`--rate ${rateWord(up)}`);
  words.push(`--rtt ${rtt}ms`, `--qdisc ${word(QUEUES[cure][1])}`);
  if (where === "line") words.push(`--cc ${other === "same" ? cc : other}`);
  return `${words.join(" ")} -o plan.toml\n`;
}

/** Text in which commands stand between grave accents, each as one. */
function withCommands(text) {
  return text.split("`").map((part, at) => (at % 2 ? el("code", {}, part) : part));
}

/** What is to be known of that call. */
function planWords({ where, share, cure }) {
  const words = ["For the machine that sends into the upload, on which it is to be run: it says what would change and changes nothing; `sudo dualq apply plan.toml` does."];
  if (where === "shaper") words.push(`Its shaper is a twentieth below the rate${share === 95 ? ", as here" : `; here it is at ${share} %`}. The download's queue is at the provider: shaping it is for the router's other side, at the same share of that rate.`);
  if (where === "router") words.push("Without --rate there is no shaper, and the plan says what it says here: the queue is elsewhere.");
  if (where === "line") words.push("Only where the line's own queue is this machine's does that hold.");
  if (cure === "deep" || cure === "short") words.push("A FIFO is no cure: the plan will say so.");
  return words.join(" ");
}
