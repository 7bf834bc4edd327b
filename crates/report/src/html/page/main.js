// The page from top to bottom.

page.append(el("header", {}, el("h1", {}, data.title), data.about.map((about) => el("p", {}, about)),
  data.headline.slice(0, 4).map((sentence) => el("p", { class: "headline" }, sentence)),
  data.headline.length > 4 ? el("details", {}, el("summary", {}, `and ${data.headline.length - 4} more`), data.headline.slice(4).map((sentence) => el("p", {}, sentence))) : null,
  data.words.length ? el("details", {}, el("summary", {}, "What else there is to say"), el("ul", {}, data.words.map((words) => el("li", {}, words)))) : null));
page.append(main);
if (data.rows.length) {
  comparison();
  legend();
  timeSection();
  distributionSection();
  flowsSection();
  worldsSection();
  sweepSection();
  frontSection();
  againSection();
}
knobsSection();
page.append(el("footer", {}, el("p", { class: "soft" }, `Made by ${data.program}. Charts: uPlot 1.6.32 (MIT); its licence stands in this file. This page asks nothing of any network.`)));
prefersDark.addEventListener("change", changed, { signal: gone.signal });
// Nobody opens on paper what is closed: what there is to say is said there.
let opened = [];
window.addEventListener("beforeprint", () => {
  document.documentElement.classList.add("print");
  opened = [...page.querySelectorAll("header details:not([open])")];
  opened.forEach((details) => { details.open = true; });
  listeners.forEach((listener) => listener());
}, { signal: gone.signal });
window.addEventListener("afterprint", () => {
  document.documentElement.classList.remove("print");
  opened.forEach((details) => { details.open = false; });
  changed();
}, { signal: gone.signal });
