// @ts-check
// Moves between the sessions of the list as it was filtered, and back to the same place of the list.
import { numberOf, placeOf } from "./places.js";
import { isShown, keys } from "./reader.js";
import { callerAt } from "./subagents.js";
import { show } from "./window.js";

/** The names of what a tab remembers of the list: its filters, how far it was scrolled, and the session to return to. */
const QUERY = "list-query";
const SCROLL = "list-scroll";
const RETURN = "list-return";

/** @param {string} name */
function recall(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

/** @param {string} name @param {string} value */
function remember(name, value) {
  try {
    sessionStorage.setItem(name, value);
  } catch {
    // Without storage the links lead through the whole list.
  }
}

/** Remembers the list before it is left. */
function rememberList() {
  remember(QUERY, location.search.slice(1));
  remember(SCROLL, String(scrollY));
}

/** Shows the place of the list at which it was left. */
function returnToPlace() {
  const address = recall(RETURN);
  if (!address) return;
  remember(RETURN, "");
  scrollTo(0, Number(recall(SCROLL)));
  const row = /** @type {HTMLElement | undefined} */ ([...document.querySelectorAll("a.row")].find((row) => row.getAttribute("href") === address));
  row?.classList.add("at");
  row?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "nearest" });
}

/** Fills in a link to a neighbour. @param {string} id @param {{address: string, title: string} | null} session @param {string} name */
function setLink(id, session, name) {
  const link = /** @type {HTMLAnchorElement | null} */ (document.getElementById(id));
  if (!link) return;
  if (session) link.href = session.address;
  link.title = session ? `${name}: ${session.title}` : `There is no ${name.split(" (")[0].toLowerCase()} of the list`;
}

/** Asks for the sessions beside this one. @param {string} base */
async function loadNeighbours(base) {
  const response = await fetch(`${base}/neighbours?${recall(QUERY) ?? ""}`);
  const found = response.ok ? await response.json() : null;
  if (!found) return;
  const count = document.querySelector("#list-place");
  if (count && found.place) count.textContent = `${found.place.toLocaleString("en-US")} of ${found.sessions.toLocaleString("en-US")}`;
  setLink("list-previous", found.previous, "Previous session ([)");
  setLink("list-next", found.next, "Next session (])");
}

const sessionPage = /** @type {HTMLElement | null} */ (document.querySelector("main[data-session]"));
const back = /** @type {HTMLAnchorElement | null} */ (document.querySelector("#list-back"));
if (document.querySelector("#sessions")) {
  returnToPlace();
  addEventListener("pagehide", rememberList);
}
if (sessionPage && back) {
  const base = sessionPage.dataset.session ?? "";
  const query = recall(QUERY);
  if (query) back.href = `/?${query}`;
  back.addEventListener("click", () => remember(RETURN, base));
  keys.u = () => {
    // From an entry of a subagent, the way up is the call that started it.
    const entry = document.querySelector("li.at");
    const caller = entry && isShown(entry) && callerAt(placeOf(numberOf(entry)));
    if (caller) show(Number(caller), false);
    else back.click();
  };
  keys["["] = () => document.getElementById("list-previous")?.click();
  keys["]"] = () => document.getElementById("list-next")?.click();
  loadNeighbours(base);
}
