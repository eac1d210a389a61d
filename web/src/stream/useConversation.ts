import { useSyncExternalStore } from "react";
import type { Conversation, ConversationState } from "./conversation";
import { live } from "./live";
import { conversation } from "./opened";

/** A conversation as it is now, and what can be done with it. */
export function useConversation(threadId: string): ConversationState & { conversation: Conversation } {
  const found = conversation(threadId);
  const state = useSyncExternalStore(found.subscribe, found.get);
  return { ...state, conversation: found };
}

/** Whether the server is heard. */
export const useOnline = (): boolean => useSyncExternalStore(live().onState, live().online);
