import { Suspense, lazy, useEffect } from "react";
import { Header } from "../layout/Header";
import { NewConversation } from "./NewConversation";

export interface ConversationProps {
  /** Null: a new conversation, which gets its id with the first question. */
  threadId: string | null;
  /** The id of an entry to show first. */
  at: string | null;
}

const thread = () => import("./Thread");
/** What draws a conversation is not needed to begin one: it comes while the question is typed. */
const Thread = lazy(() => thread().then((module) => ({ default: module.Thread })));

export function Conversation({ threadId, at }: ConversationProps) {
  useEffect(() => void thread(), []);
  if (threadId === null) return <NewConversation />;
  return (
    <Suspense fallback={<Header threadId={threadId} />}>
      <Thread key={threadId} threadId={threadId} at={at} />
    </Suspense>
  );
}
