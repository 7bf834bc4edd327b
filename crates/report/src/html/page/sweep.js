// Where one setting varies: a line with its spread. Where two do: a heat map of any figure.

function sweepSection() {
  const columns = data.columns.map((column, at) => ({ ...column, at })).filter(({ at }) => data.rows.some((row) => row.figures[at] !== null));
  if (!data.sweep.length || !columns.length) return;
  const draw = data.sweep.length === 2 ? heatMaps(...data.sweep) : lineOf(...data.sweep);
  const first = Math.max(0, columns.findIndex(({ name }) => name === "above base"));
  const select = el("select", { id: "figure", onchange: () => draw.figure(columns[select.value]) },
    columns.map(({ words }, at) => el("option", { value: at, selected: at === first }, words)));
  section(`By ${data.sweep.map(({ name }) => name).join(" and ")}`, el("div", { class: "controls" }, el("label", { for: "figure" }, "Figure"), select), draw.host);
  draw.figure(columns[first]);
}

const worlds = [...new Set(data.rows.map((row) => row.world))];

/** The mean of a figure and its deviation where settings have these values. */
function figureAt(column, world, wanted) {
  const row = data.rows.find((row) => row.world === world && wanted.every(([setting, value]) => row.settings[setting.at] === value));
  return row ? row.figures[column.at] : null;
}

/** How many colours the heat map has: classes h0 and so on. */
const HEAT_STEPS = 7;

function heatMaps(down, across) {
  const host = el("div");
  const cells = (column, world, step) => down.values.map((one) => el("tr", {}, el("th", { scope: "row", class: "words" }, one), across.values.map((other) => {
    const found = figureAt(column, world, [[down, one], [across, other]]);
    if (!found) return el("td", {}, "–");
    return el("td", { class: `h${step(found[0])}` }, fixed(found[0], column.digits));
  })));
  return {
    host,
    figure(column) {
      const all = data.rows.map((row) => row.figures[column.at]).filter((found) => found).map(([mean]) => mean);
      const [least, most] = [Math.min(...all), Math.max(...all)];
      // Where values are far apart only their logarithms tell the small ones apart.
      const log = least > 0 && most / least > 20;
      const scaled = (value) => (log ? Math.log(value) : value);
      const share = (value) => (most > least ? (scaled(value) - scaled(least)) / (scaled(most) - scaled(least)) : 0);
      const step = (value) => Math.min(HEAT_STEPS - 1, Math.floor(share(value) * HEAT_STEPS));
      const scale = el("p", { class: "soft scale" }, `${column.words}: ${fixed(least, column.digits)} `,
        el("span", { "aria-hidden": "true" }, Array.from({ length: HEAT_STEPS }, (_, at) => el("i", { class: `h${at}` }))),
        ` ${fixed(most, column.digits)}${log ? ", in logarithmic steps" : ""}${data.rows[0].seeds > 1 ? "; means of the seeds" : ""}`);
      host.replaceChildren(scale, ...worlds.map((world) => el("div", {}, worlds.length > 1 ? el("h3", {}, world) : null,
        scroll(worlds.length > 1 ? `Heat map, ${world}` : "Heat map", el("table", { class: "heat", "aria-label": `${column.words} by ${down.name} and ${across.name}${worlds.length > 1 ? `, ${world}` : ""}` },
          el("thead", {},
            el("tr", {}, el("td"), el("th", { scope: "colgroup", colspan: across.values.length }, across.name)),
            el("tr", {}, el("th", { scope: "col", class: "words" }, down.name), across.values.map((other) => el("th", { scope: "col" }, other)))),
          el("tbody", {}, cells(column, world, step)))))));
    },
  };
}

function lineOf(setting) {
  const host = el("div", { class: "charts stack" });
  const chart = figure(host, "sweep", `Figures by ${setting.name}`, "");
  const several = data.rows[0].seeds > 1;
  let current = null;
  const draw = () => {
    const lines = worlds.flatMap((world, number) => [0, -1, 1].map((sign) => ({
      row: number, line: sign === 0 ? 0 : 2, label: `${world}${sign ? (sign > 0 ? " + deviation" : " − deviation") : ""}`,
      values: setting.values.map((value) => {
        const found = figureAt(current, world, [[setting, value]]);
        return found ? found[0] + sign * (found[1] || 0) : null;
      }),
    }))).filter((line) => line.line === 0 || several);
    chart.caption.textContent = `${current.words}${several ? ": mean over the seeds, and one standard deviation either way" : ""}`;
    chart.draw(setting.values.map((_, at) => at), lines, {
      xLabel: setting.name, xNames: setting.values, dots: true,
      xRange: (_, min, max) => (min === 0 && max === setting.values.length - 1 ? [-0.3, max + 0.3] : [min, max]),
      yRange: (_, min, max) => yRange(min, max, [], false),
    });
  };
  whenChanged(() => current && draw());
  return { host, figure(column) { current = column; draw(); } };
}
