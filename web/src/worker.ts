// The service worker (`public/sw.js`), which keeps the page's files.

const TRY_AGAIN_MS = 3000;
/** What is drawn first has the network and the processor until then. */
const LATER_MS = 2000;

/** Registers it where the browser has one, which needs https or this machine. */
export function registerWorker() {
  setTimeout(() => void navigator.serviceWorker?.register("/sw.js").catch(() => undefined), LATER_MS);
  if ("kept" in document.documentElement.dataset) setInterval(() => void loadAgain(), TRY_AGAIN_MS);
}

/** This page was kept, and the server may have a newer one. */
async function loadAgain() {
  const answer = await fetch("/", { method: "HEAD" }).catch(() => null);
  if (answer?.ok) location.reload();
}
