// @ts-check
// What the server tells while a page is open.

/**
 * Has events told to a function. A page that was left lets its connection go at once: a browser has only six of them
 * for one server, and may keep a page to come back to.
 * @param {string} address @param {string} name @param {(data: string) => void} tell
 */
export function listen(address, name, tell) {
  let source = /** @type {EventSource | null} */ (null);
  const open = () => {
    source = new EventSource(address);
    source.addEventListener(name, (event) => tell(event.data));
  };
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => event.persisted && open());
  open();
}
