// Worlds beside each other: what differs, and whether that is more than chance.

function worldsSection() {
  if (!data.worlds.length) return;
  const parts = data.worlds.map(({ scenario, worlds, seeds, figures }) => {
    const differ = figures.filter((figure) => figure.differs).length;
    const show = (mean, deviation) => short(mean) + (deviation === null ? "" : ` ±${short(deviation)}`);
    const rows = figures.map(({ group, name, unit, means, deviations, differs }) => {
      const row = [`${group} ${name}`.trim(), unit, show(means[0], deviations[0]), show(means[1], deviations[1]), short(means[1] - means[0]),
        differs ? el("span", { class: "differs" }, "≠ differs") : seeds > 1 ? "chance" : "near"];
      return row;
    });
    return el("details", { open: data.worlds.length === 1 },
      el("summary", {}, `${scenario}: ${differ} of ${figures.length} figures differ`),
      plainTable(`${scenario} in both worlds`, ["figure", "unit", worlds[0], worlds[1], "difference", "verdict"], rows, [0, 1, 5]));
  });
  const how = data.worlds[0].seeds > 1
    ? "A figure differs if the means of the seeds are further apart than three standard errors of their difference, and than a small tolerance: rates 2 % or 0.05 Mbit/s, times 10 % or 0.1 ms, counts 15 % or 5, shares 3 %."
    : "There is one seed, so that chance is not known: a figure differs if it is further apart than a small tolerance (rates 2 % or 0.05 Mbit/s, times 10 % or 0.1 ms, counts 15 % or 5, shares 3 %).";
  section("Worlds beside each other", el("p", { class: "soft" }, how), parts);
}
