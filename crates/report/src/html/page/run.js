// The worker of a report: one request, with how far it is.

let engineModule = null;

self.onmessage = ({ data: { module, request } }) => {
  if (module) engineModule = module;
  if (!request) return;
  try {
    const { text } = new Engine(engineModule).ask(request, (passed, total) => { self.postMessage({ passed, total }); });
    self.postMessage({ text });
  } catch (error) {
    self.postMessage({ wrong: error.message });
  }
};
