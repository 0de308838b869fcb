// @ts-check
// The list of sessions: filter as one types, keys, live updates with badges, and the calendar.
import { listen } from "./live.js";
import { keys } from "./reader.js";

const list = /** @type {HTMLElement | null} */ (document.querySelector("#sessions"));

/** How many entries each session had when the page was opened. @type {Map<string, number>} */
const seen = new Map();

/** @returns {HTMLElement[]} */
const rows = () => [...document.querySelectorAll("#sessions a.row")].map((row) => /** @type {HTMLElement} */ (row));
const filterBox = () => /** @type {HTMLInputElement | null} */ (document.querySelector("#filter[data-server]"));

/** Marks sessions that have new entries. */
function markNew() {
  for (const row of rows()) {
    const [name, entries] = [row.getAttribute("href") ?? "", Number(row.dataset.entries)];
    const before = seen.get(name);
    if (before === undefined) seen.set(name, entries);
    const fresh = before === undefined ? 0 : entries - before;
    if (fresh <= 0) continue;
    const badge = document.createElement("span");
    badge.className = "agent fresh-count";
    badge.textContent = `+${fresh} new`;
    badge.title = "Entries since you opened this page";
    row.querySelector(".title")?.append(badge);
  }
}

/** Whether the overview was open before a list without sessions, which has none. @type {boolean | undefined} */
let wasOpen;

/** The state of the list that a reload keeps. */
function readState() {
  const box = filterBox();
  return {
    at: document.querySelector("a.row.at")?.getAttribute("href"),
    isOpen: /** @type {HTMLDetailsElement | null} */ (document.querySelector("#overview"))?.open ?? wasOpen,
    typed: box?.value ?? "",
    caret: document.activeElement === box ? box?.selectionStart ?? 0 : null,
  };
}

/** Keeps the typed text in the address, for a reload, a link and the way back. Returns the query. */
function keepFilter() {
  const query = new URLSearchParams(location.search);
  const typed = filterBox()?.value ?? "";
  if (typed) query.set("filter", typed);
  else query.delete("filter");
  const address = query.size ? `/?${query}` : "/";
  if (address !== location.pathname + location.search) history.replaceState(history.state, "", address);
  return query;
}

let lastRequest = 0;
/** Reloads the list. A response to an older request is dropped. */
async function reloadList() {
  if (!list) return;
  const request = ++lastRequest;
  const response = await fetch(`/sessions?${keepFilter()}`);
  const text = await response.text();
  if (request !== lastRequest || !response.ok) return;
  const state = readState();
  list.innerHTML = text;
  restore(state);
}

/** @param {ReturnType<typeof readState>} state */
function restore(state) {
  const box = filterBox();
  if (box) {
    box.value = state.typed;
    if (state.caret !== null) {
      box.focus();
      box.setSelectionRange(state.caret, state.caret);
    }
  }
  const overview = /** @type {HTMLDetailsElement | null} */ (document.querySelector("#overview"));
  wasOpen = state.isOpen;
  if (overview && wasOpen !== undefined) overview.open = wasOpen;
  rows().find((row) => row.getAttribute("href") === state.at)?.classList.add("at");
  markNew();
}

/** Marks a row as the current one. @param {HTMLElement | undefined} row */
function goTo(row) {
  if (!row) return;
  rows().forEach((other) => other.classList.toggle("at", other === row));
  row.focus({ preventScroll: true });
  row.scrollIntoView({ block: "nearest" });
}

/** @param {number} step */
function move(step) {
  const all = rows();
  const at = all.findIndex((row) => row.classList.contains("at"));
  goTo(all[at < 0 ? 0 : Math.max(0, Math.min(at + step, all.length - 1))]);
}

/** The calendar under the pointer. @param {Event} event */
const calendarAt = (event) => /** @type {SVGSVGElement | null} */ (/** @type {Element} */ (event.target).closest("#calendar"));

/** The day under the pointer, and its sessions. @param {MouseEvent} event */
function dayAt(event) {
  const calendar = calendarAt(event);
  if (!calendar) return null;
  // A narrow screen shows only the last months, so positions are taken from the drawing itself.
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(calendar.getScreenCTM()?.inverse());
  const week = Math.floor((at.x - 30) / 15);
  const weekday = Math.floor((at.y - 16) / 15);
  const count = (calendar.dataset.counts ?? "").split(",")[week * 7 + weekday];
  if (week < 0 || weekday < 0 || weekday > 6 || count === undefined) return null;
  const day = new Date(`${calendar.dataset.first}T00:00:00Z`);
  day.setUTCDate(day.getUTCDate() + week * 7 + weekday);
  return { day: day.toISOString().slice(0, 10), count: Number(count) };
}

/** @param {MouseEvent} event */
function showDay(event) {
  const calendar = calendarAt(event);
  if (!calendar) return;
  const found = dayAt(event);
  const name = found ? `${found.day}: ${found.count} session${found.count === 1 ? "" : "s"} last active` : "";
  const title = calendar.querySelector("title") ?? document.createElementNS("http://www.w3.org/2000/svg", "title");
  if (!title.parentNode) calendar.prepend(title);
  if (title.textContent !== name) title.textContent = name;
}

/** @param {MouseEvent} event */
function openDay(event) {
  const found = dayAt(event);
  if (!found) return;
  const query = new URLSearchParams(location.search);
  query.set("since", found.day);
  query.set("until", found.day);
  location.search = query.toString();
}

const FOLD = "overview";
/** @param {string} value */
function keepFold(value) {
  try {
    localStorage.setItem(FOLD, value);
  } catch {
    // Without storage the overview is as the server sends it.
  }
}

if (list) {
  let timer = 0;
  list.addEventListener("input", (event) => {
    if (event.target !== filterBox()) return;
    keepFilter();
    clearTimeout(timer);
    timer = window.setTimeout(reloadList, 80);
  });
  list.addEventListener("toggle", (event) => {
    const overview = /** @type {HTMLDetailsElement} */ (event.target);
    if (overview.id === "overview") keepFold(overview.open ? "open" : "folded");
  }, true);
  list.addEventListener("click", (event) => {
    const button = /** @type {Element} */ (event.target).closest("#facets-open");
    if (button) button.setAttribute("aria-expanded", String(list.classList.toggle("with-facets")));
  });
  list.addEventListener("mousemove", showDay);
  list.addEventListener("click", openDay);
  try {
    const overview = /** @type {HTMLDetailsElement | null} */ (document.querySelector("#overview"));
    const fold = localStorage.getItem(FOLD);
    if (overview && fold) overview.open = fold === "open";
  } catch {
    // The overview stays as it is.
  }
  keys.j = () => move(1);
  keys.k = () => move(-1);
  keys.gg = () => goTo(rows()[0]);
  keys.G = () => goTo(rows().at(-1));
  /** The headings that sort. @returns {HTMLElement[]} */
  const sorts = () => [...document.querySelectorAll(".columns-head a")].map((one) => /** @type {HTMLElement} */ (one));
  const sorted = () => sorts().findIndex((one) => one.hasAttribute("aria-current"));
  keys.t = () => sorts()[(sorted() + 1) % sorts().length]?.click();
  keys.T = () => sorts()[sorted()]?.click();
  keys.Enter = keys.o = () => /** @type {HTMLElement | null} */ (document.querySelector("a.row.at"))?.click();
  markNew();
  listen(`/events?since=${encodeURIComponent(list.dataset.state ?? "")}`, { sessions: reloadList });
}
