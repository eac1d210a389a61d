// Leaving for the login, and coming back from it. The page is loaded again both times: nothing that one user saw is left
// in it for another.

export const LOGIN = "/login";

/** A path of this page to come back to after a login; "/" where a text names another server, or the login itself. */
export function pathBack(text: string | null, origin = location.origin): string {
  try {
    const { origin: of, pathname, search, hash } = new URL(text ?? "/", origin);
    const isHere = of === origin && !pathname.startsWith("//") && pathname !== LOGIN && !pathname.startsWith("/api/");
    return isHere ? pathname + search + hash : "/";
  } catch {
    return "/";
  }
}

/** Where to log in, to come back to a path then. */
export const loginAt = (path: string) => (path === "/" ? LOGIN : `${LOGIN}?${new URLSearchParams({ next: path })}`);

let isLeaving = false;

/** Leaves this page: the first address that is asked for is the one. */
export function leaveTo(address: string): void {
  if (isLeaving) return;
  isLeaving = true;
  location.replace(address);
  // Who has unsaved changes may choose to stay.
  setTimeout(() => (isLeaving = false), 3000);
}

/** Goes to the login. What waits for an answer waits until the page is left. */
export function leaveForLogin(): Promise<never> {
  leaveTo(loginAt(pathBack(location.href)));
  return new Promise(() => undefined);
}
