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

document.addEventListener("click", (event) => {
  const bar = /** @type {SVGElement | null} */ (/** @type {Element} */ (event.target).closest(".chart [data-href]"));
  if (bar) location.href = bar.dataset.href ?? "";
});
finishReport();
