// @ts-check
// Long sessions: only entries near the viewport are on the page. Others are requested when they come into view.
import { watchCode } from "./highlight.js";
import { listen } from "./live.js";
import { link, numberAt, numberOf, placeOf, reorder } from "./places.js";
import { remark, setMarks } from "./marks.js";
import { current, goTo, isShown, keys, refold, scrollToEntry } from "./reader.js";
import { updateSections } from "./sections.js";
import { isFoldedAt, isFoldedWhole, nextRun, setSubagents, startOfRun, syncFoldButtons } from "./subagents.js";

const main = /** @type {HTMLElement | null} */ (document.querySelector("main[data-session]"));
const base = main?.dataset.session ?? "";
const size = Number(main?.dataset.chunk ?? 1);
/** The place of the first entry, and the one after the last: of the session, or of a subagent that is shown alone. */
const first = Number(main?.dataset.first ?? 0);
let count = Number(main?.dataset.entries ?? 0);
const isAlone = main?.dataset.first !== undefined;
/** Whether the page contains a place. @param {number} place */
const isHere = (place) => place >= first && place < count;

/** @returns {HTMLElement[]} */
const chunks = () => [...document.querySelectorAll("#entries > .chunk")].map((chunk) => /** @type {HTMLElement} */ (chunk));

/** The chunks that are loading. @type {Map<HTMLElement, Promise<void>>} */
const loads = new Map();

/** The first entry in the viewport. @returns {Element | undefined} */
function firstInView() {
  for (const chunk of chunks()) {
    const { top, bottom } = chunk.getBoundingClientRect();
    if (top > innerHeight) return;
    const first = bottom > 0 && [...chunk.children].find((entry) => isShown(entry) && entry.getBoundingClientRect().bottom > 0);
    if (first) return first;
  }
}

/** Fills a chunk, and keeps the first entry in the viewport where it is. @param {HTMLElement} chunk @param {() => void} change */
function keepInView(chunk, change) {
  // Most browsers do this themselves for what is above the viewport, but not for what is partly in it.
  const isAbove = chunk.getBoundingClientRect().bottom <= 0;
  const entry = isAbove && CSS.supports("overflow-anchor", "auto") ? undefined : firstInView();
  const before = entry?.getBoundingClientRect().top ?? 0;
  change();
  if (entry?.isConnected) scrollBy(0, entry.getBoundingClientRect().top - before);
}

/** Loads a chunk, unless it is loaded or loading. @param {HTMLElement} chunk */
function fill(chunk) {
  if (chunk.childElementCount) return Promise.resolve();
  const known = loads.get(chunk);
  if (known) return known;
  const load = async () => {
    const response = await fetch(`${base}/part?from=${chunk.dataset.from}&count=${chunk.dataset.count}`);
    if (response.ok) {
      const entries = await response.text();
      keepInView(chunk, () => {
        chunk.innerHTML = entries;
        chunk.style.height = "";
        link(document);
        refold(chunk);
        syncFoldButtons(chunk);
      });
      watchCode(chunk);
      remark();
    }
    loads.delete(chunk);
  };
  const loading = load();
  loads.set(chunk, loading);
  return loading;
}

/** Whether all entries are kept on the page, to print them. */
let isPrinting = false;

/** Removes the entries of a chunk, and keeps its height. @param {HTMLElement} chunk */
function empty(chunk) {
  if (isPrinting || !chunk.childElementCount || chunk.querySelector("li.at")) return;
  chunk.style.height = `${chunk.offsetHeight}px`;
  chunk.replaceChildren();
}

const near = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    const chunk = /** @type {HTMLElement} */ (target);
    if (isIntersecting && !isFolded(chunk)) fill(chunk);
  }
}, { rootMargin: "1200px" });
const far = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) if (!isIntersecting) empty(/** @type {HTMLElement} */ (target));
}, { rootMargin: "8000px" });

/** Whether a folded subagent hides all entries of a chunk. @param {HTMLElement} chunk */
function isFolded(chunk) {
  const from = Number(chunk.dataset.from);
  return isFoldedWhole(from, from + Number(chunk.dataset.count));
}

/** Sets the height of a chunk that is not loaded. @param {HTMLElement} chunk */
function reserve(chunk) {
  if (chunk.childElementCount || loads.has(chunk)) return;
  chunk.style.height = isFolded(chunk) ? "0" : `${Number(chunk.dataset.height) || size * 40}px`;
}

