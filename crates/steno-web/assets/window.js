// @ts-check
// A long session: only what is near the screen is on the page, the rest is asked for as it comes into sight.
import { watchCode } from "./highlight.js";
import { listen } from "./live.js";
import { link, numberAt, numberOf, placeOf, reorder } from "./places.js";
import { current, goTo, keys, refold } from "./reader.js";

const main = /** @type {HTMLElement | null} */ (document.querySelector("main[data-session]"));
const base = main?.dataset.session ?? "";
const size = Number(main?.dataset.chunk ?? 1);
let count = Number(main?.dataset.entries ?? 0);

/** @returns {HTMLElement[]} */
const chunks = () => [...document.querySelectorAll("#entries > .chunk")].map((chunk) => /** @type {HTMLElement} */ (chunk));

/** What is being asked for. @type {Map<HTMLElement, Promise<void>>} */
const asked = new Map();

/** Fills a chunk, unless it is or is being filled. @param {HTMLElement} chunk */
function fill(chunk) {
  if (chunk.childElementCount) return Promise.resolve();
  const known = asked.get(chunk);
  if (known) return known;
  const load = async () => {
    const answer = await fetch(`${base}/part?from=${chunk.dataset.from}&count=${chunk.dataset.count}`);
    if (answer.ok) {
      chunk.innerHTML = await answer.text();
      chunk.style.height = "";
      link(document);
      refold(chunk);
      watchCode(chunk);
    }
    asked.delete(chunk);
  };
  const loading = load();
  asked.set(chunk, loading);
  return loading;
}

/** Leaves only the height of a chunk. @param {HTMLElement} chunk */
function empty(chunk) {
  if (!chunk.childElementCount || chunk.querySelector("li.at")) return;
  chunk.style.height = `${chunk.offsetHeight}px`;
  chunk.replaceChildren();
}

const near = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) if (isIntersecting) fill(/** @type {HTMLElement} */ (target));
}, { rootMargin: "1200px" });
const far = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) if (!isIntersecting) empty(/** @type {HTMLElement} */ (target));
}, { rootMargin: "8000px" });

/** @param {HTMLElement} chunk */
function watch(chunk) {
  if (!chunk.childElementCount) chunk.style.height = `${chunk.dataset.height ?? size * 40}px`;
  near.observe(chunk);
  far.observe(chunk);
}

/** The entry that was asked for last: of several that come late, it is the one to be shown. */
let wanted = -1;

/** Shows an entry, wherever it is. @param {number} number @param {boolean} unfold */
export async function show(number, unfold = true) {
  wanted = number;
  const place = placeOf(number);
  const chunk = chunks().find((chunk) => place < Number(chunk.dataset.from) + Number(chunk.dataset.count));
  if (!chunk) return;
  if (!chunk.childElementCount) {
    chunk.scrollIntoView();
    await fill(chunk);
  }
  if (wanted !== number) return;
  const entry = document.getElementById(`e${number}`);
  const fold = entry?.querySelector("details");
  if (fold && unfold) fold.open = true;
  goTo(entry);
  // What comes in above moves it once more.
  requestAnimationFrame(() => wanted === number && goTo(entry));
}

/** The number of the entry that the reader is at, or is on the way to. */
const here = () => (wanted >= 0 ? wanted : numberOf(current()));

/** Goes to the next or last entry. @param {number} step */
function move(step) {
  const place = placeOf(here()) + step;
  if (wanted < 0) show(here(), false);
  else if (place >= 0 && place < count) show(numberAt(place), false);
}

/** Goes to the next or last entry of a sort, wherever it is. @param {string} sort @param {boolean} back */
async function jump(sort, back) {
  const answer = await fetch(`${base}/step?from=${here()}&of=${sort}&back=${back}`);
  const number = await answer.json();
  if (number !== null) show(number, sort === "error");
}

function follow() {
  const number = /^#e(\d+)$/.exec(location.hash)?.[1];
  if (number) show(Number(number));
}

/** Fills all that is filled once more: entries stand elsewhere now. */
function refill() {
  for (const chunk of chunks().filter((chunk) => chunk.childElementCount)) {
    chunk.style.height = `${chunk.offsetHeight}px`;
    chunk.replaceChildren();
    fill(chunk);
  }
}

/** Takes in what was said meanwhile. @param {number} entries @param {string} runs */
async function grow(entries, runs) {
  if (reorder(runs)) refill();
  if (entries <= count) return;
  const wasAtEnd = innerHeight + scrollY > document.documentElement.scrollHeight - 200;
  const last = chunks().at(-1);
  if (last && Number(last.dataset.count) < size) {
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
  const fresh = /** @type {HTMLElement | null} */ (document.querySelector("#fresh"));
  if (wasAtEnd) show(numberAt(count - 1));
  else if (fresh) fresh.hidden = false;
}

/** Shows the notes that the entries of a chunk have now; all else stays as it is. @param {HTMLElement} chunk */
async function renote(chunk) {
  const answer = await fetch(`${base}/part?from=${chunk.dataset.from}&count=${chunk.dataset.count}`);
  const fresh = document.createElement("template");
  fresh.innerHTML = await answer.text();
  for (const entry of chunk.querySelectorAll(":scope > li[id]")) {
    entry.querySelectorAll(":scope > .note").forEach((note) => note.remove());
    entry.append(...(fresh.content.getElementById(entry.id)?.querySelectorAll(":scope > .note") ?? []));
  }
}

/** Shows the notes that there are now. */
export async function renoteAll() {
  const answer = await fetch(`${base}/notes`);
  const notes = await answer.text();
  // Looked up only now: another call may have replaced it meanwhile.
  const shown = document.querySelector("#notes");
  if (shown && answer.ok) shown.outerHTML = notes;
  await Promise.all(chunks().filter((chunk) => chunk.childElementCount).map(renote));
}

/** Asks the server where words stand. @param {HTMLInputElement} box */
function findAll(box) {
  let found = /** @type {number[]} */ ([]);
  let at = -1;
  let timer = 0;
  const told = document.querySelector("#found");
  /** @param {number} step */
  const next = (step) => {
    if (found.length) at = (at + step + found.length) % found.length;
    if (told) told.textContent = box.value.trim() ? `${found.length ? at + 1 : 0} of ${found.length}` : "";
    if (found.length) show(found[at]);
  };
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(async () => {
      const words = box.value;
      const answer = await fetch(`${base}/find?q=${encodeURIComponent(words)}`);
      const places = await answer.json();
      if (words !== box.value) return;
      found = places;
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
  const [, , agent, id] = base.split("/");
  listen(`/events?agent=${agent}&id=${id}`, {
    entries: (told) => {
      const [count, ...runs] = told.split(" ");
      grow(Number(count), runs.join(" "));
    },
    notes: renoteAll,
  });
  document.querySelector("#fresh")?.addEventListener("click", (event) => {
    /** @type {HTMLElement} */ (event.currentTarget).hidden = true;
    show(numberAt(count - 1));
  });
  const box = /** @type {HTMLInputElement | null} */ (document.querySelector("#find[data-server]"));
  if (box) findAll(box);
  keys.j = () => move(1);
  keys.k = () => move(-1);
  keys.n = () => jump("prompt", false);
  keys.p = () => jump("prompt", true);
  keys.x = () => jump("error", false);
  keys.X = () => jump("error", true);
  keys.G = () => show(numberAt(count - 1), false);
  keys.gg = () => show(numberAt(0), false);
  addEventListener("hashchange", follow);
  follow();
}
