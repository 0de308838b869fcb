// @ts-check
// Adds notes in a dialog, and removes them with a button, where the server allows changes.
import { ENTRY, numberOf } from "./places.js";
import { entryTools, makeButton } from "./entrytools.js";
import { keys } from "./reader.js";
import { renoteAll } from "./window.js";

const dialog = /** @type {HTMLDialogElement | null} */ (document.querySelector("#note"));

/** Sends a change to the API; throws the reason if it fails. @param {string} address @param {RequestInit} request */
async function change(address, request) {
  const response = await fetch(address, { headers: { "Content-Type": "application/json" }, ...request });
  if (response.ok) return renoteAll();
  throw new Error((await response.json().catch(() => null))?.error ?? response.statusText);
}

/** @param {HTMLDialogElement} dialog @param {HTMLFormElement} form */
function notes(dialog, form) {
  const text = /** @type {HTMLTextAreaElement} */ (form.elements.namedItem("text"));
  const errorText = /** @type {HTMLElement} */ (form.querySelector("[role=alert]"));
  const address = form.dataset.notes ?? "";
  let about = /** @type {Element | null} */ (null);

  /** @param {Element | null} entry */
  function open(entry) {
    about = entry;
    const title = form.querySelector("h2");
    if (title) title.textContent = entry ? `Note on entry ${numberOf(entry)}` : "Note on this session";
    errorText.hidden = true;
    dialog.showModal();
    text.focus();
  }

  form.addEventListener("submit", async (event) => {
    if (/** @type {HTMLButtonElement} */ (event.submitter)?.value !== "save") return;
    event.preventDefault();
    const note = { text: text.value, entry: about ? numberOf(about) : null };
    try {
      await change(address, { method: "POST", body: JSON.stringify(note) });
      form.reset();
      dialog.close();
    } catch (error) {
      errorText.textContent = String(error);
      errorText.hidden = false;
    }
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  document.querySelector("#annotate")?.addEventListener("click", () => open(null));
  keys.a = () => open(document.querySelector("li.at"));

  const begin = makeButton("Add a note to this entry (a)", "Note");
  entryTools.append(begin);
  begin.addEventListener("click", () => open(begin.closest(ENTRY)));
  const remove = makeButton("Remove this note", "×");
  remove.addEventListener("click", () => {
    const note = /** @type {HTMLElement | null} */ (remove.closest(".note"));
    change(`${address}/${note?.dataset.note}`, { method: "DELETE" }).catch((error) => note?.append(String(error)));
  });
  // The button moves to the note under the pointer or focus.
  for (const name of ["pointerover", "focusin"]) {
    document.addEventListener(name, (event) => {
      const note = /** @type {Element} */ (event.target).closest(".note");
      if (note && remove.parentElement !== note) note.append(remove);
    });
  }
}

const form = dialog?.querySelector("form");
if (dialog && form) notes(dialog, form);
