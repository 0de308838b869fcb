// @ts-check
// Shows a picture of an entry large, in a dialog that a click or Esc closes.

/** @param {HTMLImageElement} picture */
function enlarge(picture) {
  const dialog = document.createElement("dialog");
  const close = Object.assign(document.createElement("button"), { type: "button", textContent: "×", title: "Close (Esc)" });
  close.setAttribute("aria-label", "Close");
  dialog.className = "enlarged";
  dialog.setAttribute("aria-label", "Picture");
  dialog.append(close, Object.assign(new Image(), { src: picture.src, alt: "Picture in the conversation" }));
  document.body.append(dialog);
  dialog.addEventListener("click", () => dialog.close());
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
