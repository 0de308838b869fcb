// @ts-check
// Scripts of served pages.
import "./zone.js";
import "./reader.js";
import "./find.js";
import "./entrytools.js";
import "./pictures.js";
import "./sections.js";
import "./palette.js";
import "./more.js";
import "./sessions.js";
import "./window.js";
import "./notes.js";
import "./replay.js";
import "./report.js";
import "./neighbours.js";

const menu = document.querySelector("#menu");
menu?.addEventListener("click", () => {
  menu.setAttribute("aria-expanded", String(menu.closest(".top")?.classList.toggle("with-menu")));
});

const resume = /** @type {HTMLElement | null} */ (document.querySelector("#resume"));
resume?.addEventListener("click", async () => {
  const response = await fetch(resume.dataset.resume ?? "", { method: "POST" });
  const result = await response.json();
  const shown = document.querySelector("#resumed");
  if (!shown) return;
  const code = document.createElement("code");
  code.textContent = result.command ?? `steno resume ${resume.dataset.resume?.split("/").at(-2)} --project DIR`;
  shown.replaceChildren(...(result.command ? [] : [`${result.error}. If the folder has moved, run this with its new place: `]), code);
});
