import { createStore } from "../store";

export interface Said {
  text: string;
  /** What can be done about it, such as to undo. It returns what is said instead; what fails it says, and can be done again. */
  action?: { label: string; do: () => Promise<string> };
  /** Milliseconds that it stays; 6,000 by default. */
  stays?: number;
  /** When it goes in any case, by the clock of `performance.now()`: nothing can be done about it then. */
  until?: number;
  kind?: "bad";
  /** It takes the place of what was said about the same. */
  about?: string;
}

export interface Toast extends Said {
  id: number;
  /** It is over, and its place is kept: what stands below does not move while somebody points at it. */
  over?: boolean;
}

export const toasts = createStore<readonly Toast[]>([]);

let made = 0;

export const unsay = (id: number) => toasts.set(toasts.get().filter((each) => each.id !== id));

const change = (id: number, next: (toast: Toast) => Toast) =>
  toasts.set(toasts.get().map((each) => (each.id === id ? next(each) : each)));

/** Takes it away, but keeps its place. */
export const end = (id: number) => change(id, (toast) => ({ ...toast, over: true }));
export const clearEnded = () =>
  toasts.get().some(({ over }) => over) && toasts.set(toasts.get().filter(({ over }) => !over));

/** Says something else in the same place. */
export const sayInstead = (id: number, text: string) =>
  change(id, ({ about }) => ({ id, text, ...(about === undefined ? {} : { about }) }));

/** Says something at the edge of the page for a while. Returns what takes it away. */
export function say(said: Said): () => void {
  const id = ++made;
  const others = toasts.get().filter(({ about }) => about === undefined || about !== said.about);
  toasts.set([...others, { ...said, id }]);
  return () => unsay(id);
}
