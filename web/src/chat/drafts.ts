// What is typed and not sent, by thread. The browser keeps it.

const keyOf = (threadId: string | null) => `longthread.draft.${threadId ?? ""}`;

export const draftOf = (threadId: string | null): string => localStorage.getItem(keyOf(threadId)) ?? "";

export function keepDraft(threadId: string | null, text: string): void {
  try {
    if (text.trim()) localStorage.setItem(keyOf(threadId), text);
    else localStorage.removeItem(keyOf(threadId));
  } catch {
    // The browser keeps no more: the text stays in its field.
  }
}
