// Texts to copy, and commands in them.

function copyButton(text) {
  const button = el("button", { type: "button", class: "copy", onclick: () => {
    const say = (word) => { button.textContent = word; setTimeout(() => { button.textContent = "copy"; }, 1500); };
    const old = () => {
      // Where the page may not reach the clipboard by itself.
      const area = el("textarea", { "aria-hidden": "true" });
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      say(done ? "copied" : "cannot copy");
    };
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => say("copied"), old);
    else old();
  } }, "copy");
  return button;
}

function block(text, label) {
  return el("div", {}, el("pre", { tabindex: 0, role: "region", "aria-label": label }, text), copyButton(text));
}

/** A word of a shell's command. */
function word(text) {
  return /^[\w.,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The command that runs a scenario by itself. No line of the text, which may hold anything, ends what the shell hands over. */
function commandOf({ text, seeds, first_seed: first, world }) {
  const lines = text.split("\n");
  let end = "END";
  while (lines.includes(end)) end += "_";
  return `dualq run - --seed ${first}${seeds > 1 ? ` --seeds ${seeds}` : ""} --world ${word(world)} <<'${end}'\n${text}${end}\n`;
}
