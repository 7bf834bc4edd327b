// The flows of the rows that are on.

function flowsSection() {
  if (!data.rows.some((row) => row.flows.length)) return;
  const tables = el("div");
  const host = el("div", { class: "charts stack" });
  section("Flows", tables, host);
  overTime(host, FLOWS_OVER_TIME);
  whenChanged(() => {
    const rows = shown().flatMap((row) => data.rows[row].flows.map((flow) => {
      const each = flow.goodput.length > 1 ? `${short(Math.min(...flow.goodput))} to ${short(Math.max(...flow.goodput))}` : "";
      return [el("span", {}, key(row), ` ${data.rows[row].label}`), flow.title, short(flow.goodput.reduce((sum, one) => sum + one, 0)), each, percent(flow.share),
        percent(flow.ce_share), short(flow.retransmits), percent(flow.sent ? flow.retransmits / flow.sent : 0), short(flow.timeouts), short(flow.srtt_p50), short(flow.srtt_p99)];
    }));
    const classes = shown().flatMap((row) => data.rows[row].flows.flatMap((flow) => flow.completions.map((sizes) => [
      el("span", {}, key(row), ` ${data.rows[row].label}`), flow.title, sizeClass(sizes), `${short(sizes.done)} of ${short(sizes.transfers)}`,
      sizes.done ? short(sizes.p50_s * 1000) : "–", sizes.done ? short(sizes.p99_s * 1000) : "–"])));
    tables.replaceChildren(...[
      rows.length ? plainTable("Flows", ["row", "flows", "goodput (Mbit/s)", "each", "share", "CE", "Retr", "Retr of sent", "timeouts", "srtt p50 (ms)", "srtt p99"], rows, [0, 1]) : null,
      classes.length ? el("h3", {}, "Completion times by size") : null,
      classes.length ? plainTable("Completion times", ["row", "flows", "size", "done", "p50 (ms)", "p99 (ms)"], classes, [0, 1, 2]) : null,
    ].filter((table) => table));
  });
}

function sizeClass({ from_bytes: from, below_bytes: below }) {
  const size = (bytes) => (bytes >= 1e6 ? `${bytes / 1e6} MB` : `${bytes / 1e3} kB`);
  if (below === null) return `${size(from)} or more`;
  return from === 0 ? `below ${size(below)}` : `${size(from)} to ${size(below)}`;
}
