// @ts-check
// Marks words in the entries on the page, without changing them.

/** The most marks on a page. */
const MAX_MARKS = 2000;

let markedWords = /** @type {string[]} */ ([]);
let markFrame = 0;

/** Marks these words instead of others. @param {string[]} words */
export function setMarks(words) {
  markedWords = words.map((word) => word.trim().toLowerCase()).filter(Boolean);
  remark();
}

/** Marks the words again, after entries were added. */
export function remark() {
  cancelAnimationFrame(markFrame);
  markFrame = requestAnimationFrame(markEntries);
}

function markEntries() {
  if (!("highlights" in CSS)) return;
  const ranges = /** @type {Range[]} */ ([]);
  for (const list of markedWords.length ? document.querySelectorAll("ol.entries") : []) {
    const texts = document.createTreeWalker(list, NodeFilter.SHOW_TEXT);
    while (texts.nextNode() && ranges.length < MAX_MARKS) markText(/** @type {Text} */ (texts.currentNode), ranges);
  }
  CSS.highlights.set("found", new Highlight(...ranges));
  showFirstMark(ranges);
}

/** Scrolls a long block of the entry that the address names, until its first mark is visible. @param {Range[]} ranges */
function showFirstMark(ranges) {
  const entry = document.getElementById(location.hash.slice(1));
  const first = ranges.find((range) => entry?.contains(range.startContainer));
  const block = first?.startContainer.parentElement?.closest("pre");
  if (!first || !block || block.scrollTop > 0) return;
  const below = first.getBoundingClientRect().bottom - block.getBoundingClientRect().bottom;
  if (below > 0) block.scrollTop = below + block.clientHeight / 2;
}

/** @param {Text} node @param {Range[]} ranges */
function markText(node, ranges) {
  const text = node.data.toLowerCase();
  // Some characters change their length in lower case; their offsets would be wrong.
  if (text.length !== node.data.length || node.parentElement?.closest("button")) return;
  for (const word of markedWords) {
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, at + word.length);
      ranges.push(range);
    }
  }
}

/** The words of a search query that can be marked. @param {string} query */
export function wordsOf(query) {
  const parts = [...query.matchAll(/(-?)(?:"([^"]*)"|(\S+))/g)].filter(([, minus]) => !minus);
  const words = parts.map(([, , phrase, word]) => phrase ?? word.replace(/\*$/, ""));
  return words.filter((word) => !/^(OR|AND|NOT|\/.*\/)$/.test(word));
}

// Coloured code has new text nodes, so its marks are lost.
document.addEventListener("highlighted", remark);

const searched = new URLSearchParams(location.search).get("marks");
if (searched) setMarks(wordsOf(searched));
