// @ts-check
// Plays a session as it happened: what was said up to a moment, and what files had become.
import { watchCode } from "./highlight.js";
import { link, placeOf } from "./places.js";

/** How many entries before the moment are shown. */
const SHOWN = 30;

/** The longest pause, in milliseconds, however long people were away. */
const LONGEST = 5000;

/** @template {HTMLElement} T @param {string} id @returns {T} */
const part = (id) => /** @type {T} */ (document.getElementById(id));

/** @param {string} base */
function replay(base) {
  const stage = part("stage");
  const files = part("files");
  const play = part("play");
  const scrub = /** @type {HTMLInputElement} */ (part("scrub"));
  const speed = /** @type {HTMLSelectElement} */ (part("speed"));
  const times = /** @type {number[]} */ (JSON.parse(part("times").textContent ?? "[]"));
  let timer = 0;
  let busy = false;
  let wanted = -1;

  /** Shows the moment that is wanted last; those that came meanwhile are passed over. */
  async function draw() {
    if (busy) return;
    busy = true;
    for (let at = -1; at !== wanted; ) {
      at = wanted;
      const from = Math.max(0, at - SHOWN + 1);
      const [said, changed] = await Promise.all([
        fetch(`${base}/part?from=${from}&count=${at - from + 1}`).then((answer) => answer.text()),
        fetch(`${base}/files?at=${at}`).then((answer) => answer.text()),
      ]);
      stage.innerHTML = said;
      link(document);
      files.innerHTML = changed;
      watchCode(stage);
      stage.lastElementChild?.scrollIntoView({ block: "end" });
    }
    busy = false;
  }

  /** @param {number} at */
  function goTo(at) {
    wanted = Math.max(0, Math.min(at, times.length - 1));
    scrub.value = String(wanted);
    const time = times[wanted] ? new Date(times[wanted]).toLocaleTimeString() : "";
    part("moment").textContent = `${wanted + 1} of ${times.length}  ${time}`;
    draw();
  }

  function stop() {
    clearTimeout(timer);
    timer = 0;
    play.textContent = "Play";
  }

  function step() {
    if (wanted >= times.length - 1) return stop();
    const gap = times[wanted] && times[wanted + 1] ? times[wanted + 1] - times[wanted] : 500;
    const wait = Math.max(40, Math.min(Math.max(gap, 0), LONGEST) / Number(speed.value));
    timer = window.setTimeout(() => {
      goTo(wanted + 1);
      step();
    }, wait);
  }

  play.addEventListener("click", () => {
    if (timer) return stop();
    if (wanted >= times.length - 1) goTo(0);
    play.textContent = "Pause";
    step();
  });
  scrub.addEventListener("input", () => goTo(Number(scrub.value)));
  addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.key !== " " || target.closest("button, select, summary, input:not([type=range])")) return;
    event.preventDefault();
    play.click();
  });
  goTo(placeOf(Number(/^#e(\d+)$/.exec(location.hash)?.[1] ?? 0)));
}

const place = /** @type {HTMLElement | null} */ (document.querySelector("main[data-replay]"));
if (place?.dataset.replay) replay(place.dataset.replay);
