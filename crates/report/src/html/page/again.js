// What makes all this again.

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
