// The comparison: a table that can be sorted, with a bar of the delay above the base in each row.

function aboveBase(row, figure) {
  const probe = row.probes[0];
  return probe && probe[figure] !== null ? probe[figure] - row.base_ms : null;
}

function comparison() {
  const several = data.settings.length > 0;
  const worlds = new Set(data.rows.map((row) => row.world)).size > 1;
  const plans = data.plans.length > 1;
  const has = (at) => data.rows.some((row) => row.figures[at] !== null);
  const columns = data.columns.map((column, at) => ({ ...column, at })).filter((column) => !column.aside && has(column.at));
  const longest = Math.max(0.001, ...data.rows.map((row) => aboveBase(row, "p99") || 0));
  const hasBars = data.rows.some((row) => aboveBase(row, "p50") !== null);

  // The words of a row, then a bar, then figures: each with a title and what it is sorted by.
  const heads = [];
  if (plans) heads.push({ group: "", name: "scenario", words: true, of: (row) => data.plans[row.plan].name });
  if (several) data.settings.forEach((name, at) => heads.push({ group: "", name, words: true, of: (row) => row.settings[at] }));
  else heads.push({ group: "", name: "row", words: true, of: (row) => row.label });
  if (worlds) heads.push({ group: "", name: "world", words: true, of: (row) => row.world });
  if (hasBars) heads.push({ group: "delay above base", name: "p50 and p99 (ms)", bar: true, of: (row) => aboveBase(row, "p50") });
  columns.forEach((column) => heads.push({
    group: column.group + (column.unit === "ms" ? " (ms)" : ""),
    name: column.name,
    digits: column.digits,
    of: (row) => row.figures[column.at] && row.figures[column.at][0],
    spread: (row) => row.figures[column.at] && row.figures[column.at][1],
  }));

  let order = data.rows.map((_, row) => row);
  let sorted = null;
  const body = el("tbody");
  const groups = [];
  heads.forEach((head) => {
    const last = groups[groups.length - 1];
    if (last && last.group === head.group && head.group) last.count += 1;
    else groups.push({ group: head.group, count: 1 });
  });
  const titles = heads.map((head, at) => el("th", { scope: "col", class: head.words ? "words" : null },
    el("button", { type: "button", "data-column": at, onclick: () => sort(at) }, head.name)));

  function sort(at) {
    const down = sorted && sorted.at === at ? !sorted.down : false;
    sorted = { at, down };
    const number = (text) => (/^[\d.]+/.test(text) ? parseFloat(text) : null);
    const compare = (one, other) => {
      if (typeof one !== "string" || typeof other !== "string") return one - other;
      const numbers = [number(one), number(other)];
      const byNumber = numbers.includes(null) ? 0 : numbers[0] - numbers[1];
      return byNumber || one.localeCompare(other);
    };
    order.sort((one, other) => {
      const values = [heads[at].of(data.rows[one]), heads[at].of(data.rows[other])];
      // What has no figure stays at the end.
      if (values.includes(null) || values.includes(undefined)) return (values[0] === null) - (values[1] === null);
      return (down ? -1 : 1) * compare(values[0], values[1]);
    });
    titles.forEach((title, number) => {
      if (number === at) title.setAttribute("aria-sort", down ? "descending" : "ascending");
      else title.removeAttribute("aria-sort");
    });
    fill();
  }

  function bar(row) {
    const [p50, p99] = [aboveBase(row, "p50"), aboveBase(row, "p99")];
    if (p50 === null) return "";
    const width = (value) => `width:${Math.max(0, Math.min(100, (100 * value) / longest))}%`;
    return [el("div", { class: "bar", "aria-hidden": "true" }, el("i", { style: width(p99) }), el("i", { style: width(p50) })),
      `${short(p50)} · ${short(p99)}`];
  }

  function fill() {
    body.replaceChildren(...order.map((number) => {
      const row = data.rows[number];
      const tick = el("input", { type: "checkbox", "data-row": number, "aria-label": `draw ${row.label}`, onchange: () => toggle(number) });
      tick.checked = on.has(number);
      tick.disabled = !drawn(number);
      const cells = heads.map((head, at) => {
        if (head.bar) return el("td", { class: "words" }, bar(row));
        const value = head.of(row);
        if (head.words) return el("td", { class: at === 0 ? "words name" : "words" }, value);
        if (value === null || value === undefined) return el("td");
        const spread = head.spread(row);
        return el("td", {}, fixed(value, head.digits), spread === null ? null : el("span", { class: "spread" }, ` ±${fixed(spread, Math.max(1, head.digits))}`));
      });
      const classes = [on.has(number) ? "" : "off", row.best ? "best" : ""].join(" ").trim();
      return el("tr", { class: classes || null, "data-row": number }, el("td", { class: "tick" }, tick, on.has(number) ? key(number) : null), cells);
    }));
  }

  const table = el("table", { id: "comparison", "aria-label": "All rows and their figures" },
    el("thead", {},
      el("tr", {}, el("td"), groups.map(({ group, count }) => el(group ? "th" : "td", { colspan: count, scope: group ? "colgroup" : null }, group))),
      el("tr", {}, el("th", { scope: "col", class: "words" }, "draw"), titles)),
    body);
  section("Comparison",
    el("p", { class: "soft" }, "A click on a title sorts. What is ticked is drawn in everything below. The bars: the first probe's delay above the base round-trip time, its median within its 99th percentile."),
    scroll("Comparison", table));
  whenChanged(fill);
}
