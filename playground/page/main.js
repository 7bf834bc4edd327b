// The page from top to bottom, and what moves on it.

const page = document.getElementById("page");
const main = el("main");
const stillness = window.matchMedia("(prefers-reduced-motion: reduce)");
/** Changes that follow each other sooner wait for the last of them: a slider's every step is none to compute. */
const SETTLE_MS = 60;
const TELL_MS = 100;
/** Simulated seconds in a second. */
const SPEEDS = [[0.02, "fifty times slower: single packets"], [0.1, "ten times slower"], [1, "as fast as it is"], [4, "four times faster"]];

const shown = { state: firstState(), time: 0, speed: 1, from: 0, plays: !stillness.matches, direction: 0, isChosen: false };
const sides = [false, true].map((isCured) => new Side(isCured, heard));
let workers = [];

/** In which direction the queue is that is felt: where something is sent, and that is slower. */
function narrower({ downloads, uploads, down, up }) {
  if (!downloads !== !uploads) return uploads ? 1 : 0;
  return up < down ? 1 : 0;
}

/** Which queue is drawn; without a number, that which is felt. */
function chooseDirection(direction) {
  shown.isChosen = direction !== undefined;
  shown.direction = direction ?? narrower(shown.state);
  shown.drawn = null;
}

/** Simulates both sides of the state that is shown. */
function begin() {
  sides.forEach((side, at) => side.begin(shown.state, workers[at]));
  [shown.time, shown.from, shown.drawn] = [shown.from, 0, null];
  if (!shown.isChosen) shown.direction = narrower(shown.state);
  tellTexts();
  tellFigures();
}

let settling = null;
let changedAt = -Infinity;

/** The state changes: by a person, a link or a story. */
function change(more, { now = false } = {}) {
  const next = { ...shown.state, ...more };
  const wrong = senseless(next);
  say(wrong ? `Nothing to simulate: ${wrong}.` : "");
  shown.state = next;
  showControls();
  if (wrong) return;
  history.replaceState(null, "", linkOf(next));
  // What stands there is of the state before.
  parts.forEach(({ big }) => big.classList.add("waits"));
  clearTimeout(settling);
  const isFirst = performance.now() - changedAt > SETTLE_MS;
  changedAt = performance.now();
  if (now || isFirst) begin();
  else settling = setTimeout(begin, SETTLE_MS);
}

function heard(side) {
  if (side.wrong) say(`The ${side.isCured ? "cured" : "present"} line cannot be simulated: ${side.wrong}`);
  if (side.figured === side.known || side.wrong) tellFigures();
  else if (!side.outcome) parts[Number(side.isCured)].big.replaceChildren(el("span", {}, `simulating: ${Math.floor((100 * side.known) / side.duration)} %`));
  shown.drawn = null;
}

/** Of what part of the run figures are that are not final. */
const soFar = ({ figured, duration }) => `${figured.toFixed(2)} s of ${duration} s`;

/** What comes of it, beside the controls: on a phone the rest is far below. */
const summary = el("p", { class: "summary" });

/** One line for what does not go, read aloud when it comes. */
const notice = el("p", { class: "notice", role: "status" });

function say(text) {
  if (notice.textContent !== text) notice.textContent = text;
}

// What can be chosen.

const controls = {};
let controlsBox = null;

/** A slider has a thousand places; those of a rate are spread as people see rates. */
const PLACES_OF_SLIDER = 1000;

function placeOf({ least, most, log }, value) {
  const share = log ? Math.log(value / least) / Math.log(most / least) : (value - least) / (most - least);
  return Math.round(share * PLACES_OF_SLIDER);
}

function valueAt({ least, most, log }, place) {
  const share = place / PLACES_OF_SLIDER;
  return log ? least * (most / least) ** share : least + (most - least) * share;
}

