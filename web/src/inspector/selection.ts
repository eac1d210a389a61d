import { createStore, useStore } from "../store";

/** What the inspector shows. `step` is the index of a step of the conversation, `row` that of a row of its result,
 * `call` the step of a call of the model, `entry` the id of a message. */
export interface Selection {
  tab: "query" | "context" | "memory" | "run";
  step?: number;
  row?: number;
  call?: number;
  entry?: string;
}

const selection = createStore<Selection | null>(null);
let last: Selection = { tab: "context" };

export const useSelection = () => useStore(selection);

export function openInspector(wanted: Selection) {
  last = wanted;
  selection.set(wanted);
}

export const closeInspector = () => selection.set(null);

/** Opens it where it was last. */
export const toggleInspector = () => (selection.get() ? closeInspector() : openInspector(last));
