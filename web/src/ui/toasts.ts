import { createStore } from "../store";

export interface Said {
  text: string;
  /** What can be done about it, such as to undo. */
  action?: { label: string; onClick: () => void };
  /** Milliseconds that it stays; 6,000 by default. */
  stays?: number;
  kind?: "bad";
  /** It takes the place of what was said about the same. */
  about?: string;
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
  const others = toasts.get().filter(({ about }) => about === undefined || about !== said.about);
  toasts.set([...others, { ...said, id }]);
  return () => unsay(id);
}
