// What the page shows, and where.

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const main = el("main");
/** When other data are shown in the same page, nothing of these listens any more. */
const gone = new AbortController();