/** Reserves room for subagents that were folded or unfolded, and loads those in view. */
function refit() {
  for (const chunk of chunks()) {
    reserve(chunk);
    near.unobserve(chunk);
    near.observe(chunk);
  }
}

/** @param {HTMLElement} chunk */
function watch(chunk) {
  reserve(chunk);
  near.observe(chunk);
  far.observe(chunk);
}

/** The longest session that is printed whole, in entries. A longer one is exported first. */
const MAX_PRINTED = 5000;

const printDialog = /** @type {HTMLDialogElement | null} */ (document.querySelector("#print-part"));

/** Loads all entries that are not folded away, and prints them. Of a longer session only a part can be printed, so it asks. */
async function printAll() {
  if (count > MAX_PRINTED) return askBeforePrint();
  isPrinting = true;
  for (const chunk of chunks().filter((chunk) => !isFolded(chunk))) await fill(chunk);
  print();
  isPrinting = false;
}

/** Says how much of a long session is printed. */
function askBeforePrint() {
  const loaded = document.querySelectorAll("#entries > .chunk > li[id]").length;
  const numbers = printDialog?.querySelectorAll("p > b") ?? [];
  [loaded, count].forEach((number, at) => numbers[at].textContent = number.toLocaleString("en-US"));
  printDialog?.showModal();
}
printDialog?.addEventListener("close", () => {
  const choice = printDialog.returnValue;
  printDialog.returnValue = "";
  if (choice === "print") print();
  if (choice === "export") document.getElementById("export-open")?.click();
});

/** The entry that was requested last. If several load late, only this one is shown. */
let requested = -1;

/** Shows an entry, and loads it first if need be. @param {number} number @param {boolean} unfold */
export async function show(number, unfold = true) {
  const place = placeOf(number);
  if (isAlone && !isHere(place)) return void (location.href = `${base}#e${number}`);
  requested = number;
  const chunk = chunks().find((chunk) => place < Number(chunk.dataset.from) + Number(chunk.dataset.count));
  if (!chunk) return;
  await fill(chunk);
  if (requested !== number) return;
  const entry = document.getElementById(`e${number}`);
  const fold = entry?.querySelector("details");
  if (fold && unfold) fold.open = true;
  goTo(entry);
  // Chunks that load above may move the entry.
  requestAnimationFrame(() => requested === number && entry && scrollToEntry(entry));
}

/** The number of the current entry, or of the requested one. */
const here = () => (requested >= 0 ? requested : numberOf(current()));

/** Whether the entry at a place is in a fold. @param {number} place */
function isHidden(place) {
  const entry = document.getElementById(`e${numberAt(place)}`);
  return isFoldedAt(place) || (entry !== null && !isShown(entry));
}

/** Goes to the next or previous entry. @param {number} step */
function move(step) {
  let place = placeOf(here()) + step;
  while (isHere(place) && isHidden(place)) place += step;
  if (requested < 0) show(here(), false);
  else if (isHere(place)) show(numberAt(place), false);
}

/** Goes to the next or previous entry of a kind, loaded or not. @param {string} kind @param {boolean} back */
async function jump(kind, back) {
  const response = await fetch(`${base}/step?from=${here()}&of=${kind}&back=${back}`);
  const number = await response.json();
  if (number !== null && isHere(placeOf(number))) show(number, kind === "error");
}

/** Goes to the heading of the next or previous subagent, without unfolding it. @param {boolean} back */
async function jumpToRun(back) {
  const focused = /** @type {HTMLElement | null} */ (document.activeElement?.closest("button[data-run]") ?? null);
  const at = nextRun(focused ? startOfRun(Number(focused.dataset.run)) : placeOf(here()), back);
  const chunk = at >= 0 && chunks().find((chunk) => startOfRun(at) < Number(chunk.dataset.from) + Number(chunk.dataset.count));
  if (!chunk) return;
  await fill(chunk);
  const button = /** @type {HTMLElement | null} */ (document.querySelector(`button[data-run="${at}"]`));
  button?.focus({ preventScroll: true });
  button?.scrollIntoView({ block: "center" });
}

