// Pages without a script in a browser: pages.mjs CHROMIUM PICTURES FILE…. On a phone nothing but tables and pictures scrolls sideways, and
// nothing is asked of a network. With a folder PICTURES (or "") it leaves pictures of the pages there. DUALQ_AXE names axe-core's axe.min.js.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { withPage } from "./chromium.mjs";

const [program, pictures, ...files] = process.argv.slice(2);

await withPage(program, async (page) => {
  for (const file of files) {
    for (const [name, width, dark] of [["light", 1280, false], ["dark", 1280, true], ["phone", 360, false]]) {
      await page.view(width, 900, dark);
      await page.load(pathToFileURL(file).href);
      await page.evaluate(`document.querySelectorAll("details").forEach((one) => { one.open = true; })`);
      await page.settle();
      const images = await page.evaluate(`[...document.images].map((image) => image.getBoundingClientRect().right)`);
      assert.ok(images.length > 0 && images.every((right) => right <= width), `pictures fit: ${images}`);
      await page.fits(width, `${basename(file)}, ${name}`);
      if (process.env.DUALQ_AXE) await page.accessible(readFileSync(process.env.DUALQ_AXE, "utf8"), `${basename(file)}, ${name}`);
      if (pictures) writeFileSync(join(pictures, `${basename(file)}-${name}.png`), await page.picture());
    }
  }
  assert.deepEqual(page.seen.console, [], "nothing on the console");
  assert.deepEqual(page.seen.requests.filter((request) => !request.startsWith("file:") && !request.startsWith("data:")), [], "no request leaves");
});
