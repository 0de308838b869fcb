// @ts-check
// Shows a picture of an entry on the whole screen. A click shows the real size of a larger one; ×, Esc or a click beside
// it closes it.

/** @param {HTMLImageElement} picture */
function enlarge(picture) {
  const dialog = document.createElement("dialog");
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "×", title: "Close (Esc)" });
  const size = Object.assign(document.createElement("button"), { type: "button", textContent: "Real size" });
  const bar = document.createElement("header");
  const area = document.createElement("div");
  const large = Object.assign(new Image(), { src: picture.src, alt: "Picture in the conversation" });
  close.setAttribute("aria-label", "Close");
  dialog.className = "enlarged";
  dialog.setAttribute("aria-label", "Picture");
  area.tabIndex = 0;
  bar.append(size, close);
  area.append(large);
  dialog.append(bar, area);
  document.body.append(dialog);
  const setSize = (/** @type {boolean} */ isReal) => {
    dialog.classList.toggle("real", isReal);
    size.textContent = isReal ? "Fit the screen" : "Real size";
  };
  const measure = () => {
    setSize(false);
    size.hidden = large.naturalWidth <= large.clientWidth;
  };
  const toggle = () => {
    const isReal = dialog.classList.contains("real");
    // A click may come before the event of its loading.
    if (!isReal) measure();
    if (size.hidden) dialog.close();
    else setSize(!isReal);
  };
  large.addEventListener("load", measure);
  large.addEventListener("click", toggle);
  size.addEventListener("click", toggle);
  close.addEventListener("click", () => dialog.close());
  area.addEventListener("click", (event) => event.target === area && dialog.close());
  dialog.addEventListener("close", () => {
    dialog.remove();
    picture.focus({ preventScroll: true });
  });
  dialog.showModal();
}

for (const name of ["click", "keydown"]) {
  document.addEventListener(name, (event) => {
    const picture = /** @type {HTMLImageElement | null} */ (/** @type {Element} */ (event.target).closest("img.picture"));
    if (!picture || (event instanceof KeyboardEvent && !["Enter", " "].includes(event.key))) return;
    // Otherwise the key would fold the entry, or scroll.
    event.stopPropagation();
    event.preventDefault();
    enlarge(picture);
  });
}
