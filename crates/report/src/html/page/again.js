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

/** A word of a shell's command. */
function word(text) {
  return /^[\w.,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The command that runs a scenario by itself. No line of the text, which may hold anything, ends what the shell hands over. */
function commandOf({ text, seeds, first_seed: first, world }) {
  const lines = text.split("\n");
  let end = "END";
  while (lines.includes(end)) end += "_";
  return `dualq run - --seed ${first}${seeds > 1 ? ` --seeds ${seeds}` : ""} --world ${word(world)} <<'${end}'\n${text}${end}\n`;
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
    return el("details", {}, el("summary", {}, row.label), block(commandOf(row), `Command of ${row.label}`), row.limits.map((limit) => el("p", { class: "soft" }, `limit: ${limit}`)));
  })));
}
