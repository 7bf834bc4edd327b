// Colours that readers tell apart whichever kind of cones they lack, with enough contrast on either ground for text in them too
// (`tests/colours.rs` measures both); dashes tell rows apart that have the same colour, and all of them on paper without colours.

const LIGHT = ["#0072b2", "#ae5f52", "#1b1f24", "#897500", "#004d11", "#a70068", "#372f9e"];
const DARK = ["#56b4e9", "#dd523a", "#f2f4f6", "#f3cd44", "#9dffa2", "#bf6883", "#6c73f2"];
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");

function isPrinted() {
  return document.documentElement.classList.contains("print");
}

function isDark() {
  return prefersDark.matches && !isPrinted();
}

/** The colour of a row by its number. */
function colour(row) {
  const colours = isDark() ? DARK : LIGHT;
  return colours[row % colours.length];
}

/** The dashes of a row, or of the n-th line of a row. */
function dash(row, line) {
  return DASHES[(Math.floor(row / LIGHT.length) + (line || 0)) % DASHES.length];
}

const inks = new Map();

/** The colour of a name in the styles, which is asked for once for each ground. */
function ink(name) {
  const key = `${name} ${isDark()}`;
  if (!inks.has(key)) inks.set(key, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return inks.get(key);
}

/** A piece of a row's line, for legends. */
function key(row, line) {
  const stroke = { x1: 0, y1: 7, x2: 26, y2: 7, stroke: colour(row), "stroke-width": 3, "stroke-dasharray": dash(row, line).join(" ") || null };
  return el("svg", { class: "key", viewBox: "0 0 26 14", "aria-hidden": "true" }, el("line", stroke));
}
