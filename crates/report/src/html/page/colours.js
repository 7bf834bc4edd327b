// Colours that colour-blind readers tell apart (Okabe and Ito, 2008), in an order and shades with enough contrast on either ground; dashes
// tell rows apart that have the same colour, and all of them on paper without colours.

const LIGHT = ["#0072b2", "#c24e00", "#00805c", "#a8477f", "#1b1f24", "#8a6100", "#2f8fc4"];
const DARK = ["#56b4e9", "#ff8a3d", "#2cc79a", "#e8a0c8", "#f2f4f6", "#e6b530", "#f0e442"];
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
