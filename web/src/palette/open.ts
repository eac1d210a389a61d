import { createStore } from "../store";

/** What is open above the page: the palette, the list of keys, or what is done with a conversation. */
type Overlay =
  | { name: "palette" | "keys" }
  | { name: "share" | "apps" | "move"; thread: string }
  | { name: "connect"; thread: string | null; provider: string | null }
  | { name: "delete"; thread: string; label: string; memories: number };

export const overlay = createStore<Overlay | null>(null);

export const openPalette = () => overlay.set({ name: "palette" });
export const openKeys = () => overlay.set({ name: "keys" });
export const openShare = (thread: string) => overlay.set({ name: "share", thread });
export const openApps = (thread: string) => overlay.set({ name: "apps", thread });
export const openMove = (thread: string) => overlay.set({ name: "move", thread });
/** Connects a model for the next questions of a conversation; null: of new ones. `provider` is the one to change. */
export const openConnect = (thread: string | null, provider: string | null = null) =>
  overlay.set({ name: "connect", thread, provider });
export const openDelete = (thread: string, label: string, memories: number) =>
  overlay.set({ name: "delete", thread, label, memories });
export const closeOverlay = () => overlay.set(null);
