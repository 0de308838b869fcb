// @ts-check
// Parts of a session that load on demand: sections above the entries, and the rest of a long output.
import { numberOf, placeOf } from "./places.js";

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

/** The distance between the heights at which an entry is looked for, in pixels. */
const PROBE_STEP = 60;

/** The entry that is read: the marked one if it is in view, or the topmost. */
function entryInView() {
  const marked = document.querySelector("li.at");
  const box = marked?.getBoundingClientRect();
  if (box && box.height && box.bottom > 0 && box.top < innerHeight) return marked;
  for (let y = 100; y < innerHeight; y += PROBE_STEP) {
    const entry = document.elementFromPoint(innerWidth / 2, y)?.closest(".entries > li[id]");
    if (entry) return entry;
  }
  return null;
}

/** Marks the current prompt in the list of prompts, and scrolls the list to it. */
function markPrompt() {
  const links = [...document.querySelectorAll(".contents-list a")];
  const here = entryInView();
  const place = here ? placeOf(numberOf(here)) : 0;
  // Subagents' entries are shown below the call that started them, so numbers are not in display order.
  const promptPlace = (/** @type {Element} */ link) => placeOf(Number(link.getAttribute("href")?.slice(2)));
  const current = links.filter((link) => promptPlace(link) <= place).at(-1) ?? links[0];
  for (const link of links) {
    if (link === current) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  if (current) scrollListTo(current);
}

/** Scrolls the list of prompts beside the session, but not the page. @param {Element} link */
function scrollListTo(link) {
  const list = link.closest("#contents");
  if (!list || getComputedStyle(list).position !== "fixed") return;
  const [box, item] = [list.getBoundingClientRect(), link.getBoundingClientRect()];
  if (item.top < box.top + item.height) list.scrollTop += item.top - box.top - 2 * item.height;
  else if (item.bottom > box.bottom) list.scrollTop += item.bottom - box.bottom + item.height;
}

/** Opens the section that the address names, such as `#quality`. */
function openSection() {
  const section = location.hash && document.querySelector(`details.section[id="${CSS.escape(location.hash.slice(1))}"]`);
  if (!section) return;
  /** @type {HTMLDetailsElement} */ (section).open = true;
  section.scrollIntoView();
}
addEventListener("hashchange", openSection);
document.addEventListener("click", (event) => {
  // A second click changes no address, and so is no change of the hash.
  const link = /** @type {Element} */ (event.target).closest("a[href^='#']");
  if (link?.getAttribute("href") === location.hash) openSection();
});

/** @param {HTMLDetailsElement} section */
function watchSection(section) {
  // The browser reports a section that was open from the begin, too. It has its content already.
  let isNew = section.open && section.querySelector(":scope > div") !== null;
  section.addEventListener("toggle", () => {
    if (section.open && !isNew) loadSection(section);
    isNew = false;
  });
}

/** @param {ParentNode} root @returns {HTMLDetailsElement[]} */
const sectionsOf = (root) => [...root.querySelectorAll("details[data-load]")].map((one) => /** @type {HTMLDetailsElement} */ (one));

/** Takes over the headings of sections of a session that has grown, and loads open ones again. @param {ParentNode} fresh */
export function updateSections(fresh) {
  for (const section of sectionsOf(fresh)) {
    const shown = /** @type {HTMLDetailsElement | null} */ (document.getElementById(section.id));
    if (!shown) {
      document.querySelector(".sections")?.prepend(section);
      watchSection(section);
      continue;
    }
    const [heading, wanted] = [shown.querySelector("summary"), section.querySelector("summary")];
    const [body, freshBody] = [shown, section].map((one) => one.querySelector(":scope > div"));
    if (body && freshBody && body.innerHTML !== freshBody.innerHTML) body.replaceWith(freshBody);
    if (!heading || !wanted || heading.innerHTML === wanted.innerHTML) continue;
    heading.innerHTML = wanted.innerHTML;
    shown.className = section.className;
    if (shown.open && !freshBody) loadSection(shown);
  }
}

sectionsOf(document).forEach(watchSection);
openSection();
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
// On a phone the list of subagents would fill the first screen.
const overview = /** @type {HTMLDetailsElement | null} */ (document.querySelector("#subagents"));
if (overview && matchMedia("(max-width: 40rem)").matches) overview.open = false;
let promptFrame = 0;
if (contents) {
  for (const name of ["scroll", "entry"]) {
    addEventListener(name, () => {
      cancelAnimationFrame(promptFrame);
      promptFrame = requestAnimationFrame(markPrompt);
    }, { passive: true });
  }
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

/** Sorts the list of subagents. Only in the order of their starts are nested ones below those that started them. */
document.addEventListener("change", (event) => {
  const choice = /** @type {HTMLSelectElement | null} */ (/** @type {Element} */ (event.target).closest(".runs-order"));
  const list = choice?.closest(".subagent-overview")?.querySelector(".runs");
  if (!choice || !list) return;
  const column = Number(choice.value);
  const rows = [...list.querySelectorAll("li[data-sums]")].map((row) => /** @type {HTMLElement} */ (row));
  const amount = (/** @type {HTMLElement} */ row) => Number(row.dataset.sums?.split(" ")[column]);
  rows.sort((a, b) => (column ? amount(b) - amount(a) : amount(a) - amount(b)));
  list.classList.toggle("flat", column > 0);
  list.append(...rows);
});
