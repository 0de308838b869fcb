// @ts-check
// Server-sent events of an open page.

/** The pauses before the connection is opened again, in milliseconds. */
const RETRY_PAUSES = [1000, 2000, 5000, 10_000, 30_000];

const LOST = "Not connected. Trying again…";
const RESTARTED = "The server was restarted. Open the address that `steno serve` printed.";

/** Shows why the page may be out of date; nothing if it is not. @param {string} text */
function showState(text) {
  let note = document.querySelector("#connection");
  if (!text) return note?.remove();
  if (!note) {
    note = document.createElement("p");
    Object.assign(note, { id: "connection", className: "stale connection" });
    note.setAttribute("role", "status");
    document.body.append(note);
  }
  note.textContent = text;
}

/** Whether the server refuses the cookie of this page, because it has a new token. */
async function isRefused() {
  try {
    return (await fetch("/api/openapi.json")).status === 401;
  } catch {
    return false;
  }
}

/**
 * Calls a handler for each event, by the event's name. The connection closes when the user leaves the page: a browser opens only
 * six connections to one server, and may keep the page in its back-forward cache. A lost connection is opened again.
 * @param {string} address @param {Record<string, (data: string) => void>} handlers
 */
export function listen(address, handlers) {
  let source = /** @type {EventSource | null} */ (null);
  let failures = 0;
  let timer = 0;
  const open = () => {
    clearTimeout(timer);
    source?.close();
    source = new EventSource(address);
    source.addEventListener("open", () => {
      showState("");
      // Something may have changed while the connection was lost.
      if (failures) for (const name of Object.keys(handlers)) handlers[name]("");
      failures = 0;
    });
    source.addEventListener("error", async () => {
      failures += 1;
      if (failures > 1) showState(LOST);
      // The browser gives up after a refusal, as while too many streams are open.
      if (source?.readyState !== EventSource.CLOSED) return;
      if (await isRefused()) return showState(RESTARTED);
      timer = window.setTimeout(open, RETRY_PAUSES[Math.min(failures, RETRY_PAUSES.length) - 1]);
    });
    for (const name of Object.keys(handlers)) source.addEventListener(name, (event) => handlers[name](event.data));
  };
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => event.persisted && open());
  open();
}
