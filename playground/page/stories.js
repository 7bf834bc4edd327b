// Five stories of a minute each. A step sets the line and says what is seen then; its numbers are those of the simulation that it began.

/** A step is on the screen so long before the next comes by itself. */
const STEP_MS = 10_000;

/** Where slow steps begin, in simulated seconds: queues have filled by then. */
const SLOW_FROM_S = 8;

const some = (write, value) => (value === null || value === undefined ? "…" : write(value));

const STORIES = [
  {
    title: "What a FIFO does",
    steps: [
      { state: { downloads: 0, uploads: 0 }, text: ({ now }) => `A call alone on a line of 50 and 10 Mbit/s: its packets take ${some(ms, now.call)}, which is the way itself. Nothing waits.` },
      { state: { downloads: 0 }, direction: 1, text: ({ now }) => `Now a backup goes up. TCP sends faster and faster until a packet is lost, and the queue at the line holds 1000 of them before it loses one. The call takes its place behind them: ${some(ms, now.call)}.` },
      { state: { downloads: 0 }, direction: 1, speed: 0.1, text: () => "Ten times slower: each call packet comes in at the left, behind all of the upload's. The line is never idle, so the upload does not gain anything by the queue." },
      { state: { downloads: 0, up: 2 }, direction: 1, text: ({ now }) => `The same queue before 2 Mbit/s: ${some(ms, now.call)}. It is the packets that are counted, and the slower the line the longer they take.` },
      { state: { downloads: 0, where: "line", cure: "short" }, direction: 1, text: ({ now, cured }) => `A shorter FIFO, on the right: ${some(ms, cured.call)} in place of ${some(ms, now.call)}. Better, and still full; and too short a one costs speed where round trips are long.` },
      { state: { downloads: 0 }, direction: 1, text: ({ cured }) => `What to do, on your router: keep the queue there, with a shaper a little below the line's rate, and give it a discipline that keeps it short. On the right that is fq_codel: ${some(ms, cured.call)}. The next story shows how.` },
    ],
  },
  {
    title: "What fq_codel does",
    steps: [
      { state: {}, direction: 1, text: ({ now }) => `A download, an upload and a call. On the left all wait in one queue: the call ${some(ms, now.call)}, and even the download has only ${some(mbit, now.download)}, because its acknowledgements wait too.` },
      { state: {}, direction: 1, speed: 0.1, text: () => "On the right every flow has a queue of its own, and these take turns. The call's packet finds its queue empty and leaves at once, whoever else is there." },
      { state: { uploads: 8, games: 1 }, direction: 1, text: ({ now, cured }) => `Eight uploads and a game beside it: the game's packets take ${some(ms, cured.game)} on the right and ${some(ms, now.game)} on the left. More flows take turns now, and one that sends little still finds its own queue empty.` },
      { state: { uploads: 1 }, direction: 1, text: ({ cured }) => `And no upload fills even its own queue: CoDel drops a packet of whoever waits longer than 5 ms for 100 ms on end. ${some((value) => fixed(value, 0), cured.drops)} drops in this run were enough.` },
      { state: {}, direction: 0, text: ({ now, cured }) => `What it costs: the shaper's twentieth of the line. What it brings: the call from ${some(ms, now.call)} to ${some(ms, cured.call)}, and the download from ${some(mbit, now.download)} to ${some(mbit, cured.download)}.` },
      { state: {}, direction: 1, text: () => "What to do, on your router: fq_codel or CAKE behind a shaper at some 95 % of the line, both ways. “As a plan” below is the call that says what to change on a Linux router. What your provider's box does not let you change, a router behind it does." },
    ],
  },
  {
    title: "BBR alone, and in company",
    steps: [
      { state: { uploads: 0, where: "line", cure: "deep", cure_cc: "bbr" }, text: ({ now, cured }) => `One download through the same deep FIFO, with CUBIC on the left and BBR on the right. CUBIC fills the queue (${some(ms, now.ping99)}); BBR measures the line's rate and sends that (${some(ms, cured.ping99)}).` },
      { state: { uploads: 0, where: "line", cure: "deep", cure_cc: "bbr" }, speed: 0.1, text: () => "Look at the queues: BBR's is nearly empty, because nothing is sent that the line does not take at once. Alone, it is a cure by itself." },
      { state: { uploads: 0, downloads: 4, cc: "bbr", where: "line", cure: "deep", cure_cc: "cubic" }, text: ({ now, cured }) => `Four at once, BBR on the left: each looks for more by sending more, and together they keep ${some(ms, now.ping)} standing. CUBIC, on the right, keeps ${some(ms, cured.ping)}.` },
      { state: { uploads: 0, downloads: 2, mix: "bbr" }, text: ({ now }) => `BBR beside CUBIC in one deep FIFO, on the left: half of all round trips take ${some(ms, now.ping)}. Whoever fills the queue decides for all, and the one that did not has ${some(mbit, now.other)} of ${some(mbit, now.download)}.` },
      { state: { uploads: 0, downloads: 4, cc: "bbr", where: "line", cure: "dualpi2" }, text: ({ cured }) => `Four BBR through DualPI2, on the right: this BBR heeds neither drops nor marks, so the queue can only drop more: ${some((value) => fixed(value, 0), cured.drops)} packets, and ${some(percent, cured.callLost)} of the call's.` },
      { state: { uploads: 0, downloads: 4, cc: "bbr", where: "line", cure: "fq_codel" }, text: ({ cured }) => `What to do: the congestion control is the server's to choose, not yours. On your router, a queue for each flow makes the choice of others harmless: with fq_codel the call takes ${some(ms, cured.call)}. On a server of your own: BBR where it is alone, and no BBR (version 1) where one queue is shared.` },
    ],
  },
  {
    title: "Why DualPI2 has two queues",
    steps: [
      { state: { uploads: 0, where: "line", router: "pie", cure: "dualpi2" }, text: ({ now, cured }) => `One CUBIC download through PIE on the left and DualPI2 on the right: a round trip takes ${some(ms, now.ping)} and ${some(ms, cured.ping)}. Both keep one queue of some 15 ms, and shorter would cost speed: CUBIC halves nearly when told once, and needs something to wait meanwhile.` },
      { state: { uploads: 0, where: "line", router: "pie", cure: "dualpi2", cc: "prague" }, text: ({ now, cured }) => `The same with Prague, which gives way a little for each mark: through DualPI2 ${some(ms, cured.ping)} are enough, at ${some(mbit, cured.download)}. PIE here marks nothing, and drops are all that Prague hears: ${some(ms, now.ping)}.` },
      { state: { uploads: 0, downloads: 2, mix: "prague", where: "line", router: "pie", cure: "dualpi2" }, text: ({ now, cured }) => `Both kinds at once. In one queue Prague waits as long as CUBIC does: ${some(ms, now.otherRtt)}. DualPI2 has two: Prague's packets say ECT(1) and go to the L queue: ${some(ms, cured.otherRtt)}.` },
      { state: { uploads: 0, downloads: 2, mix: "prague", where: "line", router: "pie", cure: "dualpi2" }, speed: 0.02, text: () => "Fifty times slower: the L queue above nearly always goes first, and is nearly always empty. The marks in it (packets with a hole) come many and gently, the classic queue's drops few and hard." },
      { state: { uploads: 0, downloads: 2, mix: "prague", where: "line", router: "pie", cure: "dualpi2" }, text: ({ cured }) => `Would the L queue not starve the other? Its marks are coupled: twice p′, where the classic queue drops with p′². A flow of either kind then comes to a rate of the same order: CUBIC here has ${some(mbit, cured.first)}, Prague ${some(mbit, cured.other)}; a short round trip is faster, as everywhere.` },
      { state: { uploads: 0, downloads: 2, mix: "prague", where: "line", router: "deep", cure: "dualpi2" }, text: () => "What to do: the queue has to be where the bottleneck is (a provider's, or your router behind a shaper), and the sender has to be scalable: Prague or another L4S sender on the server. A call or a game gains only if it asks for the L queue itself. For everybody else fq_codel does as much." },
    ],
  },
  {
    title: "A cure in the wrong place",
    steps: [
      { state: { where: "router" }, direction: 1, text: ({ now, cured }) => `fq_codel on your router, as many recipes have it, and nothing else: the call takes ${some(ms, cured.call)}. Before, it took ${some(ms, now.call)}.` },
      { state: { where: "router" }, direction: 1, speed: 0.1, text: () => "Both sides are the same because the queue drawn is that of the line, in the modem. Your router's network is faster than the line: its own queue is always empty, and a discipline rules only packets that wait in its queue." },
      { state: { share: 100 }, direction: 1, text: ({ cured }) => `A shaper at just the line's rate: the queue is now in both places, and nobody knows which packet waits where. The call: ${some(ms, cured.call)}.` },
      { state: { share: 95 }, direction: 1, text: ({ cured }) => `At 95 %: the router sends less than the line takes, so the modem's queue stays empty and all that waits, waits where fq_codel is. The call: ${some(ms, cured.call)}.` },
      { state: { share: 80 }, direction: 1, text: ({ cured }) => `At 80 %: ${some(ms, cured.call)} again, but the download has ${some(mbit, cured.download)}. Just below is enough, if the line's rate is what it says. On cable and radio it is not always: then it has to be lower, or measured again and again.` },
      { state: { share: 95 }, direction: 1, text: () => "What to do, on your router: say `dualq plan` the line's rate, and it puts the shaper and the discipline together. On a rented server behind a provider's limit the same holds: the limit is the provider's, the shaper yours." },
    ],
  },
];

