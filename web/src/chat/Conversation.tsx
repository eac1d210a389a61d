import { NewConversation } from "./NewConversation";
import { Thread } from "./Thread";

export interface ConversationProps {
  /** Null: a new conversation, which gets its id with the first question. */
  threadId: string | null;
  /** The id of an entry to show first. */
  at: string | null;
}

export function Conversation({ threadId, at }: ConversationProps) {
  return threadId === null ? <NewConversation /> : <Thread key={threadId} threadId={threadId} at={at} />;
}
