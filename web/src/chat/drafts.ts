// What is typed and not sent, by thread. The browser keeps it.

import { keepAt, keptAt } from "../store";

const keyOf = (threadId: string | null) => `longthread.draft.${threadId ?? ""}`;

export const draftOf = (threadId: string | null): string => keptAt(keyOf(threadId)) ?? "";

export const keepDraft = (threadId: string | null, text: string): void =>
  keepAt(keyOf(threadId), text.trim() ? text : null);
