// How delays are distributed: CDF, CCDF and a box for each row. The queue's are apart for packets that can be marked and those that cannot.

/** Shorter is as short on a logarithmic axis. */
const SHORTEST_MS = 0.01;

function steps(distribution, base, tail) {
  const xs = [], values = [];
  distribution.ms.forEach((ms, at) => {
    const x = Math.max(SHORTEST_MS, ms - base);
    const share = tail ? 1 - distribution.share[at] : distribution.share[at];
    // The last of the tail is nothing, which no logarithm has.
    const value = tail && share < 1e-9 ? null : share;
    if (xs.length && xs[xs.length - 1] >= x) values[values.length - 1] = value;
    else { xs.push(x); values.push(value); }
  });
  return { xs, values };
}

/** What charts of distributions have in common. */
const DISTRIBUTION = { xLog: true, stepped: true, family: null, xRange: (_, min, max) => (min < max ? [min, max] : [min / 2, max * 2]) };

function distributionLines(tail, of) {
  return shown().flatMap((row) => of(data.rows[row]).filter(({ distribution }) => distribution)
    .map(({ distribution, base, name, line }) => ({ row, line, label: `${data.rows[row].label} – ${name}`, ...steps(distribution, base, tail) })));
}

const ofProbes = (row) => row.probes.map((probe, line) => ({ distribution: probe.distribution, base: row.base_ms, name: probe.title, line }));

function ofQueue(row) {
  if (!row.queue) return [];
  return [
    { distribution: row.queue.ect, base: 0, name: "ECT", line: 0 },
    { distribution: row.queue.not_ect, base: 0, name: "Not-ECT", line: 1 },
  ];
}

const DISTRIBUTIONS = [
  { name: "probe_cdf", title: "Probe's delay above the base, CDF", unit: "share that waited no longer", of: ofProbes },
  { name: "probe_ccdf", title: "Probe's delay above the base, CCDF", unit: "share that waited longer", of: ofProbes, tail: true },
  { name: "queue_cdf", title: "Queue delay, CDF", unit: "ECT as in the legend, Not-ECT in other dashes", of: ofQueue },
  { name: "queue_ccdf", title: "Queue delay, CCDF", unit: "ECT as in the legend, Not-ECT in other dashes", of: ofQueue, tail: true },
];

function distributionSection() {
  const has = data.rows.some((row) => row.queue && row.queue.all);
  if (!data.rows.some((row) => row.probes.length) && !has) return;
  const host = el("div", { class: "charts" });
  const boxes = el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Boxes" });
  section("Distribution of delays",
    el("p", { class: "soft" }, has
      ? "All seeds together. In dualpi2 any_ect the ECT packets have the L queue and the others the C queue. The axis of delays is logarithmic; what is below 0.01 ms stands there."
      : "The results hold no distributions: dualq run --report keeps them, and dualq run --json --distributions."),
    host, el("h3", {}, "Probe's delay above the base"), boxes);
  const figures = DISTRIBUTIONS.map((chart) => ({ ...chart, figure: figure(host, chart.name, chart.title, chart.unit) }));
  whenChanged(() => {
    figures.forEach(({ figure: host, of, tail }) => {
      const lines = distributionLines(tail, of);
      const { xs, lines: all } = joined(lines);
      const least = Math.min(...all.flatMap((line) => line.values).filter((value) => value !== null && value !== undefined));
      host.draw(xs, all, {
        ...DISTRIBUTION, xLabel: "delay (ms)", yLog: tail,
        yRange: () => (tail ? [Math.min(0.1, least), 1] : [0, 1.02]),
      });
    });
    boxes.replaceChildren(boxChart());
  });
}

/** The share's delay, if there is a distribution. */
function quantile(probe, share, base) {
  const at = probe.distribution ? probe.distribution.share.findIndex((below) => below >= share - 1e-9) : -1;
  return at < 0 ? null : probe.distribution.ms[at] - base;
}

function boxChart() {
  const rows = shown().filter((row) => aboveBase(data.rows[row], "p50") !== null);
  const most = Math.max(0.1, ...rows.map((row) => aboveBase(data.rows[row], "max")));
  const [left, width, line] = [250, 560, 26];
  const x = (ms) => left + (width * Math.max(0, ms)) / most;
  const height = rows.length * line + 26;
  const chart = el("svg", { class: "boxes", width: left + width + 70, height, viewBox: `0 0 ${left + width + 70} ${height}`, role: "img", "aria-label": "Box of the probe's delay above the base for each row: quartiles, p95, p99 and extremes" });
  for (const tick of roundValues(0, most, 5)) {
    const at = x(tick);
    chart.append(el("line", { x1: at, x2: at, y1: 0, y2: height - 20, stroke: ink("line") }),
      el("text", { x: at, y: height - 4, "text-anchor": "middle", class: "soft" }, `${short(tick)} ms`));
  }
  rows.forEach((row, place) => {
    const { probes: [probe], base_ms: base, label } = data.rows[row];
    const y = place * line + line / 2;
    const at = (figure) => x(probe[figure] - base);
    const quarters = [quantile(probe, 0.25, base), quantile(probe, 0.75, base)];
    const stroke = colour(row);
    const short40 = label.length > 38 ? `${label.slice(0, 37)}…` : label;
    chart.append(el("text", { x: left - 8, y: y + 4, "text-anchor": "end" }, short40),
      el("line", { x1: at("min"), x2: at("p99"), y1: y, y2: y, stroke, "stroke-width": 1.5 }),
      el("line", { x1: at("p99"), x2: at("max"), y1: y, y2: y, stroke, "stroke-width": 1, "stroke-dasharray": "2 3" }));
    if (quarters[0] !== null) chart.append(el("rect", { x: x(quarters[0]), width: Math.max(1, x(quarters[1]) - x(quarters[0])), y: y - 7, height: 14, fill: stroke, "fill-opacity": 0.45, stroke }));
    for (const [figure, reach] of [["p50", 8], ["p95", 5], ["p99", 5]]) {
      chart.append(el("line", { x1: at(figure), x2: at(figure), y1: y - reach, y2: y + reach, stroke, "stroke-width": figure === "p50" ? 3 : 1.5 }));
    }
    chart.append(el("text", { x: at("max") + 5, y: y + 4, class: "soft" }, short(probe.max - base)));
  });
  return chart;
}
