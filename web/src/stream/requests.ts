// What is asked of the server about one conversation.

import { at, get, post, query, request } from "../api/client";
import { current } from "../i18n";
import type {
  Accepted,
  ApprovalList,
  BranchChoice,
  CallDecision,
  ChosenBranch,
  Decisions,
  History,
  Queued,
  QuestionBody,
  Stopped,
} from "../api/types";

export type Question = Pick<QuestionBody, "question" | "source" | "agent" | "model" | "project">;

const message = (threadId: string, id: string, rest: string) =>
  at(threadId, `/messages/${encodeURIComponent(id)}/${rest}`);
const once = (key: string) => ({ "Idempotency-Key": key });

/** With the id of an entry (`at`), of the branch with that entry, whichever is the chosen one. */
export const history = (
  threadId: string,
  { limit = 40, before = null as string | null, at = null as string | null } = {},
) => get<History>(`/api/chat/history${query({ thread_id: threadId, limit, before, at, lang: current() })}`);

/** Without a thread it begins a conversation. Sent again under its key, it is not asked again. */
export const ask = (asked: Question, threadId: string | null, key: string) =>
  post<Accepted | Queued>(
    "/api/chat",
    { ...asked, ...(threadId === null ? {} : { thread_id: threadId }), when_busy: "enqueue" } satisfies QuestionBody,
    once(key),
  );

/** The model of a run, where it is not the one of its agent or of the server. */
export type Model = Pick<Question, "model">;

export const edit = (threadId: string, id: string, question: string, model: Model, key: string) =>
  post<Accepted>(message(threadId, id, "edit"), { question, ...model }, once(key));
export const again = (threadId: string, id: string, model: Model, key: string) =>
  post<Accepted>(message(threadId, id, "again"), model, once(key));
export const choose = (threadId: string, id: string) =>
  request<ChosenBranch>("PUT", at(threadId, "/branch"), { body: { message: id } satisfies BranchChoice });

export const resume = (threadId: string, model: Model) => post<Accepted>(at(threadId, "/resume"), model);
export const stop = (threadId: string, runId: string) =>
  post<Stopped>(at(threadId, `/stop${query({ run_id: runId })}`));
export const decide = (threadId: string, decisions: Record<string, CallDecision>) =>
  post<Accepted | ApprovalList>(at(threadId, "/approvals"), { decisions } satisfies Decisions);
export const unqueue = (threadId: string, id: string) =>
  request<void>("DELETE", at(threadId, `/queue/${encodeURIComponent(id)}`));

/** A key for one thing asked: it stands for that, however often the request is sent. */
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint32Array(4)), (each) => each.toString(36)).join("");
