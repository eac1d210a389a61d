// API keys, and what was spent.

import { get, post, query, request } from "./client";
import type { ApiKeyBody, ApiKeyList, NewApiKeyView, SpendingReport } from "./types";

export const keys = (signal?: AbortSignal) => get<ApiKeyList>("/api/me/keys", signal);
/** Its text is in this answer alone. */
export const makeKey = (body: ApiKeyBody) => post<NewApiKeyView>("/api/me/keys", body);
export const revokeKey = (id: string) => request<void>("DELETE", `/api/me/keys/${encodeURIComponent(id)}`);

export type SpendingBy = SpendingReport["by"];

/** What the user spent, or everyone. `since` is a day. */
export const spending = (whose: "me" | "admin", asked: { by: SpendingBy; since: string }, signal?: AbortSignal) =>
  get<SpendingReport>(`/api/${whose}/usage${query({ ...asked })}`, signal);
