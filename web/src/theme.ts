import { createKept } from "./store";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const isTheme = (value: unknown): value is Theme => THEMES.some((each) => each === value);

/** Kept by the browser; `public/early.js` reads the same key before the page is drawn. */
export const theme = createKept<Theme>("longthread.theme", "system", isTheme);

theme.subscribe(() => {
  const chosen = theme.get();
  if (chosen === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
});
