// Where one setting varies: a line with its spread. Where two do: a heat map of any figure.

function sweepSection() {
  const varied = data.settings.map((name, at) => ({ name, at, values: [...new Set(data.rows.map((row) => row.settings[at]))] })).filter(({ values }) => values.length > 1);
  const columns = data.columns.map((column, at) => ({ ...column, at })).filter(({ at }) => data.rows.some((row) => row.figures[at] !== null));
  if (!data.is_sweep || !columns.length) return;
  const numeric = ({ values }) => values.every((value) => /^[\d.]/.test(value)) && values.length > 2;
  if (varied.length === 2) heatMap(varied, columns);
  else if (varied.length === 1 && numeric(varied[0])) lineOf(varied[0], columns);
}

function choose(columns, draw) {
  const first = Math.max(0, columns.findIndex(({ name }) => name === "above base"));
  const select = el("select", { id: "figure", onchange: () => draw(columns[select.value]) },
    columns.map(({ group, name, unit }, at) => el("option", { value: at, selected: at === first }, `${group} ${name}${unit ? ` (${unit})` : ""}`.trim())));
  return { controls: el("div", { class: "controls" }, el("label", { for: "figure" }, "Figure"), select), first: columns[first] };
}

function heatMap([down, across], columns) {
  const host = el("div");
  const worlds = [...new Set(data.rows.map((row) => row.world))];
  const draw = (column) => {
    const value = (row) => row.figures[column.at] && row.figures[column.at][0];
    const all = data.rows.map(value).filter((number) => number !== null);
    const [least, most] = [Math.min(...all), Math.max(...all)];
    host.replaceChildren(...worlds.map((world) => {
      const rows = down.values.map((one) => el("tr", {}, el("th", { scope: "row", class: "words" }, one), across.values.map((other) => {
        const row = data.rows.find(({ settings, world: of }) => settings[down.at] === one && settings[across.at] === other && of === world);
        const number = row ? value(row) : null;
        if (number === null) return el("td", {}, "–");
        const share = most > least ? (number - least) / (most - least) : 0;
        // One hue from light to dark, so that it is read without colours too; the text keeps its contrast.
        return el("td", { style: `background:hsl(205 75% ${94 - 64 * share}%);color:${share > 0.42 ? "#fff" : "#111"}` }, fixed(number, column.digits));
      })));
      return el("div", {}, worlds.length > 1 ? el("h3", {}, world) : null, scroll("Heat map", el("table", { class: "heat", "aria-label": `${column.group} ${column.name} by ${down.name} and ${across.name}` },
        el("thead", {}, el("tr", {}, el("th", { class: "words" }, `${down.name} \\ ${across.name}`), across.values.map((other) => el("th", { scope: "col" }, other)))), el("tbody", {}, rows))));
    }));
  };
  const { controls, first } = choose(columns, draw);
  section(`By ${down.name} and ${across.name}`, controls, host);
  draw(first);
}

function lineOf(setting, columns) {
  const host = el("div", { class: "charts stack" });
  const { controls, first } = choose(columns, (column) => draw(column));
  section(`By ${setting.name}`, controls, host);
  const chart = figure(host, "sweep", `Mean over the seeds, and one standard deviation either way`, "");
  const worlds = [...new Set(data.rows.map((row) => row.world))];
  const order = setting.values.map((value, at) => ({ value, at, number: parseFloat(value) }));
  let current = first;
  const draw = (column) => {
    current = column;
    const lines = worlds.flatMap((world, number) => [0, -1, 1].map((sign) => ({
      row: number, line: sign === 0 ? 0 : 2, label: `${world}${sign ? (sign > 0 ? " + deviation" : " − deviation") : ""}`,
      values: order.map(({ value }) => {
        const row = data.rows.find(({ settings, world: of }) => settings[setting.at] === value && of === world);
        const found = row && row.figures[column.at];
        return found ? found[0] + sign * (found[1] || 0) : null;
      }),
    }))).filter((line) => line.line === 0 || data.rows[0].seeds > 1);
    chart.draw(order.map(({ at }) => at), lines, {
      xLabel: `${setting.name}: ${setting.values.join(", ")}`, xRange: () => [-0.2, order.length - 0.8],
      yRange: (_, min, max) => yRange(min, max, [], false),
    });
  };
  whenChanged(() => draw(current));
}
