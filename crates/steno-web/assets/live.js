// @ts-check
// Server-sent events of an open page.

/**
 * Calls a handler for each event, by the event's name. The connection closes when the user leaves the page: a browser opens only
 * six connections to one server, and may keep the page in its back-forward cache.
 * @param {string} address @param {Record<string, (data: string) => void>} handlers
 */
export function listen(address, handlers) {
  let source = /** @type {EventSource | null} */ (null);
  const open = () => {
    source = new EventSource(address);
    for (const name of Object.keys(handlers)) source.addEventListener(name, (event) => handlers[name](event.data));
  };
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => event.persisted && open());
  open();
}