function control(key) {
  const choice = CHOICES[key];
  const id = `choose-${key}`;
  if (choice.words) {
    const select = el("select", { id, onchange: () => change({ [key]: select.value }) }, Object.entries(choice.words).map(([value, words]) => el("option", { value }, words)));
    controls[key] = { show: (value) => { select.value = value; } };
    return el("div", { class: "choice", "data-choice": key }, el("label", { for: id }, choice.title), select);
  }
  const { least, most, unit = "" } = choice;
  const spread = Boolean(unit);
  const number = el("input", { id, type: "number", min: least, max: most, step: spread ? "any" : 1, inputmode: "decimal", onchange: () => {
    const [wrong, value] = readChoice(key, number.value.trim().replace(",", "."));
    if (wrong) {
      say(`${choice.title}: ${wrong.slice(wrong.indexOf(":") + 2)}, not ${number.value || "nothing"}.`);
      number.value = shown.state[key];
    } else change({ [key]: value });
  } });
  const slider = key === "seed" ? null : el("input", { type: "range", min: spread ? 0 : least, max: spread ? PLACES_OF_SLIDER : most, step: spread ? 5 : 1, "aria-label": choice.title, oninput: () => {
    change({ [key]: spread ? rounded(valueAt(choice, Number(slider.value)), choice) : Number(slider.value) });
  } });
  const element = el("div", { class: "choice", "data-choice": key }, el("label", { for: id }, choice.title), el("span", { class: "number" }, number, unit ? ` ${unit}` : null), slider);
  controls[key] = { show: (value) => {
    if (document.activeElement !== number) number.value = value;
    if (!slider) return;
    slider.value = spread ? placeOf(choice, value) : value;
    slider.setAttribute("aria-valuetext", `${value} ${unit}`.trim());
  }, element };
  return element;
}

function showControls() {
  for (const [key, { show, element }] of Object.entries(controls)) {
    show(shown.state[key]);
    const { of } = CHOICES[key];
    if (of && element) element.hidden = !of(shown.state);
  }
}

function controlSection() {
  const group = (name, title, why) => el("fieldset", {}, el("legend", {}, title), el("p", { class: "soft" }, why),
    Object.keys(CHOICES).filter((key) => CHOICES[key].group === name).map(control));
  controlsBox = section("Your line, what you do, and the cure", el("div", { class: "groups" },
    group("line", "Your line", "As the contract says it, and as a ping says it at night."),
    group("use", "What you do", "All at once, from the first second on."),
    group("cure", "The cure", "What would be otherwise on the right side.")), notice, summary);
}

// Both sides.

const parts = sides.map(() => ({}));
const slider = el("input", { type: "range", min: 0, max: 1000, step: 1, value: 0, "aria-label": "Simulated time", oninput: () => {
  shown.plays = false;
  shown.time = (Number(slider.value) / 1000) * sides[0].duration;
  showPlay();
} });
const play = el("button", { type: "button", id: "play", onclick: () => {
  shown.plays = !shown.plays;
  if (shown.plays && shown.time >= sides[0].duration) shown.time = 0;
  showPlay();
} });
const clock = el("output", { class: "clock" });

function showPlay() {
  play.textContent = shown.plays ? "pause" : "play";
  shown.drawn = null;
}

const directions = ["Download's queue", "Upload's queue"].map((title, at) => el("button", { type: "button", "data-direction": at, onclick: () => chooseDirection(at) }, title));

function sideElement(at) {
  const part = parts[at];
  const title = at === 0 ? "Now" : "Cured";
  part.big = el("p", { class: "big" });
  part.what = el("p", { class: "soft" });
  part.time = el("canvas", { class: "time", role: "img", "aria-label": `Round trips over time, ${title.toLowerCase()}` });
  part.queue = el("canvas", { class: "queue", role: "img", "aria-label": `Packets that wait, ${title.toLowerCase()}` });
  part.read = el("p", { class: "read" });
  part.prob = el("div", { class: "prob", hidden: true });
  return el("section", { class: "side", "aria-label": title, "data-side": at }, el("h3", {}, title), part.what, part.big,
    el("figure", {}, el("figcaption", {}, "Round trip ", el("span", { class: "soft" }, "of a ping beside all else")), part.time),
    el("figure", {}, el("figcaption", {}, "The queue ", el("span", { class: "soft" }, "the next to leave is at the right")), part.queue, part.read, part.prob));
}

const table = el("table", { id: "figures" });
const speed = el("select", { id: "speed", onchange: () => setSpeed(Number(speed.value)) }, SPEEDS.map(([value, words]) => el("option", { value }, words)));

function setSpeed(value) {
  shown.speed = value;
  speed.value = String(value);
}

function comparisonSection() {
  section("Side by side", el("div", { class: "controls play" }, play, slider, clock, el("label", { for: "speed" }, "Time runs"), speed,
    el("span", { role: "group", "aria-label": "Which queue is drawn", class: "tabs" }, directions)),
    el("div", { class: "sides" }, sides.map((_, at) => sideElement(at))),
    el("p", { class: "soft", id: "legend" }, Object.entries(KIND_COLOURS).map(([kind, number]) => el("span", { class: "mark", "data-kind": kind }, el("i", { "data-colour": number }), KIND_WORDS[kind])),
      "Several of a kind have shades. A packet with a hole was marked on its way out; a cross was dropped."),
    scroll("Figures of both", table));
}

function paintLegend() {
  document.querySelectorAll("#legend i").forEach((mark) => { mark.style.background = colour(Number(mark.dataset.colour)); });
}

