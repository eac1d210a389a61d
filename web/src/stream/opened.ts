// The conversations that are open, and those that were just now.

import { Conversation } from "./conversation";
import { live } from "./live";

const opened = new Map<string, Conversation>();
/** Conversations that are kept as they were left. */
const MOST_KEPT = 8;

/** The conversation with this id, the same object while it is kept. */
export function conversation(threadId: string): Conversation {
  const found = opened.get(threadId) ?? new Conversation(threadId, live());
  opened.delete(threadId);
  opened.set(threadId, found);
  for (const id of opened.keys()) {
    if (opened.size <= MOST_KEPT) break;
    opened.delete(id);
  }
  return found;
}
