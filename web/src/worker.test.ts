// The service worker, run as a browser runs it.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const CODE = readFileSync("public/sw.js", "utf8");
const PAGE = '<html><div id="root"></div><script src="/assets/a.js"></script></html>';
const HOST = "https://longthread.test";

type Answer = (address: string) => Response | Promise<Response>;
interface Event {
  request: { url: string; method: string; mode: string };
  waitUntil: (work: Promise<unknown>) => void;
  respondWith: (answer: Promise<Response>) => void;
}

/** A worker whose server gives `answer`, and whose cache refuses what `refuses` names. */
function start(answer: Answer, refuses: readonly ("open" | "put")[] = []) {
  const kept = new Map<string, string>();
  const pathOf = (request: string | { url: string }) =>
    new URL(typeof request === "string" ? request : request.url, HOST).pathname;
  const refuse = (what: "open" | "put") => {
    if (refuses.includes(what)) throw new DOMException("no room", "QuotaExceededError");
  };
  const put = async (request: string | { url: string }, given: Response) => {
    refuse("put");
    kept.set(pathOf(request), await given.text());
  };
  const ask = async (request: string | { url: string }, { redirect }: { redirect?: string } = {}) => {
    const given = await answer(pathOf(request));
    if (redirect === "error" && given.redirected) throw new TypeError("it was redirected");
    return given;
  };
  const cache = {
    put,
    match: async (request: string) => (kept.has(pathOf(request)) ? new Response(kept.get(pathOf(request))) : undefined),
    addAll: (requests: { url: string; redirect: string }[]) =>
      Promise.all(requests.map(async (each) => put(each, await ask(each, each)))),
  };
  const listeners: Record<string, (event: Event) => void> = {};
  const given = {
    caches: { open: async () => (refuse("open"), cache) },
    fetch: ask,
    location: new URL(HOST),
    addEventListener: (name: string, listener: (event: Event) => void) => (listeners[name] = listener),
    // Node's takes no addresses without a host.
    Request: class {
      readonly url: string;
      readonly redirect: string;
      constructor(url: string, { redirect }: { redirect: string }) {
        this.url = url;
        this.redirect = redirect;
      }
    },
  };
  // oxlint-disable-next-line no-implied-eval, no-new-func
  new Function(...Object.keys(given), CODE)(...Object.values(given));
  const send = async (name: string, path = "/", mode = "no-cors") => {
    const works: Promise<unknown>[] = [];
    let answered: Promise<Response> | undefined;
    const event = {
      request: { url: HOST + path, method: "GET", mode },
      waitUntil: (work: Promise<unknown>) => works.push(work),
      respondWith: (given: Promise<Response>) => (answered = given),
    };
    listeners[name]?.(event);
    const text = await (await answered)?.text();
    await Promise.all(works);
    return text;
  };
  return {
    kept,
    install: () => send("install"),
    load: (path: string) => send("fetch", path),
    open: (path: string) => send("fetch", path, "navigate"),
  };
}

const page: Answer = (path) => new Response(path === "/" || path.startsWith("/c/") ? PAGE : `file ${path}`);
const redirected = (text: string) => Object.defineProperty(new Response(text), "redirected", { value: true });

test.each<["open" | "put"]>([["open"], ["put"]])(
  "a file that cannot be kept is there all the same (%s)",
  async (what) => {
    const { kept, load } = start(page, [what]);
    expect(await load("/assets/b.js")).toBe("file /assets/b.js");
    expect(kept.size).toBe(0);
  },
);

test("a file is kept, and read once", async () => {
  let asked = 0;
  const { load } = start((path) => (asked++, page(path)));
  expect([await load("/assets/b.js"), await load("/assets/b.js"), asked]).toEqual([
    "file /assets/b.js",
    "file /assets/b.js",
    1,
  ]);
});

test("a login in the place of a file is not kept", async () => {
  const { kept, load } = start(() => redirected("log in"));
  expect(await load("/assets/b.js")).toBe("log in");
  expect(kept.size).toBe(0);
});

test.each<[string, Answer]>([
  ["it leads elsewhere", () => redirected(PAGE)],
  ["it is another page", () => new Response("<html>log in</html>")],
  ["it is an error", () => new Response(PAGE, { status: 404 })],
  ["a file leads elsewhere", (path) => (path === "/" ? new Response(PAGE) : redirected("log in"))],
])("the empty page is not kept where %s", async (_, answer) => {
  const { kept, install } = start(answer);
  await expect(install()).rejects.toThrow();
  expect(kept.has("/")).toBe(false);
});

test.each([502, 503, 504, null])("while the server is away the kept page opens (%s)", async (status) => {
  let away = false;
  const { install, open, load } = start((path) => {
    if (!away) return page(path);
    if (status === null) throw new TypeError("no connection");
    return new Response("bad gateway", { status });
  });
  await install();
  expect(await open("/c/1")).toBe(PAGE);
  away = true;
  expect(await open("/c/1")).toBe(PAGE.replace("<html", "<html data-kept"));
  expect(await load("/early.js")).toBe("file /early.js");
});

test("an answer of a server that is there is shown, and one of a proxy where nothing is kept", async () => {
  for (const status of [500, 502]) {
    // One after the other.
    // oxlint-disable-next-line no-await-in-loop
    expect(await start(() => new Response("sorry", { status })).open("/")).toBe("sorry");
  }
  const { install, open } = start((path) => page(path));
  await install();
  expect(await open("/")).toBe(PAGE);
});
