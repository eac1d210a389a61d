// The conversations that are open, and those that were just now.

import { current } from "../i18n";
import { Conversation } from "./conversation";
import { live } from "./live";

const opened = new Map<string, Conversation>();
/** Conversations that are kept as they were left. */
const MOST_KEPT = 8;

/** The conversation with this id in the language of the page, the same object while it is kept. */
export function conversation(threadId: string): Conversation {
  const key = `${current()} ${threadId}`;
  const found = opened.get(key) ?? new Conversation(threadId, live());
  opened.delete(key);
  opened.set(key, found);
  for (const each of opened.keys()) {
    if (opened.size <= MOST_KEPT) break;
    opened.delete(each);
  }
  return found;
}
