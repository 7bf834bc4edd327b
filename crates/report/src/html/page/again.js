// What makes all this again.

function copyButton(text) {
  const button = el("button", { type: "button", class: "copy", onclick: () => {
    const say = (word) => { button.textContent = word; setTimeout(() => { button.textContent = "copy"; }, 1500); };
    const old = () => {
      // Where the page may not reach the clipboard by itself.
      const area = el("textarea", { "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      say(done ? "copied" : "cannot copy");
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => say("copied"), old);
    else old();
  } }, "copy");
  return button;
}

function block(text, label) {
  return el("div", {}, el("pre", { tabindex: 0, role: "region", "aria-label": label }, text), copyButton(text));
}

function againSection() {
  const plans = data.plans.map(({ name, program, seeds, worlds, command, text, published }) => el("div", {},
    data.plans.length > 1 ? el("h3", {}, name) : null,
    el("p", {}, `${program || "Made by an unknown version"}; ${seeds}; ${worlds.join(", ")}.`),
    published.map((words) => el("p", { class: "soft" }, `Published: ${words}`)),
    command ? block(command, `Command of ${name}`) : null,
    text ? el("details", {}, el("summary", {}, "The scenario's file"), block(text, `Scenario file of ${name}`)) : null));
  const rows = el("div");
  section("Make it again", plans, el("h3", {}, "Single rows"), rows);
  whenChanged(() => rows.replaceChildren(...shown().map((number) => {
    const row = data.rows[number];
    if (!row.text) return el("p", { class: "soft" }, `${row.label}: its text has a trace in it and is too long for here.`);
    const seeds = row.seeds > 1 ? ` --seeds ${row.seeds}` : "";
    const command = `dualq run - --seed ${row.first_seed}${seeds} --world ${row.world} <<'END'\n${row.text}END\n`;
    return el("details", {}, el("summary", {}, row.label), block(command, `Command of ${row.label}`), row.limits.map((limit) => el("p", { class: "soft" }, `limit: ${limit}`)));
  })));
}
