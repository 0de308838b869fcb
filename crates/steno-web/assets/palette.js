// @ts-check
// The palette (Ctrl-K): commands of the page, and sessions and search hits from the server.

const dialog = /** @type {HTMLDialogElement | null} */ (document.querySelector("#palette"));
const input = /** @type {HTMLInputElement | null} */ (document.querySelector("#palette-input"));
const list = /** @type {HTMLElement | null} */ (document.querySelector("#palette-list"));

/** @typedef {(name: string) => void} SessionPicker */

/** Takes the name of the chosen session instead of opening it. @type {SessionPicker | null} */
let pick = null;
let lastRequest = 0;
/** Whether the list is of an older text than the typed one. */
let isOutdated = false;

/** @returns {HTMLElement[]} */
const options = () => [...(list?.querySelectorAll("[role=option]:not([hidden])") ?? [])].map((one) => /** @type {HTMLElement} */ (one));

/** Marks an option as the current one. @param {HTMLElement | undefined} option */
function mark(option) {
  for (const other of list?.querySelectorAll("[aria-selected]") ?? []) other.removeAttribute("aria-selected");
  input?.removeAttribute("aria-activedescendant");
  if (!option) return;
  option.id ||= `option-${Math.random().toString(36).slice(2)}`;
  option.setAttribute("aria-selected", "true");
  input?.setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

/** Shows the commands whose names contain all words, then what the server finds. */
async function update() {
  if (!input || !list) return;
  const typed = input.value.trim();
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  let isNamed = false;
  for (const option of list.querySelectorAll("[data-command]")) {
    const command = /** @type {HTMLElement} */ (option);
    const isOffered = !pick && (!command.dataset.click || document.getElementById(command.dataset.click));
    const name = (command.textContent ?? "").toLowerCase();
    command.hidden = !isOffered || !words.every((word) => name.includes(word));
    // "cost" means the page of that name and "export" the command, not a session with the word.
    const own = command.querySelector("span")?.textContent?.toLowerCase() ?? "";
    isNamed ||= !command.hidden && typed.length > 2 && own.startsWith(typed.toLowerCase());
  }
  const request = ++lastRequest;
  const response = await fetch(`/palette?q=${encodeURIComponent(typed)}&sessions=${Boolean(pick)}`);
  const text = await response.text();
  if (request !== lastRequest || !response.ok) return;
  list.querySelectorAll("[role=option]:not([data-command])").forEach((old) => old.remove());
  // Sessions come first while one types, and commands while one does not or names one.
  list.insertAdjacentHTML(typed && !isNamed ? "afterbegin" : "beforeend", text);
  mark(options()[0]);
  isOutdated = false;
}

/** @param {HTMLElement | undefined} option */
function choose(option) {
  if (!option) return;
  dialog?.close();
  const { click, href, name } = option.dataset;
  if (pick && name) pick(name);
  else if (click) document.getElementById(click)?.click();
  else if (href) location.href = href;
}

/** Opens the palette. @param {SessionPicker | null} picker */
export function openPalette(picker = null) {
  if (!dialog || !input) return;
  pick = picker;
  input.value = "";
  input.placeholder = pick ? "Find a session by title, project, agent or id" : input.getAttribute("aria-label") ?? "";
  if (!dialog.open) dialog.showModal();
  update();
}

addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k") return;
  event.preventDefault();
  openPalette();
});
document.querySelector("#palette-open")?.addEventListener("click", () => openPalette());
let timer = 0;
input?.addEventListener("input", () => {
  clearTimeout(timer);
  isOutdated = true;
  timer = window.setTimeout(update, 60);
});
/** Chooses the current option, of the text that is typed now. */
async function chooseCurrent() {
  clearTimeout(timer);
  if (isOutdated) await update();
  choose(options().find((option) => option.hasAttribute("aria-selected")));
}
input?.addEventListener("keydown", (event) => {
  const all = options();
  const at = all.findIndex((option) => option.hasAttribute("aria-selected"));
  if (event.key === "Enter") chooseCurrent();
  else if (event.key === "ArrowDown") mark(all[(at + 1) % all.length]);
  else if (event.key === "ArrowUp") mark(all[(at - 1 + all.length) % all.length]);
  else return;
  event.preventDefault();
});
list?.addEventListener("click", (event) => {
  choose(/** @type {HTMLElement | undefined} */ (/** @type {Element} */ (event.target).closest("[role=option]") ?? undefined));
});
// The compare page chooses its two sessions by searching.
for (const one of document.querySelectorAll("[data-pick]")) {
  const button = /** @type {HTMLElement} */ (one);
  button.addEventListener("click", () => openPalette((name) => {
    const query = new URLSearchParams(location.search);
    query.set(button.dataset.pick ?? "a", name);
    location.search = query.toString().replaceAll("%2F", "/");
  }));
}
// A click beside the palette closes it.
dialog?.addEventListener("click", (event) => event.target === dialog && dialog.close());
