// Which rows are switched on, what is zoomed to, and who is told when that changes.

/** So many rows are drawn at first; more are hard to tell apart. */
const FIRST_ON = 7;

const on = new Set();
const state = { time: null, log: false };
const listeners = [];

function drawn(row) {
  return data.rows[row].series !== null;
}

function firstRows() {
  const rows = data.rows.map((_, row) => row).filter(drawn);
  if (rows.length <= FIRST_ON) return rows;
  // The best ones, and the worst to compare with.
  return [...rows.slice(0, FIRST_ON - 1), rows[rows.length - 1]];
}

firstRows().forEach((row) => on.add(row));

function shown() {
  return [...on].sort((one, other) => one - other);
}

let due = false;

/** Draws all anew, once, before the next frame. */
function changed() {
  if (due) return;
  due = true;
  requestAnimationFrame(() => {
    due = false;
    listeners.forEach((listener) => listener());
  });
}

function whenChanged(listener) {
  listeners.push(listener);
  listener();
}

function toggle(row) {
  if (on.has(row)) on.delete(row);
  else on.add(row);
  changed();
}

/** The rows as buttons, which is the legend of all charts. */
function legend() {
  const bar = el("div", { class: "legend", role: "group", "aria-label": "Rows that are drawn" });
  main.append(bar);
  const buttons = data.rows.map((row, number) => {
    if (!drawn(number)) return null;
    return el("button", { type: "button", "data-row": number, onclick: () => toggle(number) });
  });
  bar.append(
    ...buttons.filter((button) => button),
    el("button", { type: "button", onclick: () => { data.rows.forEach((_, row) => drawn(row) && on.add(row)); changed(); } }, "all"),
    el("button", { type: "button", onclick: () => { on.clear(); changed(); } }, "none"),
  );
  whenChanged(() => buttons.forEach((button, row) => {
    if (!button) return;
    button.setAttribute("aria-pressed", String(on.has(row)));
    button.replaceChildren(key(row), data.rows[row].label);
  }));
}
