// @ts-check
// Scripts of served pages: the filter of the session list, live updates, and the resume button.
import { listen } from "./live.js";
import "./reader.js";
import "./find.js";
import "./window.js";
import "./notes.js";
import "./replay.js";

const filter = /** @type {HTMLInputElement | null} */ (document.querySelector("#filter[data-server]"));
const list = document.querySelector("#sessions");
let lastRequest = 0;

/** Reloads the list of sessions. A response to an older request is dropped. */
async function reloadList() {
  if (!filter || !list) return;
  const request = ++lastRequest;
  const response = await fetch(`/sessions?filter=${encodeURIComponent(filter.value)}`);
  const text = await response.text();
  if (request === lastRequest && response.ok) list.innerHTML = text;
}

let timer = 0;
filter?.addEventListener("input", () => {
  clearTimeout(timer);
  timer = window.setTimeout(reloadList, 80);
});
if (list) listen("/events", { sessions: reloadList });

const resume = /** @type {HTMLElement | null} */ (document.querySelector("#resume"));
resume?.addEventListener("click", async () => {
  const response = await fetch(resume.dataset.resume ?? "", { method: "POST" });
  const result = await response.json();
  const shown = document.querySelector("#resumed");
  if (!shown) return;
  const code = document.createElement("code");
  code.textContent = result.command ?? result.error;
  shown.replaceChildren(code);
});
