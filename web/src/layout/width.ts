import { useSyncExternalStore } from "react";

/** `wide`: list, column and inspector side by side. `middle`: the inspector is a sheet. `narrow`: the list is a drawer. */
export type Width = "wide" | "middle" | "narrow";

const wide = matchMedia("(min-width: 1200px)");
const narrow = matchMedia("(max-width: 759px)");

function subscribe(listener: () => void) {
  for (const each of [wide, narrow]) each.addEventListener("change", listener);
  return () => {
    for (const each of [wide, narrow]) each.removeEventListener("change", listener);
  };
}

const current = (): Width => (wide.matches ? "wide" : narrow.matches ? "narrow" : "middle");

export const useWidth = () => useSyncExternalStore(subscribe, current);
