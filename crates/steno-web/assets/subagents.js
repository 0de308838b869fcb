// @ts-check
// Folds the entries of subagents. The entries of run N have the class rN, whether they are on the page or not.

/** The positions of each run, whether it is folded, and the number of the call that started it. @type {{from: number, to: number, isFolded: boolean, caller?: string}[]} */
let subagentRuns = [];
const foldSheet = new CSSStyleSheet();
document.adoptedStyleSheets = [...document.adoptedStyleSheets, foldSheet];

/** Sets the runs; known ones keep their folds. @param {string} text */
export function setSubagents(text) {
  subagentRuns = text.split(",").filter(Boolean).map((run, at) => {
    const [from, to, state, caller] = run.split(" ");
    return { from: Number(from), to: Number(to), isFolded: subagentRuns[at]?.isFolded ?? state === "f", caller };
  });
  applyFolds();
}

function applyFolds() {
  foldSheet.replaceSync(subagentRuns.map((run, at) => (run.isFolded ? `.r${at} { display: none !important; }` : "")).join("\n"));
  syncFoldButtons(document);
  dispatchEvent(new Event("subagents"));
}

/** Shows the state of the folds on their buttons. @param {ParentNode} root */
export function syncFoldButtons(root) {
  for (const button of root.querySelectorAll("button[data-run]")) {
    const run = subagentRuns[Number(/** @type {HTMLElement} */ (button).dataset.run)];
    button.setAttribute("aria-expanded", String(!run?.isFolded));
  }
}

/** Whether the entry at a position is folded. @param {number} place */
export const isFoldedAt = (place) => subagentRuns.some((run) => run.isFolded && place >= run.from && place < run.to);

/** Whether a fold that begins above contains all of these positions. @param {number} from @param {number} to */
export const isFoldedWhole = (from, to) => subagentRuns.some((run) => run.isFolded && run.from < from && run.to >= to);

/** The next subagent after a position, or the one before it, whose heading is not folded away; -1 without one. @param {number} place @param {boolean} back */
export function nextRun(place, back) {
  const isShown = (/** @type {number} */ at) => !subagentRuns.some((run, other) => other !== at && run.isFolded && run.from <= subagentRuns[at].from && run.to >= subagentRuns[at].to);
  const all = subagentRuns.map((_, at) => at).filter(isShown);
  if (back) all.reverse();
  return all.find((at) => (back ? subagentRuns[at].from < place : subagentRuns[at].from > place)) ?? -1;
}

/** The first position of a subagent. @param {number} at */
export const startOfRun = (at) => subagentRuns[at].from;

/** The number of the call that started the innermost subagent at a position. @param {number} place */
export const callerAt = (place) => subagentRuns.filter((run) => place >= run.from && place < run.to).at(-1)?.caller;

/** Unfolds the entry at a position. @param {number} place */
export function unfoldAt(place) {
  if (!isFoldedAt(place)) return;
  for (const run of subagentRuns) if (place >= run.from && place < run.to) run.isFolded = false;
  applyFolds();
}

/** Folds or unfolds all subagents. @param {boolean} isFolded */
export function foldSubagents(isFolded) {
  for (const run of subagentRuns) run.isFolded = isFolded;
  applyFolds();
}

document.addEventListener("click", (event) => {
  const button = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest("button[data-run]"));
  const run = button && subagentRuns[Number(button.dataset.run)];
  if (!run) return;
  run.isFolded = !run.isFolded;
  applyFolds();
});
setSubagents(document.querySelector("main")?.dataset.subagents ?? "");
