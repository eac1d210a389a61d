// Keeps what the page is made of while its server is away: the empty page, and its files, whose names change with what
// is in them. Nothing that the server tells is kept, and a server that answers is always asked for the page first.
const CACHE = "longthread-BUILD-OF-THE-PAGE";
const SHELL = "/";
/** Files whose names stay, that the empty page needs. */
const TOP = ["/early.js", "/icon.svg"];
const ADDRESSES = /^\/($|[bcp]\/|boards$|projects$|login$|settings(\/|$))/;
/** What a proxy answers while its server is away. */
const AWAY = [502, 503, 504];

/** The empty page says that it was kept, and `src/worker.ts` loads it again when the server is back. */
async function keep() {
  const cache = await caches.open(CACHE);
  // Where it leads elsewhere, as to a login, it is not the page.
  const answer = await fetch(SHELL, { cache: "no-cache", redirect: "error" });
  const text = await answer.text();
  if (!answer.ok || !text.includes('id="root"')) throw new Error(`the page is not there: ${answer.status}`);
  const files = [...TOP, ...new Set(text.match(/\/assets\/[\w.-]+/g))];
  await cache.addAll(files.map((file) => new Request(file, { redirect: "error" })));
  const headers = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": answer.headers.get("Content-Security-Policy"),
  };
  await cache.put(SHELL, new Response(text.replace("<html", "<html data-kept"), { headers }));
}

/** What is kept. A browser that refuses to keep anything has nothing. */
async function kept(address) {
  try {
    return await (await caches.open(CACHE)).match(address, { ignoreVary: true });
  } catch {
    return undefined;
  }
}

/** Keeps an answer, unless the browser has no room or refuses to. */
async function store(address, answer) {
  try {
    await (await caches.open(CACHE)).put(address, answer);
  } catch {
    // The page has its answer.
  }
}

async function dropOthers() {
  const names = await caches.keys();
  await Promise.all(
    names.filter((name) => name.startsWith("longthread-") && name !== CACHE).map((name) => caches.delete(name)),
  );
}

async function fromCache(event) {
  const { request } = event;
  const found = await kept(request.url);
  if (found) return found;
  const answer = await fetch(request);
  if (answer.status === 200 && !answer.redirected) event.waitUntil(store(request.url, answer.clone()));
  return answer;
}

async function fromServer(request, address) {
  const asked = fetch(request);
  const answer = await asked.catch(() => null);
  if (answer && !AWAY.includes(answer.status)) return answer;
  return (await kept(address)) ?? asked;
}

async function show(address) {
  const pages = await clients.matchAll({ type: "window", includeUncontrolled: true });
  const page = pages.find((each) => new URL(each.url).pathname === address);
  await (page ? page.focus() : clients.openWindow(address));
}

addEventListener("install", (event) => event.waitUntil(keep()));
addEventListener("activate", (event) => event.waitUntil(dropOthers()));
addEventListener("fetch", (event) => {
  const { request } = event;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin) return;
  if (pathname.startsWith("/assets/")) event.respondWith(fromCache(event));
  else if (TOP.includes(pathname)) event.respondWith(fromServer(request, pathname));
  else if (request.mode === "navigate" && ADDRESSES.test(pathname)) event.respondWith(fromServer(request, SHELL));
});
addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data.to));
});
