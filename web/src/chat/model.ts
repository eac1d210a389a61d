// The model that the next questions of a conversation go to. The browser keeps what was chosen.

import { createStore, useStore } from "../store";

const keyOf = (threadId: string) => `longthread.model.${threadId}`;

/** That of the next new conversation. */
const first = createStore<string | null>(null);
/** Counts choices, for those who show one. */
const choices = createStore(0);

/** Null: the one of the agent, or of the server. */
export const modelOf = (threadId: string | null): string | null =>
  threadId === null ? first.get() : localStorage.getItem(keyOf(threadId));

export function chooseModel(threadId: string | null, model: string | null): void {
  if (threadId === null) first.set(model);
  else {
    try {
      if (model === null) localStorage.removeItem(keyOf(threadId));
      else localStorage.setItem(keyOf(threadId), model);
    } catch {
      // The browser keeps no more: the next question goes to the model as before.
    }
  }
  choices.set(choices.get() + 1);
}

export function useModel(threadId: string | null): string | null {
  useStore(choices);
  return modelOf(threadId);
}

/** The field of a request. */
export const modelField = (threadId: string | null): { model?: string } => {
  const model = modelOf(threadId);
  return model === null ? {} : { model };
};
