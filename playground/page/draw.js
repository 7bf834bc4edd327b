// Both sides at a moment, on canvases: delays over time, and the packets that wait.

const SQUARES = [13, 10, 8, 6, 5, 4, 3];
const KIND_COLOURS = { download: 0, upload: 1, call: 2, game: 3, ping: 4, ssh: 5 };
const KIND_WORDS = { download: "download", upload: "upload", call: "call", game: "game", ping: "ping", ssh: "SSH" };
/** How long a dropped packet is seen, in simulated seconds. */
const FALL_S = 0.25;
/** A queue for each flow, as these disciplines have, is a lane for each; more lanes are not told apart. */
const MOST_LANES = 8;

/** A canvas as large as it is seen, sharp on every screen, and its pen. */
function penOf(canvas) {
  const scale = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    [canvas.width, canvas.height] = [Math.round(width * scale), Math.round(height * scale)];
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  return { pen, width, height };
}

/** A number at or above one that is easily read: 1, 2 or 5 and zeros. */
function roundUp(value) {
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((factor) => factor * size).find((round) => round >= value);
}

/** Round trips over time, up to the moment in full colour. */
function drawTime(canvas, side, time, most) {
  const { pen, width, height } = penOf(canvas);
  const [left, bottom, top] = [62, height - 18, 8];
  const x = (seconds) => left + (seconds / side.duration) * (width - left - 6);
  const y = (delay) => bottom - (Math.min(delay, most) / most) * (bottom - top);
  pen.strokeStyle = ink("line");
  pen.fillStyle = ink("soft");
  pen.textAlign = "right";
  for (const share of [0, 0.5, 1]) {
    pen.beginPath();
    pen.moveTo(left, y(most * share));
    pen.lineTo(width - 6, y(most * share));
    pen.stroke();
    pen.fillText(`${short(most * share)} ms`, left - 4, y(most * share) + 4);
  }
  pen.textAlign = "left";
  pen.fillText("0 s", left, height - 4);
  pen.textAlign = "right";
  pen.fillText(`${side.duration} s`, width - 6, height - 4);
  const { values, length } = side.pings;
  const line = (until, alpha) => {
    pen.globalAlpha = alpha;
    pen.beginPath();
    for (let at = 0; at < length && values[at] <= until; at += 2) pen.lineTo(x(values[at]), y(values[at + 1]));
    pen.stroke();
    pen.globalAlpha = 1;
  };
  pen.strokeStyle = colour(KIND_COLOURS.ping);
  pen.lineWidth = 1.5;
  line(Infinity, 0.3);
  line(time, 1);
  pen.lineWidth = 1;
  pen.strokeStyle = ink("accent");
  pen.beginPath();
  pen.moveTo(x(time), top);
  pen.lineTo(x(time), bottom);
  pen.stroke();
}

const disciplineOf = (side, direction) => lines(side.state, side.isCured)[direction === 0 ? "down" : "up"].qdisc.split(" ")[0];

/** In which lane a packet waits: in queues for each flow its own, in DualPI2 one of two, else all in one. */
function lanesOf(side, direction) {
  const discipline = disciplineOf(side, direction);
  if (discipline === "dualpi2") {
    const isAny = lines(side.state, side.isCured)[direction === 0 ? "down" : "up"].qdisc.includes("any_ect");
    const low = (ecn) => ecn === 1 || ecn === 3 || (isAny && ecn === 2);
    return { names: ["L queue (low latency)", "C queue (classic)"], of: (_, flags) => (low(flags >> 2) ? 0 : 1) };
  }
  if (["fq", "fq_codel", "cake"].includes(discipline)) {
    const comes = ({ way }) => way === undefined || way === direction;
    const kindOf = (flow) => side.flows[flow].kind;
    const present = side.flows.map((_, flow) => flow).filter((flow) => comes(side.flows[flow]));
    const back = direction === 0 ? "upload" : "download";
    const words = (kind, name) => (kind === back ? `${name}: acknowledgements` : name);
    if (present.length <= MOST_LANES) return { names: present.map((flow) => words(kindOf(flow), side.flows[flow].name)), of: (flow) => present.indexOf(flow) };
    // Of many flows those of a kind share a lane here.
    const kinds = [...new Set(present.map(kindOf))];
    return { names: kinds.map((kind) => `${words(kind, KIND_WORDS[kind])}, a queue each`), of: (flow) => kinds.indexOf(kindOf(flow)) };
  }
  return { names: ["one queue for all"], of: () => 0 };
}

