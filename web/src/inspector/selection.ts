import { createStore, useStore } from "../store";

export const TABS = ["query", "context", "memory", "run"] as const;
export type Tab = (typeof TABS)[number];

/**
 * What the inspector shows. `step` is the index of a step of the conversation, `rows` are rows of its result to mark,
 * `call` is the step of a call of the model, `run` the id of a run.
 */
export interface Selection {
  tab: Tab;
  step?: number;
  rows?: readonly number[];
  call?: number;
  run?: string;
}

const selection = createStore<Selection | null>(null);
let last: Selection = { tab: "context" };
let opener: Element | null = null;

export const useSelection = () => useStore(selection);

export function openInspector(wanted: Selection) {
  if (selection.get() === null) opener = document.activeElement;
  last = wanted;
  selection.set(wanted);
}

/** Closes it; the focus goes back to where it was. */
export function closeInspector() {
  selection.set(null);
  if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
  opener = null;
}

/** Opens it where it was last. */
export const toggleInspector = () => (selection.get() ? closeInspector() : openInspector({ tab: last.tab }));