function follow() {
  const number = /^#e(\d+)$/.exec(location.hash)?.[1];
  document.querySelector("#no-entry")?.remove();
  if (!number) return;
  const total = Number(main?.dataset.total ?? count);
  if (Number(number) < total) return void show(Number(number));
  const text = `There is no entry ${Number(number).toLocaleString("en-US")}: this session has ${total.toLocaleString("en-US")} entries, from 0 on.`;
  const notice = Object.assign(document.createElement("p"), { id: "no-entry", className: "stale", textContent: text });
  notice.setAttribute("role", "status");
  main?.prepend(notice);
  scrollTo(0, 0);
}

/** Loads a chunk again, if it is loaded. @param {HTMLElement} chunk */
function reload(chunk) {
  const loading = loads.get(chunk);
  if (loading) return void loading.then(() => reload(chunk));
  if (!chunk.childElementCount) return;
  chunk.style.height = `${chunk.offsetHeight}px`;
  chunk.replaceChildren();
  fill(chunk);
}

/** The versions of all chunks; empty while they are unknown. @type {string[]} */
let versions = [];

/** Loads chunks again whose entries have changed, and removes those that have none any more.
 * @param {number} entries @param {string[]} fresh @param {boolean} isMoved */
function replaceChanged(entries, fresh, isMoved) {
  // Whoever adds entries loads the last chunk again.
  const last = entries > count ? chunks().at(-1) : undefined;
  for (const [at, chunk] of chunks().entries()) {
    const from = Number(chunk.dataset.from);
    if (from >= entries) chunk.remove();
    else if (chunk !== last && (isMoved || versions[at] !== fresh[at])) {
      chunk.dataset.count = String(Math.min(Number(chunk.dataset.count), entries - from));
      reload(chunk);
    }
  }
  versions = fresh;
  count = Math.min(count, entries);
}

/** The number of entries, the versions of the chunks, the order and the subagents of a state. @param {string} state */
function parseState(state) {
  const [entries, subagents = ""] = state.split("|");
  const [number, list = "", ...order] = entries.trim().split(" ");
  return { entries: Number(number), versions: list.split(","), order: order.join(" "), subagents };
}

/** Notes the versions of the chunks of a session that is being written, so that only changed ones are loaded again. */
async function noteVersions() {
  const response = await fetch(`${base}/state`);
  if (!response.ok) return;
  const now = parseState(await response.text());
  if (now.entries === count && !versions.length) versions = now.versions;
}

/** Adds new entries and replaces changed ones. @param {string} state */
async function grow(state) {
  const fresh = /** @type {HTMLElement | null} */ (document.querySelector("#fresh"));
  // The places of a subagent may have changed, so its page is loaded again when the reader wants it.
  if (isAlone && fresh) return void (fresh.hidden = false);
  const { entries, versions: changed, order, subagents } = parseState(state);
  setSubagents(subagents);
  replaceChanged(entries, changed, reorder(order));
  if (entries <= count) return refreshHead();
  const wasAtEnd = innerHeight + scrollY > document.documentElement.scrollHeight - 200;
  const last = chunks().at(-1);
  if (last) {
    // Also a full one: the totals of the last turn are below its last entry.
    last.dataset.count = String(Math.min(size, entries - Number(last.dataset.from)));
    if (last.childElementCount) {
      last.style.height = `${last.offsetHeight}px`;
      last.replaceChildren();
    }
    await fill(last);
  }
  for (let from = chunks().length * size; from < entries; from += size) {
    const chunk = document.createElement("ol");
    chunk.className = "entries chunk";
    Object.assign(chunk.dataset, { from, count: Math.min(size, entries - from) });
    document.querySelector("#entries")?.append(chunk);
    watch(chunk);
  }
  count = entries;
  refreshHead();
  if (wasAtEnd) show(numberAt(count - 1));
  else if (fresh) fresh.hidden = false;
}

/** How long the head waits for more entries, and how often it looks whether a session still runs, in milliseconds. */
const HEAD_DELAY = 500;
const STATUS_INTERVAL = 30_000;

