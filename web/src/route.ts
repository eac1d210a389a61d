// Where the page is stands in its address. A conversation's id may hold any character, so a route is parsed here and
// not by a router that decodes paths in its own way.

import { useSyncExternalStore } from "react";

export const SETTINGS = ["models", "sources", "agents", "skills", "tools", "memories", "usage", "appearance"] as const;
export type SettingsPage = (typeof SETTINGS)[number];

export type Route =
  | { page: "new" }
  /** `at` is the id of an entry to show first. */
  | { page: "conversation"; id: string; at: string | null }
  | { page: "shared"; token: string }
  | { page: "settings"; section: SettingsPage }
  | { page: "unknown" };

export function parse(path: string, query = ""): Route {
  const [, first = "", ...rest] = path.split("/");
  const tail = rest.join("/");
  if (first === "" && tail === "") return { page: "new" };
  if (first === "c" && tail) return { page: "conversation", id: decoded(tail), at: new URLSearchParams(query).get("at") };
  if (first === "s" && tail) return { page: "shared", token: decoded(tail) };
  if (first === "settings") {
    const section = SETTINGS.find((each) => each === (tail || "appearance"));
    if (section) return { page: "settings", section };
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
export const toSettings = (section: SettingsPage) => `/settings/${section}`;

const listeners = new Set<() => void>();
const tell = () => listeners.forEach((each) => each());

function subscribe(listener: () => void) {
  if (listeners.size === 0) window.addEventListener("popstate", tell);
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) window.removeEventListener("popstate", tell);
  };
}

/** Goes to a path; with `replace` the browser's way back leaves out where it is now. */
export function navigate(to: string, { replace = false } = {}) {
  if (to === location.pathname + location.search) return;
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
