// Delay against goodput: a dot for each scenario, and a line along those that nothing beats in both.

function frontSection() {
  if (!data.fronts.length) return;
  const host = el("div", { class: "charts stack" });
  section("Delay against goodput", host);
  data.fronts.forEach((front, number) => {
    const chart = figure(host, `front-${number}`, data.fronts.length > 1 ? front.name : front.goodput, "");
    host.append(el("p", { class: "soft" }, front.words));
    const values = (leads) => front.points.map((point) => (point.leads === leads ? point.goodput : null));
    const [from, to, isLog] = front.delays;
    const most = Math.max(...front.points.map(({ goodput }) => goodput)) || 1;
    const lines = [
      { row: 1, line: 0, label: "others", values: values(false), alone: true },
      { row: 0, line: 0, label: "best", values: values(true) },
    ];
    whenChanged(() => chart.draw(front.points.map(({ delay }) => delay), lines, {
      xLabel: front.delay, xLog: isLog, dots: true, stepped: true, names: front.points.map(({ name }) => name),
      xRange: (_, min, max) => (min === front.points[0].delay && max === front.points.at(-1).delay ? [from, to] : [min, max]),
      yRange: () => [0, most * 1.06],
    }));
  });
}
