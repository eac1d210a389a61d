// Whose browser this is: what it keeps of one user, such as questions that were not sent, is not for another.

import { keepAt, keptAt } from "../store";
import { pathBack } from "./away";

const USER = "longthread.user";
/** What is the browser's own: how the page looks in it. */
const LOOKS = new Set(["longthread.theme", "longthread.language", "longthread.inspector"]);

/** Forgets what the browser keeps of a user. */
export function forgetUser(): void {
  try {
    for (const key of Object.keys(localStorage))
      if (key.startsWith("longthread.") && !LOOKS.has(key)) localStorage.removeItem(key);
  } catch {
    // The browser keeps nothing.
  }
}

/** Makes the browser a user's; true where it was another's before. */
export function takeBrowser(user: string): boolean {
  const before = keptAt(USER);
  if (before === user) return false;
  if (before !== null) forgetUser();
  keepAt(USER, user);
  return before !== null;
}

/** Goes on where the page was before the login. */
export function enter(user: string): void {
  takeBrowser(user);
  location.replace(back());
}

/** Where the page was, as the login's address says. */
export const back = () => pathBack(new URLSearchParams(location.search).get("next"));