/** What stands there, in words. */
function describe(state, isCured) {
  const { router, cure, where, share, cure_cc: cc, mix } = state;
  const senders = `${CONTROLS[isCured && cc !== "same" ? cc : state.cc]}${mix === "none" ? "" : `, and one ${CONTROLS[mix]}`}`;
  if (!isCured) return `${QUEUES[router][0]} at the line, ${senders}`;
  const place = { line: "at the line", shaper: `on the router behind a shaper at ${share} %`, router: `on the router, without a shaper; at the line still ${QUEUES[router][0]}` }[where];
  return `${QUEUES[cure][0]} ${place}, ${senders}`;
}

/** Which delay and which speed a state is about. */
function headOf({ calls, ssh, downloads, uploads }) {
  const key = calls ? "call" : ssh ? "ssh" : "ping99";
  const words = { call: "the call's delay, one way", ssh: "a key pressed in SSH", ping99: "round trip, 99 of 100" }[key];
  return [key, words, downloads ? "download" : uploads ? "upload" : null];
}

function tellFigures() {
  const found = sides.map((side) => side.figures());
  const [key, words, speed] = headOf(shown.state);
  const both = (key, write) => found.map((figures) => some(write, figures?.[key])).join(" → ");
  const isEarly = (side) => side.outcome !== null && !side.isDone;
  summary.textContent = `${words}: ${both(key, ms)}${speed ? `; ${speed}: ${both(speed, mbit)}` : ""}${sides.some(isEarly) ? " (so far)" : ""}`;
  sides.forEach((side, at) => {
    const figures = found[at];
    const part = parts[at];
    part.what.textContent = describe(side.state, side.isCured);
    part.big.classList.toggle("waits", !figures);
    part.big.classList.toggle("early", isEarly(side));
    const [key, words, speed] = headOf(side.state);
    part.big.replaceChildren(...(figures
      ? [el("span", { "data-figure": key }, el("b", {}, ms(figures[key])), ` ${words}`), speed ? el("span", { "data-figure": speed }, el("b", {}, mbit(figures[speed])), ` ${speed}`) : null,
        isEarly(side) ? el("span", { class: "so-far" }, `so far, of ${soFar(side)}`) : null].filter(Boolean)
      : [el("span", {}, side.wrong ? "–" : "…")]));
  });
  const rows = Object.entries(FIGURES).filter(([key]) => found.some((figures) => figures && figures[key] !== null));
  const heads = ["Now", "Cured"].map((head, at) => el("th", { scope: "col", "data-known": sides[at].figured }, isEarly(sides[at]) ? `${head}, ${soFar(sides[at])}` : head));
  // What is known of different times is not compared.
  const isFinal = sides.every((side) => side.isDone);
  table.replaceChildren(
    el("thead", {}, el("tr", {}, el("td", { class: "words" }), heads)),
    el("tbody", {}, rows.map(([key, [words, write, better]]) => {
      const values = found.map((figures) => figures?.[key] ?? null);
      const best = isFinal && better && !values.includes(null) && values[0] !== values[1] ? (better === "less") === (values[1] < values[0]) : null;
      return el("tr", { "data-figure": key }, el("th", { class: "words", scope: "row" }, words),
        values.map((value, at) => el("td", { class: best !== null && best === (at === 1) ? "better" : null, "data-value": value }, value === null ? "…" : write(value))));
    })));
  if (isFinal) tellStory(found);
}

/** The moment that is shown, drawn; nothing if it is the one that is there. */
function draw() {
  const stamp = [shown.time, shown.direction, sides[0].known, sides[1].known, parts[0].time.clientWidth, isDark()].join();
  if (stamp === shown.drawn) return;
  shown.drawn = stamp;
  const slowest = sides.map(({ pings: { values, length } }) => {
    let most = 0;
    for (let at = 1; at < length; at += 2) most = Math.max(most, values[at]);
    return most;
  });
  const most = roundUp(Math.max(20, shown.state.rtt, ...slowest));
  // Words are read ten times a second, which spares slow machines.
  const tells = !shown.plays || performance.now() - (shown.told ?? 0) > TELL_MS;
  if (tells) shown.told = performance.now();
  slider.value = (shown.time / sides[0].duration) * 1000;
  if (tells) slider.setAttribute("aria-valuetext", `${shown.time.toFixed(2)} s`);
  if (tells) clock.textContent = `${shown.time.toFixed(shown.speed < 1 ? 3 : 1)} s of ${sides[0].duration} s`;
  directions.forEach((button, at) => button.setAttribute("aria-pressed", String(at === shown.direction)));
  sides.forEach((side, at) => {
    const part = parts[at];
    drawTime(part.time, side, shown.time, most);
    const { packets, waited_ms: waited, dropped } = drawQueue(part.queue, side, shown.direction, shown.time);
    if (!tells) return;
    const speed = side.speed(shown.time, shown.direction);
    const look = side.lookAt(shown.time)?.[shown.direction === 0 ? "down" : "up"];
    part.read.textContent = `${packets} ${packets === 1 ? "packet waits" : "packets wait"}${packets ? `, ${short(waited)} ms by now` : ""}${dropped ? `; dropped just now: ${dropped}` : ""}${speed === null ? "" : `; ${mbit(speed)} ${shown.direction === 0 ? "down" : "up"}`}`;
    part.prob.hidden = !look;
    if (look) tellProbabilities(part.prob, look);
  });
}

