// @ts-check
// The page's own part: filters as one types, lists that follow what agents do, and one session to go on with.
import { listen } from "./live.js";
import "./reader.js";
import "./find.js";
import "./window.js";
import "./notes.js";
import "./replay.js";

const filter = /** @type {HTMLInputElement | null} */ (document.querySelector("#filter[data-server]"));
const list = document.querySelector("#sessions");
let ticket = 0;

/** Lists the sessions again; an answer that came too late is dropped. */
async function relist() {
  if (!filter || !list) return;
  const mine = ++ticket;
  const answer = await fetch(`/sessions?filter=${encodeURIComponent(filter.value)}`);
  const text = await answer.text();
  if (mine === ticket && answer.ok) list.innerHTML = text;
}

let pause = 0;
filter?.addEventListener("input", () => {
  clearTimeout(pause);
  pause = window.setTimeout(relist, 80);
});
if (list) listen("/events", { sessions: relist });

const resume = /** @type {HTMLElement | null} */ (document.querySelector("#resume"));
resume?.addEventListener("click", async () => {
  const answer = await fetch(resume.dataset.resume ?? "", { method: "POST" });
  const told = await answer.json();
  const shown = document.querySelector("#resumed");
  if (!shown) return;
  const code = document.createElement("code");
  code.textContent = told.command ?? told.error;
  shown.replaceChildren(code);
});