const story = { number: null, step: 0, timer: null };
const storyBox = el("div", { class: "story", hidden: true, role: "region", "aria-label": "Story" });
const storyText = el("p", { class: "text", "aria-live": "polite" });
const storyPlace = el("p", { class: "soft" });
const storyHold = el("button", { type: "button", class: "hold", onclick: () => (story.timer === null ? goOn() : hold()) });
const storyNext = el("button", { type: "button", class: "next", onclick: () => { hold(); tellStep(story.step + 1); } });
const storyBack = el("button", { type: "button", class: "back", onclick: () => { hold(); tellStep(story.step - 1); } }, "back");

function storySection() {
  const buttons = STORIES.map(({ title }, number) => el("button", { type: "button", "data-story": number, "aria-pressed": "false", onclick: () => beginStory(number) }, `${number + 1}. ${title}`));
  storyBox.append(storyPlace, storyText, el("div", { class: "controls" }, storyBack, storyNext, storyHold, el("button", { type: "button", class: "end", onclick: endStory }, "leave the story")));
  section("Five stories of a minute", el("div", { class: "stories" }, buttons), storyBox);
}

function beginStory(number) {
  story.number = number;
  // What a story sets is not to be set beside it; and so what it tells of stands right below.
  controlsBox.hidden = true;
  storyBox.hidden = false;
  document.querySelectorAll("[data-story]").forEach((button) => button.setAttribute("aria-pressed", String(Number(button.dataset.story) === number)));
  tellStep(0);
  // Who wants nothing to move goes on by the button.
  if (stillness.matches) hold();
  else goOn();
}

