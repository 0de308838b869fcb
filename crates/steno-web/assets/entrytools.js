// @ts-check
// Buttons beside the entry under the pointer: copy its text, copy a link to it. Code blocks have a copy button, too.
import { ENTRY, numberOf } from "./places.js";
import { goTo, keys } from "./reader.js";

const sessionAddress = () => document.querySelector("main")?.dataset.session;

/** @param {string} label @param {string} sign */
export function makeButton(label, sign) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "beside", title: label, textContent: sign });
  button.setAttribute("aria-label", label);
  return button;
}

/** Copies a text, also on a page that the browser does not trust with its clipboard. @param {string} text */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** Copies a text and says so on the button. @param {HTMLElement} button @param {string} text */
async function copyFrom(button, text) {
  const sign = button.dataset.sign ??= button.textContent ?? "";
  await copyText(text);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = sign), 1200);
}

/** The text of an element without buttons. @param {Element} element */
function textOf(element) {
  const copy = /** @type {Element} */ (element.cloneNode(true));
  copy.querySelectorAll("button, .note, .entry-tools, :scope > a:first-child, :scope > small, :scope > i").forEach((part) => part.remove());
  return copy.textContent ?? "";
}

/** The text of an entry, as it was recorded if a server has it. @param {Element} entry */
async function entryText(entry) {
  const base = sessionAddress();
  const response = base ? await fetch(`${base}/entry/${numberOf(entry)}`) : null;
  if (response?.ok) return response.text();
  const parts = [...entry.querySelectorAll(":scope > .md, :scope > details > :not(summary), :scope > .line > code")];
  return parts.length ? parts.map(textOf).join("\n") : textOf(entry);
}

/** The address of an entry. @param {Element} entry */
const entryLink = (entry) => `${location.href.split(/[?#]/)[0]}#${entry.id}`;

/** The buttons, which move to the entry under the pointer or focus. */
export const entryTools = document.createElement("div");
entryTools.className = "entry-tools";
const copyButton = makeButton("Copy the text of this entry (y)", "Copy");
const linkButton = makeButton("Copy a link to this entry (Y)", "Link");
const numberLabel = document.createElement("span");
numberLabel.title = "The number of this entry";
entryTools.append(numberLabel, copyButton, linkButton);
/** Moves the buttons to an entry. @param {Element} entry */
function moveTools(entry) {
  numberLabel.textContent = `entry ${numberOf(entry)}`;
  entry.append(entryTools);
}
copyButton.addEventListener("click", async () => {
  const entry = copyButton.closest(ENTRY);
  if (entry) copyFrom(copyButton, await entryText(entry));
});
linkButton.addEventListener("click", () => {
  const entry = linkButton.closest(ENTRY);
  if (!entry) return;
  goTo(entry);
  copyFrom(linkButton, entryLink(entry));
});
for (const [key, button] of /** @type {[string, HTMLElement][]} */ ([["y", copyButton], ["Y", linkButton]])) {
  keys[key] = () => {
    const entry = document.querySelector("li.at");
    if (!entry) return;
    moveTools(entry);
    button.click();
  };
}

/** What numbers beside entries mean. Not in the page itself, because a long session has many. @type {Record<string, string>} */
const MEANINGS = {
  ".at-once": "The agent started these calls at once, without waiting for each other",
  ".entries i": "Tokens that the model read and wrote for this message, and what a turn cost",
  "li > .took": "From the first entry to the last",
  "li > .calls": "Calls of tools",
  "li > .errors": "Calls of tools that failed, and other errors, as of the model's API",
  "li > .tokens": "Tokens that the model read, cached or not, and tokens that it wrote",
  "li > .cost": "US dollars: as the agent reported, or calculated from tokens and list prices. ? means that the price of a model is unknown.",
};

const codeButton = makeButton("Copy this block", "Copy");
codeButton.classList.add("copy-block");
codeButton.addEventListener("click", () => {
  const block = codeButton.closest("pre");
  if (block) copyFrom(codeButton, textOf(block));
});

for (const name of ["pointerover", "focusin"]) {
  document.addEventListener(name, (event) => {
    const target = /** @type {Element} */ (event.target);
    const meaning = Object.keys(MEANINGS).find((name) => target.matches(name));
    if (meaning) /** @type {HTMLElement} */ (target).title = MEANINGS[meaning];
    const [entry, block] = [target.closest(ENTRY), target.closest("main pre")];
    if (entry && entryTools.parentElement !== entry) moveTools(entry);
    if (block && codeButton.parentElement !== block) block.prepend(codeButton);
  });
}
