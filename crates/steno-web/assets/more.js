// @ts-check
// Links that show more of a list add it to the page. The address then names all that is shown, for a reload and a link.

/** Adds what a link leads to. @param {HTMLAnchorElement} link */
async function showMore(link) {
  const selector = link.dataset.more ?? "";
  const list = document.querySelector(selector);
  link.setAttribute("aria-busy", "true");
  const response = await fetch(link.href).catch(() => null);
  if (!list || !response?.ok) return void (location.href = link.href);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const items = [...page.querySelectorAll(`${selector} > li`)].slice(list.childElementCount);
  list.append(...items);
  const [count, newCount] = [document, page].map((one) => one.querySelector("p.found"));
  if (count && newCount) count.textContent = newCount.textContent;
  history.replaceState(history.state, "", link.href);
  const next = page.querySelector(`[data-more="${CSS.escape(selector)}"]`)?.parentElement;
  if (next) link.parentElement?.replaceWith(next);
  else link.parentElement?.remove();
  items[0]?.querySelector("a")?.focus({ preventScroll: true });
}

document.addEventListener("click", (event) => {
  const link = /** @type {HTMLAnchorElement | null} */ (/** @type {Element} */ (event.target).closest("a[data-more]"));
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  showMore(link);
});
