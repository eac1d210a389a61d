import { Header } from "../layout/Header";

export interface ConversationProps {
  /** Null: a new conversation, which gets its id with the first question. */
  threadId: string | null;
  /** The id of an entry to show first. */
  at: string | null;
}

export function Conversation({ threadId }: ConversationProps) {
  return <Header threadId={threadId} />;
}
