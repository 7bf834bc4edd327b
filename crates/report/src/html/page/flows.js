// The flows of the rows that are on.

function flowsSection() {
  if (!data.rows.some((row) => row.flows.length)) return;
  const tables = el("div");
  const host = el("div", { class: "charts stack" });
  section("Flows", tables, host);
  completionCharts(host);
  overTime(host, FLOWS_OVER_TIME);
  whenChanged(() => {
    const rows = shown().flatMap((row) => data.rows[row].flows.map((flow) => {
      const each = flow.goodput.length > 1 ? `${short(Math.min(...flow.goodput))} to ${short(Math.max(...flow.goodput))}` : "";
      return [el("span", {}, key(row), ` ${data.rows[row].label}`), flow.title, short(flow.goodput.reduce((sum, one) => sum + one, 0)), each, percent(flow.share),
        percent(flow.ce_share), short(flow.retransmits), percent(flow.sent ? flow.retransmits / flow.sent : 0), short(flow.timeouts), short(flow.srtt_p50), short(flow.srtt_p99)];
    }));
    const classes = shown().flatMap((row) => data.rows[row].flows.flatMap((flow) => flow.completions.map((sizes) => [
      el("span", {}, key(row), ` ${data.rows[row].label}`), flow.title, sizes.size, `${short(sizes.done)} of ${short(sizes.transfers)}`, short(sizes.p50), short(sizes.p99)])));
    tables.replaceChildren(...[
      rows.length ? plainTable("Flows", ["row", "flows", "goodput (Mbit/s)", "each", "share", "CE", "Retr", "Retr of sent", "timeouts", "srtt p50 (ms)", "srtt p99"], rows, [0, 1]) : null,
      classes.length ? el("h3", {}, "Completion times by size") : null,
      classes.length ? plainTable("Completion times", ["row", "flows", "size", "done", "p50 (ms)", "p99 (ms)"], classes, [0, 1, 2]) : null,
    ].filter((table) => table));
  });
}

/** For each class of sizes how the times that transfers took are distributed. */
function completionCharts(parent) {
  const classes = (row) => row.flows.flatMap((flow) => flow.completions.map((sizes) => ({ ...sizes, name: flow.title, base: 0 })));
  const sizes = [...new Set(data.rows.flatMap((row) => classes(row).filter(({ distribution }) => distribution).map(({ size }) => size)))];
  if (!sizes.length) return;
  const host = el("div", { class: "charts" });
  parent.append(host);
  const figures = sizes.map((size, at) => ({ size, figure: figure(host, `completion_${at}`, `Completion times, ${size}`, "share of all transfers of this size that took no longer") }));
  whenChanged(() => figures.forEach(({ size, figure: host }) => {
    const curves = distributionLines(false, (row) => classes(row).filter((sizes) => sizes.size === size).map((sizes, line) => ({ ...sizes, line })));
    // Nothing takes less than the shortest, and what has not ended by the longest of all never does.
    const longest = Math.max(...curves.flatMap((curve) => curve.xs));
    const whole = curves.map((curve) => ({ ...curve, xs: [curve.xs[0] * 0.999, ...curve.xs, longest * 1.001], values: [0, ...curve.values, curve.values.at(-1)] }));
    const { xs, lines } = joined(whole);
    host.draw(xs, lines, { ...DISTRIBUTION, xLabel: "time (ms)", yRange: () => [0, 1.02] });
  }));
}
