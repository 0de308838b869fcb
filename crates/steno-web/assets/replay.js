// @ts-check
// Replays a session over time: its entries and file changes up to a moment.
import { watchCode } from "./highlight.js";
import { link, numberAt, placeOf } from "./places.js";
import { keys } from "./reader.js";

/** How many entries before the moment are shown. */
const SHOWN = 30;

/** The longest pause, in milliseconds. */
const MAX_PAUSE = 5000;

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
  let requested = -1;

  /** Shows the last requested moment. Moments that were requested meanwhile are skipped. */
  async function draw() {
    if (busy) return;
    busy = true;
    for (let at = -1; at !== requested; ) {
      at = requested;
      const from = Math.max(0, at - SHOWN + 1);
      const [entries, changes] = await Promise.all([
        fetch(`${base}/part?from=${from}&count=${at - from + 1}`).then((response) => response.text()),
        fetch(`${base}/files?at=${at}`).then((response) => response.text()),
      ]);
      stage.innerHTML = entries;
      link(document);
      files.innerHTML = changes;
      watchCode(stage);
      stage.lastElementChild?.scrollIntoView({ block: "end" });
    }
    busy = false;
  }

  /** @param {number} at */
  function goTo(at) {
    requested = Math.max(0, Math.min(at, times.length - 1));
    scrub.value = String(requested);
    const time = times[requested] ? new Date(times[requested]).toLocaleTimeString("en-GB") : "";
    part("moment").textContent = `Entry ${(requested + 1).toLocaleString("en-US")} of ${times.length.toLocaleString("en-US")}${time && ` · ${time}`}`;
    draw();
  }

  function stop() {
    clearTimeout(timer);
    timer = 0;
    play.textContent = "Play";
  }

  function step() {
    if (requested >= times.length - 1) return stop();
    const gap = times[requested] && times[requested + 1] ? times[requested + 1] - times[requested] : 500;
    const wait = Math.max(40, Math.min(Math.max(gap, 0), MAX_PAUSE) / Number(speed.value));
    timer = window.setTimeout(() => {
      goTo(requested + 1);
      step();
    }, wait);
  }

  play.addEventListener("click", () => {
    if (timer) return stop();
    if (requested >= times.length - 1) goTo(0);
    play.textContent = "Pause";
    step();
  });
  /** @param {number} change */
  const go = (change) => {
    stop();
    goTo(requested + change);
  };
  part("step-back").addEventListener("click", () => go(-1));
  part("step-on").addEventListener("click", () => go(1));
  scrub.addEventListener("input", () => goTo(Number(scrub.value)));
  /** Goes to the next or previous prompt or error. @param {string} kind @param {boolean} back */
  async function jump(kind, back) {
    stop();
    const response = await fetch(`${base}/step?from=${numberAt(requested)}&of=${kind}&back=${back}`);
    const number = await response.json();
    if (number !== null) goTo(placeOf(number));
  }
  keys.ArrowLeft = keys.k = () => go(-1);
  keys.ArrowRight = keys.j = () => go(1);
  keys.n = () => jump("prompt", false);
  keys.p = () => jump("prompt", true);
  keys.x = () => jump("error", false);
  keys.X = () => jump("error", true);
  keys.Home = keys.gg = () => go(-requested);
  keys.End = keys.G = () => go(times.length);
  addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.ctrlKey || event.metaKey || event.altKey || target.closest("select, dialog, input, button, summary")) return;
    if (event.key !== " ") return;
    play.click();
    event.preventDefault();
  });
  goTo(placeOf(Number(/^#e(\d+)$/.exec(location.hash)?.[1] ?? 0)));
}

const place = /** @type {HTMLElement | null} */ (document.querySelector("main[data-replay]"));
if (place?.dataset.replay && Number(place.dataset.entries)) replay(place.dataset.replay);
