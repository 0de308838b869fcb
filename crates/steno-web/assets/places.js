// @ts-check
// The display order of entries. Entries of a subagent follow the call that started it, so places and numbers differ.

/** All entries that are on the page. */
export const ENTRY = ".entries > li[id]";

/** The first number and the length of each run of entries. */
let runs = parseRuns(document.querySelector("main")?.dataset.runs);

/** @param {string | undefined} text */
function parseRuns(text) {
  return (text ?? "").split(" ").filter(Boolean).map(Number);
}

/** Sets a new order; returns whether it differs. @param {string} text */
export function reorder(text) {
  const before = runs.join(" ");
  runs = parseRuns(text);
  return before !== text;
}

/** The number of the entry at a place. @param {number} place */
export function numberAt(place) {
  let before = 0;
  for (let run = 0; run < runs.length; run += 2) {
    if (place < before + runs[run + 1]) return runs[run] + place - before;
    before += runs[run + 1];
  }
  return place;
}

/** The place of the entry with a number. @param {number} number */
export function placeOf(number) {
  let before = 0;
  for (let run = 0; run < runs.length; run += 2) {
    if (number >= runs[run] && number < runs[run] + runs[run + 1]) return before + number - runs[run];
    before += runs[run + 1];
  }
  return number;
}

/** The number of an entry. @param {Element | null | undefined} entry */
export const numberOf = (entry) => Number(entry?.id.slice(1) ?? 0);

/** Numbers the entries of an exported file, and links times to their entries. @param {ParentNode} root */
export function link(root) {
  let place = 0;
  for (const entry of root.querySelectorAll(".entries > li:not(.day, .lane-name)")) entry.id ||= `e${numberAt(place++)}`;
  for (const time of root.querySelectorAll("li[id] > a:first-child")) {
    /** @type {HTMLAnchorElement} */ (time).href = `#${time.parentElement?.id}`;
  }
}
