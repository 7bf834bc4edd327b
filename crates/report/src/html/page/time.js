// What happened when: charts one below the other on one time axis.

/** All lines on common times; what has other times has gaps that are bridged. */
function joined(lines) {
  const same = lines.every((line) => line.xs === lines[0].xs || (line.xs.length === lines[0].xs.length && line.xs.every((x, at) => x === lines[0].xs[at])));
  if (same) return { xs: lines.length ? lines[0].xs : [], lines, bridged: false };
  const [xs, ...values] = uPlot.join(lines.map((line) => [line.xs, line.values]), lines.map(() => [2]));
  return { xs, lines: lines.map((line, at) => ({ ...line, values: values[at] })), bridged: true };
}

/** The lines of what each row that is on has: a list, or a list of lists. */
function linesOf(of, nested, names) {
  return shown().flatMap((row) => {
    const { series } = data.rows[row];
    const lists = nested ? of(series) : [of(series)];
    return lists.map((values, line) => ({
      row, line, xs: series.t, values,
      label: data.rows[row].label + (lists.length > 1 ? ` – ${names(data.rows[row], line)}` : ""),
    })).filter(({ values }) => values.some((value) => value !== null));
  });
}

const flowName = (row, line) => row.flows[line]?.title ?? `group ${line + 1}`;

/** Of more lines than this in all rows, those of single flows give way to those of their groups. */
const MOST_FLOW_LINES = 48;

function singleFlows() {
  const count = (row) => data.rows[row].series.each.reduce((sum, flows) => sum + flows.length, 0);
  const counts = shown().map(count);
  return counts.every((flows) => flows > 0) && counts.reduce((sum, flows) => sum + flows, 0) <= MOST_FLOW_LINES;
}

/** What each flow gets where these are few enough, else what each group gets. */
function goodputLines(series) {
  return singleFlows() ? series.each.flat() : series.goodput;
}

function goodputName(row, line) {
  if (!singleFlows()) return flowName(row, line);
  let rest = line;
  const group = row.series.each.findIndex((flows) => rest < flows.length || ((rest -= flows.length), false));
  return `${flowName(row, group)}${row.series.each[group].length > 1 ? `, flow ${rest + 1}` : ""}`;
}

const probeName = (row, line) => row.probes[line]?.title ?? `probe ${line + 1}`;

const OVER_TIME = [
  { name: "goodput", title: "Goodput", unit: "Mbit/s, of each flow; where these are many, of each group", of: goodputLines, nested: true, names: goodputName },
  { name: "rtt", title: "Probe's round-trip time", unit: "ms, the last of each interval", of: (series) => series.rtt, nested: true, names: probeName, delay: true, base: true },
  { name: "queue_delay", title: "Queue delay", unit: "ms, mean of each interval", of: (series) => series.queue_delay, delay: true },
  { name: "queue_packets", title: "Queue length", unit: "packets", of: (series) => series.queue_packets },
  { name: "probability", title: "Probability of marks or drops", unit: "of 1", of: (series) => series.probability },
  { name: "marks", title: "CE marks", unit: "in each interval", of: (series) => series.marks, events: true },
  { name: "drops", title: "Drops", unit: "packets in each interval", of: (series) => series.drops, events: true },
];

const FLOWS_OVER_TIME = [
  { name: "cwnd", title: "Congestion window", unit: "segments", of: (series) => series.cwnd, nested: true, names: flowName },
  { name: "srtt", title: "Smoothed round-trip time", unit: "ms", of: (series) => series.srtt, nested: true, names: flowName, delay: true, base: true },
  { name: "retransmits", title: "Retransmissions", unit: "segments in each interval", of: (series) => series.retransmits, nested: true, names: flowName, events: true },
];

/** Charts over time in `host`, all zoomed together. */
function overTime(host, list) {
  const figures = list.map((chart) => ({ ...chart, figure: figure(host, chart.name, chart.title, chart.unit) }));
  whenChanged(() => {
    const rows = shown();
    const end = Math.max(0, ...rows.map((row) => data.rows[row].series.t.at(-1) || 0));
    const warmups = new Set(rows.map((row) => data.rows[row].warmup_s));
    const bases = [...new Set(rows.map((row) => data.rows[row].base_ms))];
    figures.forEach(({ figure: host, of, nested, names, delay, base, events }, at) => {
      const { xs, lines, bridged } = joined(linesOf(of, nested, names));
      const values = lines.flatMap((line) => line.values).filter((value) => value !== null && value !== undefined);
      // Nothing ever happened: no chart.
      const empty = events && values.every((value) => value === 0);
      const log = Boolean(delay && state.log);
      host.draw(xs, empty ? [] : lines, {
        xLabel: at === figures.length - 1 ? "time (s)" : null,
        family: "time",
        warmup: warmups.size === 1 ? [...warmups][0] : 0,
        marks: base ? bases.map((value) => ({ value, label: `base ${short(value)} ms` })) : null,
        stepped: bridged,
        yLog: log,
        // What is asked for; where nothing is, uPlot gives the data's bounds.
        xRange: (_, min, max) => (xs.length > 1 && (min !== xs[0] || max !== xs[xs.length - 1]) ? [min, max] : state.time ? [state.time.min, state.time.max] : [0, end]),
        yRange: (_, min, max) => yRange(min, max, base ? bases : [], log),
      });
    });
  });
}

/** From nothing, or where there is a base from the base, to the greatest. */
function yRange(min, max, bases, log) {
  const [least, most] = [Math.min(min ?? 0, ...bases), Math.max(max ?? 1, ...bases)];
  if (log) return [Math.max(least, 0.01) / 1.1, Math.max(most, 0.02) * 1.1];
  const room = (most - least || most || 1) * 0.06;
  return bases.length ? [Math.max(0, least - room), most + room] : [0, (most || 1) * 1.06];
}

function timeSection() {
  const host = el("div", { class: "charts stack" });
  const log = el("input", { type: "checkbox", id: "log", onchange: () => { state.log = log.checked; changed(); } });
  const all = el("button", { type: "button", onclick: () => { state.time = null; changed(); } }, "show all of the time");
  const notes = data.rows.some((row) => row.seeds > 1) ? ["Lines are of the first seed."] : [];
  section("Over time",
    el("p", { class: "soft" }, ["The axes are the same for all rows. What is shaded is the warm-up, which no figure counts. Drag to zoom, double-click to go back.", ...notes, ...data.thinned].join(" ")),
    el("div", { class: "controls" }, el("label", { class: "tick" }, log, " logarithmic axis of delays"), all),
    host);
  overTime(host, OVER_TIME);
}
