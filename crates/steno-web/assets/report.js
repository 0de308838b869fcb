// @ts-check
// Reports: bars that lead somewhere, and reports that are not complete at first, whose rest is requested.

/** How long to wait before a request that failed is repeated, in milliseconds. */
const RETRY_DELAY = 3000;

async function finishReport() {
  while (document.querySelector("[data-unfinished]")) {
    const response = await fetch(location.href).catch(() => null);
    if (!response?.ok) {
      await new Promise((wake) => setTimeout(wake, RETRY_DELAY));
      continue;
    }
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const [shown, fresh] = [document.querySelector("main"), page.querySelector("main")];
    if (!shown || !fresh) return;
    shown.replaceWith(fresh);
  }
}

/** A part of a chart with an explanation. @param {Event} event @returns {SVGElement | null} */
const markOf = (event) => /** @type {Element} */ (event.target).closest(".chart rect:is(.column, [class^=shade])");

/** @param {SVGElement} mark */
function textOf(mark) {
  const title = mark.querySelector("title");
  // The browser would show it a second time.
  if (title) mark.dataset.tip = title.textContent ?? "";
  title?.remove();
  return mark.dataset.tip ?? "";
}

function hideTip() {
  document.querySelector("#tip")?.remove();
  document.querySelector(".chart .shown")?.classList.remove("shown");
}

/** Explains an element at once, above it. @param {Element} mark @param {string} text @param {string | undefined} link */
function showTip(mark, text, link) {
  hideTip();
  if (!text) return;
  const tip = Object.assign(document.createElement("div"), { id: "tip", textContent: text });
  if (link) tip.append(Object.assign(document.createElement("a"), { href: link, textContent: "Open" }));
  tip.classList.toggle("touched", Boolean(link));
  tip.classList.toggle("named", mark.matches("rect"));
  mark.classList.add("shown");
  document.body.append(tip);
  const at = mark.getBoundingClientRect();
  // A column is explained at the top of its chart, a cell above itself.
  const top = Math.max(at.top, 60) - tip.offsetHeight - 6;
  const left = Math.max(4, Math.min(at.left + at.width / 2 - tip.offsetWidth / 2, document.documentElement.clientWidth - tip.offsetWidth - 4));
  tip.style.left = `${left + scrollX}px`;
  tip.style.top = `${(top < 4 ? at.bottom + 6 : top) + scrollY}px`;
}

document.addEventListener("pointerover", (event) => {
  const mark = markOf(event);
  if (event.pointerType !== "mouse") return;
  if (mark) showTip(mark, textOf(mark), undefined);
  else hideTip();
});
document.addEventListener("click", (event) => {
  const mark = markOf(event);
  const isTouch = /** @type {PointerEvent} */ (event).pointerType === "touch";
  if (mark && isTouch) return showTip(mark, textOf(mark), mark.dataset.href);
  if (mark?.dataset.href) location.href = mark.dataset.href;
  // A touch has no pointer that could rest on a number.
  const number = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest(".figures li, th[title], td[title], .budgets li, h2[title]"));
  if (isTouch && number && !/** @type {Element} */ (event.target).closest("a")) showTip(number, number.title, undefined);
  else hideTip();
});
addEventListener("keydown", (event) => event.key === "Escape" && hideTip());
document.addEventListener("click", (event) => {
  const button = /** @type {Element} */ (event.target).closest(".fold-filters");
  button?.setAttribute("aria-expanded", String(button.parentElement?.classList.toggle("with-filters")));
});
/** On a narrow screen, tabs are one line that scrolls. */
for (const tab of document.querySelectorAll(".tabs [aria-current]")) {
  const [line, link] = [/** @type {HTMLElement} */ (tab.parentElement), /** @type {HTMLElement} */ (tab)];
  line.scrollLeft = link.offsetLeft - line.offsetLeft - 40;
}
finishReport();
