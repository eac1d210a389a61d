// Paper has all turns that are loaded, and not only those in sight.

import { createStore } from "../store";

export const printing = createStore(false);

const LONGEST_MS = 5000;

/** Prints when what is shown by itself, such as a chart, is there. */
export async function printAll() {
  printing.set(true);
  const until = performance.now() + LONGEST_MS;
  do await new Promise((resolve) => setTimeout(resolve, 100));
  while (document.querySelector("article [role=status]") && performance.now() < until);
  window.print();
  printing.set(false);
}
