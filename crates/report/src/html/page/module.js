// The engine that a page has in it, packed, and workers that run it.

/** The module, unpacked from the page itself. */
async function engineModule() {
  const packed = Uint8Array.from(atob(document.getElementById("engine").textContent), (c) => c.charCodeAt(0));
  const code = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(code).arrayBuffer());
}

/** A worker with the module, of the text that the page has for it. */
function engineWorker(module, failed) {
  const code = URL.createObjectURL(new Blob([document.getElementById("worker").textContent], { type: "text/javascript" }));
  const worker = new Worker(code);
  worker.onerror = (event) => failed(event.message);
  worker.postMessage({ module });
  return worker;
}