let headTimer = 0;
/** Updates the facts above the entries and the minimap, soon and once for several changes. */
function refreshHead() {
  if (headTimer) return;
  headTimer = window.setTimeout(async () => {
    headTimer = 0;
    const response = await fetch(`${base}/head`);
    if (!response.ok) return;
    const fresh = document.createElement("template");
    fresh.innerHTML = await response.text();
    for (const selector of ["#session-head", ".minimap"]) {
      const [shown, part] = [document.querySelector(selector), fresh.content.querySelector(selector)];
      if (!shown || !part) continue;
      // The element itself stays, because scripts listen to it.
      shown.innerHTML = part.innerHTML;
      Object.assign(/** @type {HTMLElement} */ (shown).dataset, /** @type {HTMLElement} */ (part).dataset);
    }
    updateSections(fresh.content);
  }, HEAD_DELAY);
}

/** Asks for the state of the session, after the connection was lost. */
async function catchUp() {
  const response = await fetch(`${base}/state`);
  if (!response.ok) return;
  grow(await response.text());
}

/** Updates the notes on the entries of a chunk. @param {HTMLElement} chunk */
async function renote(chunk) {
  const response = await fetch(`${base}/part?from=${chunk.dataset.from}&count=${chunk.dataset.count}`);
  const fresh = document.createElement("template");
  fresh.innerHTML = await response.text();
  for (const entry of chunk.querySelectorAll(":scope > li[id]")) {
    entry.querySelectorAll(":scope > .note").forEach((note) => note.remove());
    entry.append(...(fresh.content.getElementById(entry.id)?.querySelectorAll(":scope > .note") ?? []));
  }
}

/** Updates all notes. */
export async function renoteAll() {
  const response = await fetch(`${base}/notes`);
  const notes = await response.text();
  // Query this late: another call may have replaced the element.
  const shown = document.querySelector("#notes");
  if (shown && response.ok) shown.outerHTML = notes;
  await Promise.all(chunks().filter((chunk) => chunk.childElementCount).map(renote));
}

/** Finds text in the whole session, with the server's help. @param {HTMLInputElement} box */
function findAll(box) {
  let found = /** @type {number[]} */ ([]);
  let at = -1;
  let timer = 0;
  const counter = document.querySelector("#found");
  /** @param {number} step */
  const next = (step) => {
    if (found.length) at = (at + step + found.length) % found.length;
    if (counter) counter.textContent = box.value.trim() ? `${(found.length ? at + 1 : 0).toLocaleString("en-US")} of ${found.length.toLocaleString("en-US")}` : "";
    if (found.length) show(found[at]);
  };
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(async () => {
      const words = box.value;
      const response = await fetch(`${base}/find?q=${encodeURIComponent(words)}`);
      const numbers = await response.json();
      if (words !== box.value) return;
      setMarks([words]);
      found = numbers.filter((/** @type {number} */ number) => isHere(placeOf(number)));
      at = -1;
      next(1);
    }, 120);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    next(event.shiftKey ? -1 : 1);
  });
}

if (main) {
  chunks().forEach(watch);
  if (document.querySelector("#session-head .running")) noteVersions();
  setInterval(() => document.querySelector("#session-head .running") && refreshHead(), STATUS_INTERVAL);
  addEventListener("subagents", refit);
  const [, , agent, id] = base.split("/");
  listen(`/events?agent=${agent}&id=${id}`, {
    entries: (data) => (data ? grow(data) : catchUp()),
    notes: renoteAll,
  });
  document.querySelector("#print")?.addEventListener("click", printAll);
  addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "p" || event.shiftKey) return;
    event.preventDefault();
    printAll();
  });
  document.querySelector("#fresh")?.addEventListener("click", (event) => {
    /** @type {HTMLElement} */ (event.currentTarget).hidden = true;
    if (isAlone) return location.reload();
    show(numberAt(count - 1));
  });
  const box = /** @type {HTMLInputElement | null} */ (document.querySelector("#find[data-server]"));
  if (box) findAll(box);
  const wanted = new URLSearchParams(location.search).get("find");
  if (box && wanted) {
    box.value = wanted;
    box.dispatchEvent(new Event("input"));
  }
  keys.j = () => move(1);
  keys.k = () => move(-1);
  keys.n = () => jump("prompt", false);
  keys.p = () => jump("prompt", true);
  keys.x = () => jump("error", false);
  keys.X = () => jump("error", true);
  keys.s = () => jumpToRun(false);
  keys.S = () => jumpToRun(true);
  keys.G = () => show(numberAt(count - 1), false);
  keys.gg = () => show(numberAt(first), false);
  const back = document.getElementById("call-back");
  if (back) keys.u = () => back.click();
  addEventListener("hashchange", follow);
  follow();
}
