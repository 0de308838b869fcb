// @ts-check
// Finds text on the page and filters the list of sessions, without a server.
import { ENTRY } from "./places.js";
import { setMarks } from "./marks.js";
import { goTo } from "./reader.js";

/** @param {string} text */
const plain = (text) => text.toLowerCase().replace(/\s+/g, " ");

/** The entries that contain a text. @param {string} words */
function entriesWith(words) {
  const wanted = plain(words.trim());
  if (!wanted) return [];
  return [...document.querySelectorAll(ENTRY)].filter((entry) => plain(entry.textContent ?? "").includes(wanted));
}

/** @param {HTMLInputElement} box */
function findHere(box) {
  let found = /** @type {Element[]} */ ([]);
  let at = -1;
  const counter = document.querySelector("#found");
  const showCount = () => counter && (counter.textContent = box.value.trim() ? `${found.length ? at + 1 : 0} of ${found.length}` : "");
  /** @param {number} step */
  const next = (step) => {
    if (!found.length) return;
    at = (at + step + found.length) % found.length;
    const entry = found[at];
    const fold = entry.querySelector("details");
    if (fold) fold.open = true;
    goTo(entry);
    showCount();
  };
  let timer = 0;
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      found = entriesWith(box.value);
      setMarks([box.value]);
      at = -1;
      next(1);
      showCount();
    }, 120);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    next(event.shiftKey ? -1 : 1);
  });
}

const findBox = /** @type {HTMLInputElement | null} */ (document.querySelector("#find:not([data-server])"));
if (findBox) findHere(findBox);

const filterBox = /** @type {HTMLInputElement | null} */ (document.querySelector("#filter:not([data-server])"));
filterBox?.addEventListener("input", () => {
  const words = plain(filterBox.value).split(" ").filter(Boolean);
  for (const row of document.querySelectorAll(".rows > li")) {
    const text = plain(row.textContent ?? "");
    /** @type {HTMLElement} */ (row).hidden = !words.every((word) => text.includes(word));
  }
});
