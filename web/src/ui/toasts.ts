import { createStore } from "../store";

export interface Said {
  text: string;
  /** What can be done about it, such as to undo. */
  action?: { label: string; onClick: () => void };
  /** Milliseconds that it stays; 6,000 by default. */
  stays?: number;
  kind?: "bad";
}

export interface Toast extends Said {
  id: number;
}

export const toasts = createStore<readonly Toast[]>([]);

let made = 0;

export const unsay = (id: number) => toasts.set(toasts.get().filter((each) => each.id !== id));

/** Says something at the edge of the page for a while. Returns what takes it away. */
export function say(said: Said): () => void {
  const id = ++made;
  toasts.set([...toasts.get(), { ...said, id }]);
  return () => unsay(id);
}
