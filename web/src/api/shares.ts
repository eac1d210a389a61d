// Links by which others read a conversation, and what they then see.

import { get, post, query, request } from "./client";
import type { JsonObject, MessageView, ShownStatus, StepView } from "./types";

/** A link to a conversation as it was at `created_at`. */
export interface ShareView {
  id: string;
  created_at: string;
  expires_at: string | null;
}

/** A new link. `token` is given this once; `path` is where a browser opens it. */
export interface ShareMade extends ShareView {
  token: string;
  path: string;
}

export type SharedMessage = Omit<MessageView, "metadata" | "siblings" | "answers">;

/** A run that has ended. `outcome` has its answer or summary with citations and queries. */
export interface SharedRun {
  id: string;
  status: ShownStatus;
  model: string;
  agent: string | null;
  started_at: string;
  ended_at: string | null;
  outcome: JsonObject;
  unfinished: string;
}

/** A conversation up to the message where it was shared. `steps` is by run, or by question outside runs; `before` is the cursor of the earlier messages. */
export interface SharedConversation {
  label: string;
  createdAt: string;
  shared_at: string;
  messages: SharedMessage[];
  runs: SharedRun[];
  steps: Record<string, StepView[]>;
  before: string | null;
}

/** The links to a conversation or a board, which is at `path`. */
export const shares = (path: string, signal?: AbortSignal) => get<{ shares: ShareView[] }>(`${path}/shares`, signal);
/** Without `ttl_seconds` it works until it is revoked. */
export const share = (path: string, body: { ttl_seconds?: number }) => post<ShareMade>(`${path}/shares`, body);
export const revoke = (path: string, id: string) => request<void>("DELETE", `${path}/shares/${encodeURIComponent(id)}`);
export const shared = (token: string, before: string | null, signal?: AbortSignal) =>
  get<SharedConversation>(`/api/shared/${encodeURIComponent(token)}${query({ before, limit: 200 })}`, signal);
