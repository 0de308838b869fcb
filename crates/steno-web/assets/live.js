// @ts-check
// What the server tells while a page is open.

/**
 * Has events told to functions, by their names. A page that was left lets its connection go at once: a browser has only six of them
 * for one server, and may keep a page to come back to.
 * @param {string} address @param {Record<string, (data: string) => void>} tell
 */
export function listen(address, tell) {
  let source = /** @type {EventSource | null} */ (null);
  const open = () => {
    source = new EventSource(address);
    for (const name of Object.keys(tell)) source.addEventListener(name, (event) => tell[name](event.data));
  };
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => event.persisted && open());
  open();
}
