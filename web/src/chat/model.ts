// The model that the next questions of a conversation go to. The browser keeps what was chosen.

import { Problem } from "../api/problem";
import { useInfo } from "../api/server";
import { t } from "../i18n";
import { createStore, keepAt, keptAt, useStore } from "../store";
import { say } from "../ui";

const keyOf = (threadId: string) => `longthread.model.${threadId}`;

/** Where that of new conversations is kept. */
const FIRST = "longthread.model";
/** Counts choices, for those who show one. */
const choices = createStore(0);

/** Null: the one of the agent, or of the server. */
export const modelOf = (threadId: string | null): string | null => keptAt(threadId === null ? FIRST : keyOf(threadId));

export function chooseModel(threadId: string | null, model: string | null): void {
  keepAt(threadId === null ? FIRST : keyOf(threadId), model);
  choices.set(choices.get() + 1);
}

/** Another number each time that somebody has chosen one. */
export const useModelChoices = () => useStore(choices);

export function useModel(threadId: string | null): string | null {
  useStore(choices);
  return modelOf(threadId);
}

/** Whether the next questions go to the demo model. */
export function useIsDemo(threadId: string | null): boolean {
  const { data: info } = useInfo();
  return (useModel(threadId) ?? "demo") === "demo" && info?.demo === true;
}

/** Sends a request with the chosen model. One that may not be asked any more is forgotten, and that is said. */
export async function withModel<T>(
  threadId: string | null,
  send: (field: { model?: string }) => Promise<T>,
): Promise<T> {
  const model = modelOf(threadId);
  try {
    return await send(model === null ? {} : { model });
  } catch (error) {
    if (model !== null && error instanceof Problem && error.code === "model_not_allowed") {
      chooseModel(threadId, null);
      say({ text: t("chat.modelDropped", { model }) });
    }
    throw error;
  }
}
