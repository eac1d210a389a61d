// Where the page is stands in its address. A conversation's id may hold any character, so a route is parsed here and
// not by a router that decodes paths in its own way.

import { useSyncExternalStore } from "react";
import { LOGIN } from "./login/away";
import { PAGES, type SettingsPage } from "./settings/pages";

/** Parts of pages, and where those are that had pages of their own. */
const PARTS: ReadonlyMap<string, SettingsPage> = new Map([
  ["usage", "you"],
  ["appearance", "you"],
  ["sources", "data"],
]);

export const CATALOG = ["agents", "skills", "tools"] as const;
export type CatalogPage = (typeof CATALOG)[number];
export const isCatalog = (section: SettingsPage): section is CatalogPage => CATALOG.some((each) => each === section);

export type Route =
  /** `project` is the one in which a new conversation begins. */
  | { page: "new"; project?: string }
  /** `at` is the id of an entry to show first. */
  | { page: "conversation"; id: string; at: string | null }
  | { page: "login" }
  | { page: "shared"; token: string; at: string | null }
  /** All projects, or one. */
  | { page: "projects"; id: string | null }
  /** All boards, and one of them; a link to one. */
  | { page: "boards" }
  | { page: "board"; id: string }
  | { page: "sharedBoard"; token: string }
  /** `name` is a definition of the catalog that is edited (empty: a new one), or the source of the terms. `part` is shown first. */
  | { page: "settings"; section: SettingsPage; name?: string; part?: string }
  | { page: "unknown" };

export function parse(path: string, query = ""): Route {
  const [, first = "", ...rest] = path.split("/");
  const tail = rest.join("/");
  if (first === "" && tail === "") {
    const project = new URLSearchParams(query).get("project");
    return project ? { page: "new", project } : { page: "new" };
  }
  if (path === LOGIN) return { page: "login" };
  if (first === "c" && tail)
    return { page: "conversation", id: decoded(tail), at: new URLSearchParams(query).get("at") };
  if (first === "projects" && !tail) return { page: "projects", id: null };
  if (first === "p" && tail) return { page: "projects", id: decoded(tail) };
  if (first === "boards" && !tail) return { page: "boards" };
  if (first === "b" && tail) return { page: "board", id: decoded(tail) };
  if (first === "s" && rest[0] === "b" && rest[1]) return { page: "sharedBoard", token: decoded(rest[1]) };
  if (first === "s" && tail) return { page: "shared", token: decoded(tail), at: new URLSearchParams(query).get("at") };
  if (first === "settings") {
    const [named = "", ...below] = rest;
    const section = PAGES.find(({ id }) => id === (named || "models"))?.id;
    const name = below.length ? decoded(below.join("/")) : query === "?new" ? "" : undefined;
    const whole = PARTS.get(named);
    if (whole && name === undefined) return { page: "settings", section: whole, part: named };
    if (section && name === undefined) return { page: "settings", section };
    if (section === "terms" && name) return { page: "settings", section, name };
    if (section && name !== undefined && isCatalog(section) && (name || !below.length))
      return { page: "settings", section, name };
  }
  return { page: "unknown" };
}

/** The text of a part of a path; itself where it is no encoding of anything. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const toNew = "/";
export const toConversation = (id: string, at?: string) =>
  `/c/${encodeURIComponent(id)}${at === undefined ? "" : `?at=${encodeURIComponent(at)}`}`;
export const toNewIn = (project: string) => `/?project=${encodeURIComponent(project)}`;
export const toProjects = "/projects";
export const toProject = (id: string) => `/p/${encodeURIComponent(id)}`;
export const toBoards = "/boards";
export const toBoard = (id: string) => `/b/${encodeURIComponent(id)}`;
export const toSettings = (section: SettingsPage) => `/settings/${section}`;
export const toTerms = (source: string) => `/settings/terms/${encodeURIComponent(source)}`;
/** Where a definition is edited; without a name, where a new one is. */
export const toDefinition = (section: CatalogPage, name?: string) =>
  name === undefined ? `/settings/${section}?new` : `/settings/${section}/${encodeURIComponent(name)}`;

const listeners = new Set<() => void>();
const tell = () => listeners.forEach((each) => each());

/** Asks whether to leave what is shown: it calls `go` when that may be. */
type Guard = (go: () => void) => void;
let guard: Guard | null = null;

/** While something is not saved, `ask` decides whether the page goes elsewhere. */
export function guardLeaving(ask: Guard) {
  guard = ask;
  return () => {
    if (guard === ask) guard = null;
  };
}

function onWayBack() {
  const to = location.pathname + location.search;
  if (guard === null || to === known.address) return tell();
  history.pushState(null, "", known.address);
  guard(() => navigate(to));
}

function subscribe(listener: () => void) {
  if (listeners.size === 0) window.addEventListener("popstate", onWayBack);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) window.removeEventListener("popstate", onWayBack);
  };
}

/** Goes to a path; with `replace` the browser's way back leaves out where it is now. `saved`: nothing is asked first. */
export function navigate(to: string, { replace = false, saved = false } = {}) {
  if (to === location.pathname + location.search) return;
  if (guard !== null && !saved) {
    guard(() => navigate(to, { replace }));
    return;
  }
  history[replace ? "replaceState" : "pushState"](null, "", to);
  tell();
}

let known = { address: "", route: parse("/") };

/** The same object while the address is the same. */
export function currentRoute(): Route {
  const address = location.pathname + location.search;
  if (address !== known.address) known = { address, route: parse(location.pathname, location.search) };
  return known.route;
}

export const useRoute = () => useSyncExternalStore(subscribe, currentRoute);
