// What all parts need: elements whose text is text, and numbers in words.

/** An element. Children that are strings become text, never markup. */
function el(tag, attributes, ...children) {
  const isSvg = ["svg", "line", "rect", "text"].includes(tag);
  const element = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function section(title, ...children) {
  const id = `about-${title.toLowerCase().replace(/[^a-z]+/g, "-")}`;
  const element = el("section", { "aria-labelledby": id }, el("h2", { id }, title), ...children);
  main.append(element);
  return element;
}

/** A part of the page that can be scrolled sideways, by keys too. */
function scroll(label, ...children) {
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${label}, scrolls sideways` }, ...children);
}

/** A table of words and numbers: `heads` are titles, those in `words` stand left. */
function plainTable(label, heads, rows, words) {
  const cell = (tag, text, at) => el(tag, { class: words.includes(at) ? "words" : null, scope: tag === "th" ? "col" : null }, text);
  return scroll(label, el("table", { "aria-label": label },
    el("thead", {}, el("tr", {}, heads.map((head, at) => cell("th", head, at)))),
    el("tbody", {}, rows.map((row) => el("tr", { class: row.class || null }, row.map((text, at) => cell("td", text, at)))))));
}

/** With at most three digits that say something, and thousands apart. */
function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 10000) return fixed(Math.round(value), 0);
  if (size >= 100 || Number.isInteger(value)) return String(Math.round(value * 10) / 10);
  return size >= 1 ? value.toFixed(2) : String(Number(value.toPrecision(3)));
}

/** A formatter for each number of digits: to make one takes longer than to use it. */
const formats = new Map();

function fixed(value, digits) {
  if (!formats.has(digits)) formats.set(digits, new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }));
  return formats.get(digits).format(value);
}

function percent(share) {
  return `${short(share * 100)} %`;
}
