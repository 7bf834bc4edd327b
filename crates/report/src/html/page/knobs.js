// The scenario of the report again, otherwise: with the engine in the page, where there is one.

/** What may be given in the place of what the file says, as on the command line; lists with commas. */
const KNOBS = [["rate", "Rate", "50mbit"], ["rtt", "Round trip", "30ms"], ["qdisc", "Queue discipline", "dualpi2, fq_codel"], ["cc", "Congestion control", "cubic, prague"]];
/** More packets take a page longer than one waits. */
const MOST_PACKETS = 50e6;

function knobsSection() {
  if (!document.getElementById("engine")) return;
  const given = data.knobs || { plan: 0, scenario: data.plans[0].text };
  const seed = data.rows.find((row) => row.plan === 0).first_seed;
  const field = (id, label, value, hint) => el("p", { class: "knob" }, el("label", { for: `knob-${id}` }, label), el("input", { id: `knob-${id}`, value: value || null, placeholder: hint }));
  const text = el("textarea", { id: "knob-file", rows: 12, spellcheck: "false" });
  text.value = given.scenario;
  const said = el("p", { role: "status" });
  const bar = el("progress", { max: 1, value: 0, hidden: true, "aria-label": "How far the simulation is" });
  const run = el("button", { type: "button", id: "knob-run" }, "simulate");
  const stop = el("button", { type: "button", id: "knob-stop", hidden: true }, "stop");
  section("Turn the knobs",
    el("p", {}, "The same scenario otherwise, simulated in this page by the model of dualq; the report is then of that. What is empty is as the file says."),
    el("div", { class: "knobs" }, KNOBS.map(([key, label, hint]) => field(key, label, given[key], hint)), field("duration", "Duration", given.duration, "20s"), field("seed", "Seed", given.seed, String(seed))),
    el("details", { open: !given.scenario }, el("summary", {}, "The scenario's file"), el("label", { for: "knob-file", class: "soft" }, "TOML"), text),
    el("div", { class: "controls" }, run, stop, bar), said);
  let worker = null;
  const end = (words) => {
    if (worker) worker.terminate();
    worker = null;
    said.textContent = words;
    [run.hidden, stop.hidden, bar.hidden] = [false, true, true];
  };
  stop.addEventListener("click", () => end("Stopped."));
  run.addEventListener("click", async () => {
    const value = (id) => document.getElementById(`knob-${id}`).value.trim();
    const list = (key) => value(key).split(",").map((one) => one.trim()).filter((one) => one !== "");
    const knobs = { scenario: text.value, duration: value("duration"), seed: value("seed") };
    KNOBS.forEach(([key]) => { knobs[key] = value(key); });
    const scenario = { scenario: text.value, files: data.plans[0].files || {}, most_packets: MOST_PACKETS };
    KNOBS.forEach(([key]) => { scenario[key] = list(key); });
    if (knobs.duration) scenario.duration = knobs.duration;
    if (!/^\d{0,15}$/.test(knobs.seed)) return end(`Seed: a whole number, not ${knobs.seed}.`);
    scenario.seed = knobs.seed ? Number(knobs.seed) : seed;
    [run.hidden, stop.hidden, bar.hidden, bar.value] = [true, false, false, 0];
    said.textContent = "";
    try {
      worker = engineWorker(await engineModule(), (why) => end(`The engine does not start in this browser: ${why}`));
    } catch (error) {
      return end(`The engine does not start in this browser: ${error.message}`);
    }
    worker.onmessage = ({ data: { passed, total, text: page, wrong } }) => {
      if (wrong) end(wrong);
      else if (page) {
        end("");
        showAnew({ ...JSON.parse(page), knobs });
      } else bar.value = passed / total;
    };
    worker.postMessage({ request: { page: scenario } });
  });
}

/** The whole page of other data. */
function showAnew(other) {
  gone.abort();
  document.getElementById("data").textContent = JSON.stringify(other);
  page.replaceChildren();
  draw();
  document.getElementById("knob-run").focus();
}
