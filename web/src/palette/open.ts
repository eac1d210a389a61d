import { createStore } from "../store";

/** What is open above the page: the palette, or the list of keys. */
export const overlay = createStore<"palette" | "keys" | null>(null);

export const openPalette = () => overlay.set("palette");
export const openKeys = () => overlay.set("keys");
export const closeOverlay = () => overlay.set(null);
