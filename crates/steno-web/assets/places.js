// @ts-check
// The display order of entries. Entries of a subagent follow the call that started it, so places and numbers differ.

/** All entries that are on the page. */
export const ENTRY = ".entries > li[id]";

/** The first place, the first number and the length of each run of entries. @type {{place: number, number: number, length: number}[]} */
let runs = [];
let runsText = "";
reorder(document.querySelector("main")?.dataset.runs ?? "");

/** Sets a new order; returns whether it differs. @param {string} text */
export function reorder(text) {
  if (text === runsText) return false;
  const numbers = text.split(" ").filter(Boolean).map(Number);
  runs = [];
  for (let at = 0, place = 0; at < numbers.length; place += numbers[at + 1], at += 2) {
    runs.push({ place, number: numbers[at], length: numbers[at + 1] });
  }
  runsText = text;
  return true;
}

/** The number of the entry at a place. @param {number} place */
export function numberAt(place) {
  let [low, high] = [0, runs.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (runs[middle].place + runs[middle].length <= place) low = middle + 1;
    else high = middle;
  }
  const run = runs[low];
  return run ? run.number + place - run.place : place;
}

/** The place of the entry with a number. @param {number} number */
export function placeOf(number) {
  const run = runs.find((run) => number >= run.number && number < run.number + run.length);
  return run ? run.place + number - run.number : number;
}

/** The number of an entry. @param {Element | null | undefined} entry */
export const numberOf = (entry) => Number(entry?.id.slice(1) ?? 0);

/** Adds the time to an entry of an exported file that has none because the one above has the same. @param {Element} entry @param {string} above */
function addTime(entry, above) {
  const known = entry.querySelector(":scope > a:first-child:not([href])");
  if (known || !above) return known;
  const time = document.createElement("a");
  time.textContent = above;
  entry.prepend(time);
  return time;
}

/** Numbers the entries of an exported file, adds the class of answers, times and their dates, and links times to their entries. @param {ParentNode} root */
export function link(root) {
  const isExported = document.querySelector(".entries.part");
  let place = 0;
  let day = "";
  let last = "";
  for (const entry of root.querySelectorAll(".entries > li:not(.lane-name, .turn, .fork, .notices)")) {
    if (entry.matches(".day")) {
      day = entry.textContent ?? "";
      continue;
    }
    entry.id ||= `e${numberAt(place++)}`;
    entry.className ||= "said";
    if (!isExported || entry.querySelector(":scope > a[href^='#e']:first-child")) continue;
    const time = /** @type {HTMLElement | null} */ (addTime(entry, last));
    last = time?.textContent || last;
    if (time?.textContent) time.title = `${day}, ${time.textContent}`;
  }
  for (const time of root.querySelectorAll("li[id] > a:first-child:not(:empty)")) {
    /** @type {HTMLAnchorElement} */ (time).href = `#${time.parentElement?.id}`;
  }
}
