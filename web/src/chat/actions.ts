// What a person does in a conversation. Each shows what became of it; what fails is said, and null.

import { Problem } from "../api/problem";
import type { CallDecision } from "../api/types";
import { t } from "../i18n";
import { sentence } from "../i18n/sentence";
import type { Conversation } from "../stream/conversation";
import * as requests from "../stream/requests";
import { say } from "../ui";
import { withModel } from "./model";

async function done<T>(conversation: Conversation, request: Promise<T>): Promise<T | null> {
  try {
    return await conversation.did(request);
  } catch (error) {
    say({ text: sentence(error), kind: "bad" });
    return null;
  }
}

export const again = (conversation: Conversation, entryId: string) =>
  done(
    conversation,
    withModel(conversation.threadId, (model) =>
      requests.again(conversation.threadId, entryId, model, requests.newKey()),
    ),
  );

export const edit = (conversation: Conversation, entryId: string, question: string) =>
  done(
    conversation,
    withModel(conversation.threadId, (model) =>
      requests.edit(conversation.threadId, entryId, question, model, requests.newKey()),
    ),
  );

export const choose = (conversation: Conversation, entryId: string) =>
  done(conversation, requests.choose(conversation.threadId, entryId));

export const resume = (conversation: Conversation) =>
  done(
    conversation,
    withModel(conversation.threadId, (model) => requests.resume(conversation.threadId, model)),
  );

/** Where a question waits, it begins then: that is said. */
export async function stop(conversation: Conversation, runId: string) {
  const waits = (conversation.get().data?.queue.length ?? 0) > 0;
  const stopped = await done(conversation, requests.stop(conversation.threadId, runId));
  if (stopped !== null && waits) say({ text: t("chat.nextBegins") });
  return stopped;
}

/** One that has begun meanwhile cannot be removed: it is seen as what it is now. */
export async function unqueue(conversation: Conversation, id: string) {
  const request = requests.unqueue(conversation.threadId, id).catch((error: unknown) => {
    if (!(error instanceof Problem && error.code === "question_not_found")) throw error;
  });
  await done(conversation, request);
}

/** Raises what the server says of wrong arguments. What somebody else has decided meanwhile is shown. */
export async function decide(conversation: Conversation, call: string, decision: CallDecision) {
  try {
    await conversation.did(requests.decide(conversation.threadId, { [call]: decision }));
  } catch (error) {
    if (!(error instanceof Problem && error.code === "not_pending")) throw error;
    say({ text: sentence(error), kind: "bad" });
  }
}
