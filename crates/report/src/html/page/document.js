// What the page shows, and where.

const data = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
const main = el("main");
