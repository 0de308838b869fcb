// @ts-check
// Parts of a session that load on demand: sections above the entries, and the rest of a long output.

/** Loads a section when it is opened, and again when it is opened again. @param {HTMLDetailsElement} section */
async function loadSection(section) {
  const response = await fetch(section.dataset.load ?? "");
  const body = document.createElement("div");
  if (response.ok) body.innerHTML = await response.text();
  else body.textContent = "This part could not be loaded. Close and open it to try again.";
  section.querySelector(":scope > div")?.remove();
  section.append(body);
  markPrompt();
}

/** Marks the current prompt in the list of prompts. */
function markPrompt() {
  const here = document.elementFromPoint(innerWidth / 2, 160)?.closest(".entries > li[id]");
  if (!here) return;
  const number = Number(here.id.slice(1));
  const links = [...document.querySelectorAll(".contents-list a")];
  const current = links.filter((link) => Number(link.getAttribute("href")?.slice(2)) <= number).at(-1);
  for (const link of links) {
    if (link === current) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

for (const one of document.querySelectorAll("details[data-load]")) {
  const section = /** @type {HTMLDetailsElement} */ (one);
  section.addEventListener("toggle", () => section.open && loadSection(section));
}
/** The most prompts of an exported file that are listed. */
const MAX_PROMPTS = 2000;

/** Lists the prompts of an exported file, which has no server. @param {HTMLElement} section */
function listPrompts(section) {
  const list = document.createElement("ol");
  list.className = "contents-list";
  for (const entry of [...document.querySelectorAll(".entries > li.user[id]:not(.lane)")].slice(0, MAX_PROMPTS)) {
    const time = entry.querySelector(":scope > a:first-child")?.textContent ?? "";
    const text = (entry.textContent ?? "").slice(time.length).trim();
    if (!text) continue;
    const [link, words, clock] = ["a", "span", "small"].map((name) => document.createElement(name));
    link.setAttribute("href", `#${entry.id}`);
    words.textContent = text.split("\n")[0].slice(0, 100);
    clock.textContent = time;
    link.append(words, clock);
    const item = document.createElement("li");
    item.append(link);
    list.append(item);
  }
  section.append(list);
}

// Beside a long session there is room for the list of prompts.
const contents = /** @type {HTMLDetailsElement | null} */ (document.querySelector("#contents"));
if (contents && !contents.dataset.load) listPrompts(contents);
if (contents && matchMedia("(min-width: 84rem)").matches) contents.open = true;
let promptFrame = 0;
if (contents) {
  addEventListener("scroll", () => {
    cancelAnimationFrame(promptFrame);
    promptFrame = requestAnimationFrame(markPrompt);
  }, { passive: true });
}

document.addEventListener("click", async (event) => {
  const link = /** @type {HTMLAnchorElement | null} */ (/** @type {Element} */ (event.target).closest("a.more"));
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const response = await fetch(link.href);
  if (!response.ok) return;
  const block = document.createElement("pre");
  block.tabIndex = 0;
  block.textContent = await response.text();
  const folded = link.parentElement;
  folded?.querySelectorAll(":scope > pre").forEach((old) => old.remove());
  link.replaceWith(block);
});

const exportDialog = /** @type {HTMLDialogElement | null} */ (document.querySelector("#export"));
document.querySelector("#export-open")?.addEventListener("click", () => exportDialog?.showModal());
document.querySelector("#export-cancel")?.addEventListener("click", () => exportDialog?.close());
exportDialog?.querySelector("form")?.addEventListener("submit", () => exportDialog.close());
