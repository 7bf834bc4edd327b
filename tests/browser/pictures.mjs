// Pictures in a browser: pictures.mjs CHROMIUM PICTURES FILE…. Text stays on the picture and off other text, in light and dark each colour
// has enough contrast, and nothing is asked of a network. With a folder PICTURES (or "") it leaves them there as pixels.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { withPage } from "./chromium.mjs";

const [program, pictures, ...files] = process.argv.slice(2);

/** Contrast of two colours as WCAG has it. */
const contrast = `(one, other) => {
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map((part) => part / 255).map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [a, b] = [light(one), light(other)].sort((x, y) => y - x);
  return (a + 0.05) / (b + 0.05);
}`;

const look = `(() => {
  const contrast = ${contrast};
  const svg = document.documentElement;
  const { width, height } = svg.viewBox.baseVal;
  const texts = [...svg.querySelectorAll("text")];
  const boxes = texts.map((text) => ({ text: text.textContent, box: text.getBBox() }));
  const paper = getComputedStyle(svg.querySelector("rect.p")).fill;
  const wrong = [];
  for (const { text, box } of boxes) {
    if (box.x < 0 || box.y < 0 || box.x + box.width > width || box.y + box.height > height) wrong.push("beyond the picture: " + text);
  }
  // Lines of text stand close: what counts is whether letters meet.
  const meet = (a, b) => a.x < b.x + b.width && b.x < a.x + a.width && a.y + 3 < b.y + b.height - 3 && b.y + 3 < a.y + a.height - 3;
  boxes.forEach((one, at) => boxes.slice(at + 1).forEach((other) => {
    if (meet(one.box, other.box)) wrong.push("one over the other: " + one.text + " | " + other.text);
  }));
  for (const text of [...texts, ...svg.querySelectorAll("tspan")]) {
    if (text.classList.contains("w")) continue;
    const found = contrast(getComputedStyle(text).fill, paper);
    if (found < 4.5) wrong.push("contrast " + found + ": " + text.textContent);
  }
  // On a coloured cell or bar.
  const grounds = [...svg.querySelectorAll("rect[class^=h]")].map((rect) => ({ rect, box: rect.getBBox() }));
  for (const { text, box } of texts.map((text) => ({ text, box: text.getBBox() }))) {
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    const below = grounds.find(({ box: ground }) => x > ground.x && x < ground.x + ground.width && y > ground.y && y < ground.y + ground.height);
    const found = below && contrast(getComputedStyle(text).fill, getComputedStyle(below.rect).fill);
    if (below && (found < 4.5 || box.width > below.box.width)) wrong.push("contrast " + found + " on " + below.rect.getAttribute("class") + ": " + text.textContent);
  }
  for (const shape of svg.querySelectorAll("[class^=c], [class^='f c']")) {
    const style = getComputedStyle(shape);
    const found = contrast(style.stroke === "none" ? style.fill : style.stroke, paper);
    if (found < 3) wrong.push("contrast " + found + " of " + shape.getAttribute("class"));
  }
  return { wrong, texts: texts.length, title: svg.querySelector("title").textContent };
})()`;

await withPage(program, async (page) => {
  for (const file of files) {
    const url = pathToFileURL(file).href;
    for (const dark of [false, true]) {
      await page.view(640, 900, dark);
      await page.load(url);
      const { wrong, texts, title } = await page.evaluate(look);
      assert.deepEqual(wrong, [], `${basename(file)}, ${dark ? "dark" : "light"}`);
      assert.ok(texts > 4 && title.length > 4, file);
      if (pictures) {
        const height = await page.evaluate("document.documentElement.viewBox.baseVal.height");
        const { data } = await page.send("Page.captureScreenshot", { clip: { x: 0, y: 0, width: 640, height, scale: 1 }, captureBeyondViewport: true });
        writeFileSync(join(pictures, `${basename(file)}-${dark ? "dark" : "light"}.png`), Buffer.from(data, "base64"));
      }
    }
  }
  assert.deepEqual(page.seen.console, [], "nothing on the console");
  assert.deepEqual(page.seen.requests.filter((request) => !request.startsWith("file:") && !request.startsWith("data:")), [], "no request leaves");
});
