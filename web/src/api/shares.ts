// Links by which others read a conversation, and what they then see.

import { current } from "../i18n";
import { get, post, query, request } from "./client";
import type { ShareBody, ShareList, ShareMade, SharedConversation } from "./types";

/** The links to a conversation or a board, which is at `path`. */
export const shares = (path: string, signal?: AbortSignal) => get<ShareList>(`${path}/shares`, signal);
/** Without `ttl_seconds` it works until it is revoked. */
export const share = (path: string, body: ShareBody) => post<ShareMade>(`${path}/shares`, body);
export const revoke = (path: string, id: string) => request<void>("DELETE", `${path}/shares/${encodeURIComponent(id)}`);
export const shared = (token: string, before: string | null, signal?: AbortSignal) =>
  get<SharedConversation>(
    `/api/shared/${encodeURIComponent(token)}${query({ before, limit: 200, lang: current() })}`,
    signal,
  );
