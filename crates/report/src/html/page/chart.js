// One chart as all others are: its size follows the page, it is zoomed by mouse and keys, and says what is under the pointer.

const charts = new Map();
// For whoever wants to look at the numbers that are drawn.
window.charts = charts;

const HEIGHT = 190;

/** As wide as a page of A4 or letter size; where a wide table makes the browser shrink the page, styles stretch the charts. */
const PAPER_WIDTH = 690;

/** What draws a chart when it comes into view: whoever opens a page with many rows sees its top at once. */
const waiting = new Map();
const inView = new Set();
const nearby = new IntersectionObserver((entries) => entries.forEach(({ target, isIntersecting }) => {
  if (isIntersecting) inView.add(target);
  else inView.delete(target);
  if (isIntersecting && waiting.has(target)) drawNow(target);
}), { rootMargin: "400px" });

function drawNow(plot) {
  const draw = waiting.get(plot);
  waiting.delete(plot);
  draw();
}

/** Draws what is not in view too, as on paper. */
function drawAll() {
  [...waiting.keys()].forEach(drawNow);
}
window.drawAll = drawAll;

/** The figure of a chart, in which `draw` puts what is drawn anew with each change. */
function figure(parent, name, title, unit) {
  const read = el("div", { class: "read" });
  const plot = el("div", { class: "plot", "data-chart": name, tabindex: 0, role: "group",
    "aria-label": `${title}, chart: plus and minus zoom, arrows move, 0 shows all` });
  const caption = el("figcaption", {}, title, unit ? el("span", { class: "soft" }, ` (${unit})`) : null);
  const box = el("figure", {}, caption, plot, read);
  parent.append(box);
  const width = () => isPrinted() ? PAPER_WIDTH : Math.max(240, Math.floor(plot.clientWidth || parent.clientWidth || 600));
  let chart = null;
  new ResizeObserver(() => {
    if (chart && Math.abs(chart.width - width()) > 1) chart.setSize({ width: width(), height: chart.height });
  }).observe(plot);
  nearby.observe(plot);
  plot.addEventListener("keydown", (event) => {
    if (chart && zoomByKey(chart, event.key)) event.preventDefault();
  });
  // uPlot goes back to all of the data then, and that is what is asked for.
  plot.addEventListener("dblclick", () => { state.time = null; }, { capture: true });
  const put = (xs, lines, options) => {
    chart = new uPlot(optionsOf(lines, { width: width(), read, ...options }), [xs, ...lines.map((line) => line.values)], plot);
    // A picture for those who see, the table and the names for all others.
    chart.root.querySelector("canvas").setAttribute("aria-hidden", "true");
    chart.lines = lines;
    charts.set(name, chart);
  };
  return {
    caption,
    /** Draws lines `{label, row, line, values}` over `xs`; without any the chart is left out. */
    draw(xs, lines, options) {
      if (chart) chart.destroy();
      chart = null;
      charts.delete(name);
      waiting.delete(plot);
      box.hidden = lines.length === 0 || xs.length === 0;
      read.replaceChildren();
      if (box.hidden) return;
      plot.style.minHeight = `${heightOf(options)}px`;
      waiting.set(plot, () => put(xs, lines, options));
      if (isPrinted() || inView.has(plot)) drawNow(plot);
    },
  };
}

function heightOf({ xLabel }) {
  return HEIGHT + (xLabel ? 20 : 0);
}

/** Where an axis of names has ticks: at as many as there is room for. */
function places(names) {
  const widest = 7 * Math.max(...names.map((name) => name.length)) + 12;
  return (chart, _, min, max) => {
    const every = Math.max(1, Math.ceil((widest * (max - min)) / (chart.width - 80)));
    return names.map((_, at) => at).filter((at) => at % every === 0 && at >= min && at <= max);
  };
}

function axis(label, log, names) {
  return {
    ...(log ? { splits: decades, filter: (_, splits) => splits } : {}),
    ...(names ? { splits: places(names) } : {}),
    stroke: ink("soft"), grid: { stroke: ink("line"), width: 1 }, ticks: { stroke: ink("line"), width: 1 }, label, labelSize: label ? 20 : 0,
    font: "12px system-ui, sans-serif", labelFont: "12px system-ui, sans-serif",
    values: (_, splits) => splits.map((value) => (value === null ? null : names ? names[value] : plainNumber(value))),
  };
}

/** Where a logarithmic axis has ticks: at powers of ten, at 2 and 5 times these too if there are few; of so short a piece that it
 * has none of these, at round values. */
function decades(_, axisNumber, min, max) {
  const [first, last] = [Math.floor(Math.log10(min)), Math.ceil(Math.log10(max))];
  // Of a range that no logarithm has there are none.
  if (!(min > 0 && last - first < 40)) return [];
  const within = [];
  for (let power = first; power <= last; power += 1) {
    for (const times of last - first > 2 ? [1] : [1, 2, 5]) within.push(Number(`${times}e${power}`));
  }
  const there = within.filter((value) => value >= min * (1 - 1e-9) && value <= max * (1 + 1e-9));
  return there.length > 1 ? there : roundValues(min, max, 4);
}

/** Values of a round size, 1, 2 or 5 times a power of ten apart, about so many. */
function roundValues(min, max, about) {
  const ten = 10 ** Math.floor(Math.log10((max - min) / about));
  const size = [1, 2, 5, 10].map((times) => times * ten).find((one) => one * about >= max - min);
  if (!(size > 0)) return [];
  const first = Math.ceil(min / size - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(max / size + 1e-9) - first + 1) }, (_, at) => (first + at) * size);
}

function plainNumber(value) {
  if (value !== 0 && Math.abs(value) < 0.001) return value.toExponential(0);
  return Math.abs(value) >= 10000 ? `${Number((value / 1000).toPrecision(4))}k` : String(Number(value.toPrecision(4)));
}

