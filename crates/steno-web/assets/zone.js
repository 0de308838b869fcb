// @ts-check
// Tells the server the time zone of the browser, so that all times on a page follow one clock.

const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;
const wanted = `steno-zone=${ZONE}`;
const isKnown = () => document.cookie.split("; ").includes(wanted);
if (ZONE && !isKnown()) {
  document.cookie = `${wanted}; Path=/; SameSite=Strict; Max-Age=31536000`;
  const shown = document.documentElement.dataset.zone;
  // Without cookies the page stays in the zone of the server.
  if (isKnown() && shown !== undefined && shown !== ZONE) location.reload();
}