function endStory() {
  hold();
  story.number = null;
  controlsBox.hidden = false;
  storyBox.hidden = true;
  document.querySelectorAll("[data-story]").forEach((button) => button.setAttribute("aria-pressed", "false"));
}

function hold() {
  clearTimeout(story.timer);
  story.timer = null;
  storyHold.textContent = "go on by itself";
}

function goOn() {
  clearTimeout(story.timer);
  const { steps } = STORIES[story.number];
  if (story.step + 1 >= steps.length) return hold();
  storyHold.textContent = "hold";
  story.timer = setTimeout(() => { tellStep(story.step + 1); goOn(); }, STEP_MS);
}

/** A step of the story that is told; beyond its last it ends. */
function tellStep(number) {
  const { title, steps } = STORIES[story.number];
  if (number >= steps.length) return endStory();
  story.step = Math.max(0, number);
  const { state, direction = 0, speed = 1 } = steps[story.step];
  storyPlace.textContent = `${title}: ${story.step + 1} of ${steps.length}`;
  storyBack.disabled = story.step === 0;
  storyNext.textContent = story.step + 1 === steps.length ? "end" : "next";
  storyText.textContent = "…";
  setSpeed(speed);
  chooseDirection(direction);
  // What is slow begins where there is something to see.
  shown.from = speed < 1 ? SLOW_FROM_S : 0;
  change({ ...firstState(), ...state }, { now: true });
  if (!stillness.matches) {
    shown.plays = true;
    showPlay();
  }
}

/** The text of the step, once its figures are there. */
function tellStory([now, cured]) {
  if (story.number === null || !now || !cured) return;
  const words = STORIES[story.number].steps[story.step].text({ now, cured });
  if (storyText.textContent !== words.replaceAll("`", "")) storyText.replaceChildren(...withCommands(words));
}