/** What DualPI2 does now: its base probability p′, and what the two queues make of it (RFC 9332 §4.1). */
function tellProbabilities(element, { prob, coupling }) {
  const rows = [["p′, the controller's", prob], ["classic: p′²", prob * prob], [`L queue: ${coupling} · p′, and its own step`, Math.min(1, coupling * prob)]];
  if (element.children.length !== rows.length) element.replaceChildren(...rows.map(() => el("div", {}, el("span"), el("i", {}, el("b")))));
  rows.forEach(([words, share], at) => {
    const [text, bar] = element.children[at].children;
    text.textContent = `${words}: ${percent(share)}`;
    bar.firstChild.style.width = `${100 * Math.min(1, share)}%`;
  });
}

let before = null;

function frame(now) {
  const passed = before === null ? 0 : Math.min(0.25, (now - before) / 1000);
  before = now;
  // Time waits for what is not simulated yet.
  const known = Math.min(...sides.map((side) => (side.isDone ? side.duration : Math.max(0, side.known - 1))));
  if (shown.plays && shown.time < known) {
    shown.time = Math.min(known, shown.time + passed * shown.speed);
    if (shown.time >= sides[0].duration) {
      shown.plays = false;
      showPlay();
    }
  } else if (!shown.plays && stillness.matches && shown.time === 0 && sides.every((side) => side.isDone)) {
    // Who wants nothing to move sees the middle.
    shown.time = sides[0].duration / 2;
  }
  draw();
  requestAnimationFrame(frame);
}

// What can be taken away.

const texts = el("div");

function tellTexts() {
  const { state } = shown;
  const [now, cured] = sides.map((side) => side.text);
  const command = (text) => commandOf({ text, seeds: 1, first_seed: state.seed, world: "model" });
  texts.replaceChildren(
    el("h3", {}, "As a link"), block(`${location.href.split("#")[0]}${linkOf(state)}\n`, "Link"),
    el("h3", {}, "As a scenario"), el("p", { class: "soft" }, "The program gives the same figures, byte for byte; with --world kernel the same file runs on real Linux."),
    el("details", { "data-text": "now" }, el("summary", {}, "Now"), block(command(now), "Command of the present line")),
    el("details", { "data-text": "cured" }, el("summary", {}, "Cured"), block(command(cured), "Command of the cured line")),
    el("h3", {}, "As a plan"), el("p", { class: "soft" }, withCommands(planWords(state))), block(planOf(state), "Command of the plan"));
}

/** What a link says, or that it says nonsense: then nothing of it is taken. */
function follow() {
  const { state, wrong } = readLink(location.hash);
  if (wrong) {
    history.replaceState(null, "", "#");
    change(firstState(), { now: true });
    say(`This link is refused: ${wrong}. What is shown is the first state.`);
  } else change(state, { now: true });
}

async function open() {
  page.append(el("header", {}, el("h1", {}, "Why does it lag?"),
    el("p", { class: "headline" }, "A download fills a queue somewhere, and everything else waits in it. Say what your line is like and what you do on it; both sides below are simulated packet by packet, in your browser.")));
  page.append(main);
  storySection();
  controlSection();
  comparisonSection();
  section("Take it with you", texts);
  page.append(el("footer", {}, el("p", { class: "soft" }, "This page is one file that asks nothing of any network. Its engine is the model of dualq: ",
    "what it cannot say is in the documents, under “The model and its limits”.")));
  paintLegend();
  showPlay();
  setSpeed(1);
  prefersDark.addEventListener("change", () => { paintLegend(); shown.drawn = null; });
  let module;
  try {
    module = await engineModule();
  } catch (error) {
    say(`The engine does not start in this browser: ${error.message}`);
    return;
  }
  workers = sides.map(() => engineWorker(module, (why) => say(`The engine does not start in this browser: ${why}`)));
  window.addEventListener("hashchange", () => { endStory(); follow(); });
  follow();
  requestAnimationFrame(frame);
}

open();
