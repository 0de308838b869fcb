// @ts-check
// Keys, folds and themes for reading a session, on served pages and in exported files.
import { watchCode } from "./highlight.js";
import { ENTRY, link, numberAt, numberOf, placeOf } from "./places.js";
import { foldSubagents, unfoldAt } from "./subagents.js";

/** @param {string} selector @returns {HTMLElement | null} */
const one = (selector) => document.querySelector(selector);

/** The current entry. @returns {Element | null} */
export function current() {
  const marked = one("li.at");
  if (marked) return marked;
  return [...document.querySelectorAll(ENTRY)].find((entry) => entry.getBoundingClientRect().bottom > 120) ?? null;
}

/** Scrolls to an entry. @param {Element} entry */
export function scrollToEntry(entry) {
  entry.scrollIntoView({ block: entry.clientHeight > innerHeight * 0.7 ? "start" : "center" });
}

/** Scrolls to an entry, marks it and puts it into the address. @param {Element | null | undefined} entry */
export function goTo(entry) {
  if (!entry) return;
  unfoldAt(placeOf(numberOf(entry)));
  for (let fold = entry.parentElement?.closest("details"); fold; fold = fold.parentElement?.closest("details")) fold.open = true;
  document.querySelectorAll("li.at").forEach((old) => old.classList.remove("at"));
  entry.classList.add("at");
  scrollToEntry(entry);
  history.replaceState(history.state, "", `#${entry.id}`);
  dispatchEvent(new Event("entry"));
}

/** Whether an entry is not inside a fold. @param {Element} entry */
export const isShown = (entry) => entry.getClientRects().length > 0;

/** Goes to the next or previous entry that matches. @param {number} step @param {string} kind */
function move(step, kind = ENTRY) {
  const all = [...document.querySelectorAll(kind)];
  const here = current();
  if (!here || (kind === ENTRY && !one("li.at"))) return goTo(here);
  const order = step > 0 ? all : all.reverse();
  const wanted = step > 0 ? Node.DOCUMENT_POSITION_FOLLOWING : Node.DOCUMENT_POSITION_PRECEDING;
  goTo(order.find((entry) => here.compareDocumentPosition(entry) & wanted && isShown(entry)));
}

function toggle() {
  const fold = current()?.querySelector("details");
  if (fold) fold.open = !fold.open;
}

/** The last state that was set for all folds. Entries that load later get it too. @type {boolean | null} */
let folding = null;

/** The highest place of an entry that is not below the header. */
const HEADER = 120;

/** Folds or unfolds all, and keeps the place: the marked entry if it is in view, or else the first in view. @param {boolean} open */
export function foldAll(open) {
  const shown = [...document.querySelectorAll(ENTRY)].filter(isShown);
  const isInView = (/** @type {Element} */ entry) => {
    const { top, bottom } = entry.getBoundingClientRect();
    return bottom > HEADER && top < innerHeight;
  };
  const marked = shown.findIndex((entry) => entry.matches(".at") && isInView(entry));
  const at = marked < 0 ? shown.findIndex(isInView) : marked;
  const top = at < 0 ? 0 : Math.max(HEADER, shown[at].getBoundingClientRect().top);
  folding = open;
  refold(document);
  foldSubagents(!open);
  // An entry that is folded away leaves its place to the one before it.
  const kept = scrollY > 0 && shown.slice(0, at + 1).reverse().find(isShown);
  const keep = () => kept && scrollBy({ top: kept.getBoundingClientRect().top - top, behavior: "instant" });
  keep();
  // Heights of entries outside of the window are known only once they are drawn.
  requestAnimationFrame(keep);
}

/** Applies the last state to new entries. @param {ParentNode} root */
export function refold(root) {
  if (folding === null) return;
  for (const fold of root.querySelectorAll("li > details")) /** @type {HTMLDetailsElement} */ (fold).open = folding;
}

/** The prompts of a person, without pictures that belong to the prompt above them. */
const PROMPT = "li.user:not(.lane):not(:has(> .md > .picture:only-child))";

let waiting = "";
/** The actions of the keys. @type {Record<string, () => void>} */
export const keys = {
  j: () => move(1),
  k: () => move(-1),
  n: () => move(1, PROMPT),
  p: () => move(-1, PROMPT),
  x: () => move(1, "li.bad, li.error"),
  X: () => move(-1, "li.bad, li.error"),
  Enter: toggle,
  o: toggle,
  E: () => foldAll(true),
  C: () => foldAll(false),
  G: () => goTo([...document.querySelectorAll(ENTRY)].at(-1)),
  gg: () => goTo(one(ENTRY)),
  "/": () => (one("#find") ?? one("#filter") ?? one("#query"))?.focus(),
  "?": () => /** @type {HTMLDialogElement | null} */ (one("#keys"))?.showModal(),
};

document.querySelectorAll("#pages a").forEach((page, at) => (keys[at + 1] = () => /** @type {HTMLElement} */ (page).click()));

addEventListener("keydown", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.key === "Escape" && target.matches("input")) return target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || target.closest("input, select, textarea, dialog")) return;
  if (event.key === "Enter" && target.closest("a, button, summary")) return;
  const name = waiting + event.key;
  waiting = event.key === "g" && !waiting ? "g" : "";
  if (!keys[name]) return;
  event.preventDefault();
  keys[name]();
});

/** Unfolds the target of a link. */
function openTarget() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target || !target.matches(ENTRY)) return;
  const fold = target.querySelector("details");
  if (fold) fold.open = true;
  goTo(target);
}

/** @param {string} name @param {string} value */
function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // A file that was opened from disk may have no storage.
  }
}

const root = document.documentElement;
try {
  root.dataset.theme = localStorage.getItem("theme") ?? "";
} catch {
  root.dataset.theme = "";
}
one("#theme")?.addEventListener("click", () => {
  const isDark = getComputedStyle(root).colorScheme === "dark" ||
    (root.dataset.theme === "" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = isDark ? "light" : "dark";
  keep("theme", root.dataset.theme);
});
one("#unfold")?.addEventListener("click", () => foldAll(true));
one("#fold")?.addEventListener("click", () => foldAll(false));
one("#help")?.addEventListener("click", () => keys["?"]());
const map = one(".minimap");
map?.addEventListener("click", (event) => {
  const box = map.getBoundingClientRect();
  const span = Number(map.dataset.span);
  const place = Math.floor(((event.clientY - box.top) / box.height) * span);
  location.hash = `#e${numberAt(Math.max(0, Math.min(place, span - 1)))}`;
});
/** Marks the current position in the minimap: that of the topmost entry. There is room between entries, so several heights are tried. */
function markPlace() {
  const here = one(".minimap .here");
  let entry = null;
  for (let y = 140; !entry && y < innerHeight; y += 40) entry = document.elementFromPoint(innerWidth / 2, y)?.closest(ENTRY);
  if (!map || !here || !entry) return;
  here.style.top = `${(placeOf(numberOf(entry)) / Number(map.dataset.span)) * 100}%`;
}
for (const name of map ? ["scroll", "entry"] : []) addEventListener(name, () => requestAnimationFrame(markPlace), { passive: true });
link(document);
addEventListener("hashchange", openTarget);
openTarget();
watchCode(document);