function optionsOf(lines, { width, read, xLabel, xNames, names, xLog, yLog, yRange, xRange, stepped, dots, family, marks, warmup }) {
  const scale = (log, range) => ({ time: false, distr: log ? 3 : 1, ...(range ? { range } : {}) });
  return {
    width, height: heightOf({ xLabel }), pxAlign: 0,
    legend: { show: false },
    scales: { x: scale(xLog, xRange), y: scale(yLog, yRange) },
    axes: [axis(xLabel, xLog, xNames), { ...axis(null, yLog), size: 58 }],
    series: [{}, ...lines.map(({ label, row, line, alone }) => ({
      label, stroke: colour(row), dash: dash(row, line), width: 1.6, spanGaps: Boolean(stepped && !alone), points: { show: Boolean(dots && line === 0), size: 6, fill: colour(row), filter: dots ? null : lonely },
      // Dots that stand alone have no line.
      ...(alone ? { paths: () => null } : stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}),
    }))],
    cursor: {
      points: { size: 5 }, drag: { x: true, y: false },
      ...(family ? { sync: { key: family, filters: { pub: isMove, sub: isMove } } } : {}),
    },
    hooks: {
      drawClear: warmup ? [(chart) => shade(chart, warmup)] : [],
      draw: marks ? [(chart) => marks.forEach((mark) => rule(chart, mark))] : [],
      setScale: family ? [(chart, name) => name === "x" && spread(chart)] : [],
      setCursor: [(chart) => tell(chart, lines, read, names || xNames)],
    },
  };
}

/** The values of a line to which no line leads: a run of one interval would have nothing to see. */
function lonely(chart, series) {
  const values = chart.data[series];
  const there = (at) => values[at] !== null && values[at] !== undefined;
  const all = Array.from(values.keys()).filter(there);
  if (chart.series[series].spanGaps) return all.length === 1 ? all : [];
  return all.filter((at) => !there(at - 1) && !there(at + 1));
}

function isMove(type) {
  return type === "mousemove" || type === "mouseleave";
}

/** A line across: where the base is, for example. */
function rule(chart, { value, label }) {
  const { ctx, bbox } = chart;
  const at = Math.round(chart.valToPos(value, "y", true));
  if (at < bbox.top || at > bbox.top + bbox.height) return;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = ink("soft");
  ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(bbox.left, at);
  ctx.lineTo(bbox.left + bbox.width, at);
  ctx.stroke();
  ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  ctx.textAlign = "right";
  ctx.textBaseline = "bottom";
  ctx.fillText(label, bbox.left + bbox.width - 4 * devicePixelRatio, at - 2 * devicePixelRatio);
  ctx.restore();
}

/** What is before the warm-up's end is in no figure. */
function shade(chart, until) {
  const { ctx, bbox } = chart;
  const to = Math.min(chart.valToPos(until, "x", true), bbox.left + bbox.width);
  if (to <= bbox.left) return;
  ctx.save();
  ctx.fillStyle = ink("wash");
  ctx.fillRect(bbox.left, bbox.top, to - bbox.left, bbox.height);
  ctx.restore();
}

/** What the lines have at the pointer. */
function tell(chart, lines, read, names) {
  const { left, idx } = chart.cursor;
  if (left < 0 || idx === null || idx === undefined) return read.replaceChildren();
  const values = lines.map((line, at) => ({ line, value: nearest(chart.data[at + 1], idx, chart.series[at + 1].spanGaps) }));
  const there = values.filter(({ value }) => value !== null && value !== undefined);
  const more = there.length > 8 ? [`and ${there.length - 8} more`] : [];
  return read.replaceChildren(`at ${names ? names[idx] : short(chart.data[0][idx])}:`,
    ...there.slice(0, 8).map(({ line, value }) => el("span", {}, key(line.row, line.line), ` ${short(value)}`)), ...more);
}

/** A step's value holds until the next. */
function nearest(values, idx, holds) {
  let at = idx;
  while (holds && at > 0 && (values[at] === null || values[at] === undefined)) at -= 1;
  return values[at];
}

let spreading = false;

/** All charts of a family show the same part of their axis. */
function spread(chart) {
  if (spreading) return;
  const { min, max } = chart.scales.x;
  const all = [chart.data[0][0], chart.data[0][chart.data[0].length - 1]];
  state.time = min <= all[0] && max >= all[1] ? null : { min, max };
  spreading = true;
  for (const other of charts.values()) {
    if (other !== chart && other.cursor.sync && other.cursor.sync.key === chart.cursor.sync.key) other.setScale("x", { min, max });
  }
  spreading = false;
}

function zoomByKey(chart, pressed) {
  const xs = chart.data[0];
  const { min, max, distr } = chart.scales.x;
  const [to, from] = distr === 3 ? [Math.log10, (x) => 10 ** x] : [(x) => x, (x) => x];
  const [low, high, least, most] = [to(min), to(max), to(xs[0]), to(xs[xs.length - 1])];
  const size = high - low;
  const set = (one, other) => {
    const [first, last] = [Math.max(least, one), Math.min(most, other)];
    if (last > first) chart.setScale("x", { min: from(first), max: from(last) });
    return true;
  };
  switch (pressed) {
    case "+": case "=": return set(low + size / 4, high - size / 4);
    case "-": return set(low - size / 2, high + size / 2);
    case "ArrowLeft": { const step = Math.min(size / 4, low - least); return set(low - step, high - step); }
    case "ArrowRight": { const step = Math.min(size / 4, most - high); return set(low + step, high + step); }
    case "0": state.time = null; return set(least, most);
    default: return false;
  }
}
