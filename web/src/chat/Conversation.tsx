import { useEffect } from "react";
import { Header } from "../layout/Header";
import { later } from "../ui";
import { NewConversation } from "./NewConversation";

export interface ConversationProps {
  /** Null: a new conversation, which gets its id with the first question. */
  threadId: string | null;
  /** The id of an entry to show first. */
  at: string | null;
  /** Where a new conversation begins. */
  project?: string | undefined;
}

/** What draws a conversation is not needed to begin one: it comes while the question is typed. */
export const Thread = later(async () => (await import("./Thread")).Thread);

export function Conversation({ threadId, at, project }: ConversationProps) {
  useEffect(() => void Thread.load().catch(() => undefined), []);
  if (threadId === null) return <NewConversation project={project} />;
  return <Thread key={threadId} threadId={threadId} at={at} fallback={<Header threadId={threadId} />} />;
}