/** The packets that wait at a moment, the next to leave at the right. Gives how many, and how long the first has waited. */
function drawQueue(canvas, side, direction, time) {
  const { pen, width, height } = penOf(canvas);
  const way = side.ways[direction];
  const lanes = side.lanes[direction] ??= lanesOf(side, direction);
  const inside = way.inside(time);
  const each = height / lanes.names.length;
  const waiting = lanes.names.map(() => []);
  for (const at of inside) waiting[lanes.of(way.flow.values[at], way.flags.values[at])]?.push(at);
  const title = 15;
  const room = (square) => Math.max(1, Math.floor((each - title) / square)) * Math.floor(width / square);
  const largest = Math.max(...waiting.map((lane) => lane.length));
  const fits = (square, packets) => square <= each - title && room(square) >= packets;
  // They grow again only with much room to spare: a queue whose squares change all the time tells nothing.
  let size = side.squares[direction];
  while (size + 1 < SQUARES.length && !fits(SQUARES[size], largest)) size += 1;
  if (size > 0 && fits(SQUARES[size - 1], 3 * largest)) size -= 1;
  side.squares[direction] = size;
  const square = SQUARES[size];
  const rows = Math.max(1, Math.floor((each - title) / square));
  pen.textAlign = "left";
  waiting.forEach((lane, number) => {
    const top = number * each;
    pen.fillStyle = ink("soft");
    pen.fillText(lanes.names[number], 2, top + 11);
    pen.fillStyle = ink("wash");
    pen.fillRect(0, top + title, width, rows * square);
    // One path for each flow: to draw each packet by itself takes slow machines long.
    const paths = new Map();
    const put = (paint, x, y, size) => {
      if (!paths.has(paint)) paths.set(paint, new Path2D());
      paths.get(paint).rect(x, y, size, size);
    };
    lane.slice(0, rows * Math.floor(width / square)).forEach((at, place) => {
      const [x, y] = [width - square * (1 + Math.floor(place / rows)), top + title + (place % rows) * square];
      put(side.flows[way.flow.values[at]], x, y, square - 1);
      if (way.flags.values[at] & 1) put("hole", x + square / 3, y + square / 3, square / 3);
    });
    const holes = paths.get("hole");
    paths.delete("hole");
    for (const [{ kind, shade }, path] of paths) {
      pen.fillStyle = colour(KIND_COLOURS[kind]);
      pen.globalAlpha = SHADES[shade];
      pen.fill(path);
    }
    pen.globalAlpha = 1;
    pen.fillStyle = ink("paper");
    if (holes) pen.fill(holes);
  });
  // What is dropped leaves at the left, where packets come in.
  const dropped = way.dropped(time, FALL_S);
  dropped.slice(-40).forEach((at, place) => {
    const lane = lanes.of(way.flow.values[at], way.flags.values[at]);
    const x = 4 + (place % 20) * 9;
    const y = Math.min(height - 10, lane * each + title + 4 + Math.floor(place / 20) * 9);
    pen.globalAlpha = 1 - (time - way.to.values[at]) / FALL_S;
    pen.strokeStyle = colour(KIND_COLOURS[side.flows[way.flow.values[at]].kind]);
    pen.lineWidth = 2;
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(x + 6, y + 6);
    pen.moveTo(x + 6, y);
    pen.lineTo(x, y + 6);
    pen.stroke();
    pen.globalAlpha = 1;
  });
  const oldest = inside.length ? Math.max(...inside.slice(0, 64).map((at) => time - way.from.values[at])) : 0;
  return { packets: inside.length, waited_ms: oldest * 1e3, dropped: dropped.length };
}
