// Runs before the first paint: a chosen theme must not flash. It also asks for what is needed next now, and not when the
// scripts have run that need it: the language, and of a conversation its script and its newest messages.
const root = document.documentElement;
const kept = (key) => {
  try {
    return localStorage.getItem(key);
  } catch {
    return null; // The browser keeps nothing for this page.
  }
};
const theme = kept("longthread.theme");
if (theme === "light" || theme === "dark") root.dataset.theme = theme;

const languages = [kept("longthread.language"), ...navigator.languages.map((name) => name.slice(0, 2).toLowerCase())];
root.lang = languages.find((name) => name === "en" || name === "zh") ?? "en";

const preload = (attributes) => document.head.append(Object.assign(document.createElement("link"), attributes));
const built = document.currentScript.dataset;
const thread = /^\/c\/(.+)/.exec(location.pathname)?.[1];
if (thread !== undefined) {
  try {
    // The same address as in `stream/requests.ts`, which then has this answer.
    const asked = new URLSearchParams({ thread_id: decodeURIComponent(thread), limit: 40, lang: root.lang });
    preload({ rel: "preload", as: "fetch", crossOrigin: "anonymous", href: `/api/chat/history?${asked}` });
  } catch {
    // The address is no text: `route.ts` decides what it means.
  }
}
for (const file of `${built[root.lang] ?? ""} ${thread === undefined ? "" : (built.thread ?? "")}`
  .split(" ")
  .filter(Boolean)) {
  if (file.endsWith(".css")) preload({ rel: "preload", as: "style", crossOrigin: "", href: file });
  else preload({ rel: "modulepreload", href: file });
}
