// The list of conversations, and what can be done with one as a whole.

import { leaveForLogin } from "../login/away";
import { at, get, post, query, request } from "./client";
import type { AgentList, ConversationList, ConversationView, Info, UsageView, VisitorInfo } from "./types";

/** What the server tells a user. Where nobody is logged in, the page goes to the login. */
export async function info(signal?: AbortSignal): Promise<Info> {
  const found = await get<Info | VisitorInfo>("/api/info", signal);
  return "version" in found ? found : leaveForLogin();
}

export const agents = (signal?: AbortSignal) => get<AgentList>("/api/agents", signal);

export interface Asked {
  limit?: number;
  cursor?: string | null;
  q?: string;
  parent?: string;
  archived?: "exclude" | "only";
  pinned?: boolean;
  tag?: string;
  project?: string;
}

export const conversations = (asked: Asked, signal?: AbortSignal) =>
  get<ConversationList>(`/api/conversations${query({ limit: 50, ...asked })}`, signal);
export const change = (id: string, fields: { label?: string; tags?: string[]; archived?: boolean; pinned?: boolean }) =>
  request<ConversationView>("PATCH", at(id), { body: fields });
/** Deletes it at once for all who look, and for ever `seconds` later, what was remembered from it then as chosen. */
export const remove = (id: string, seconds: number, memories: "keep" | "delete") =>
  request<void>("DELETE", at(id, query({ undo_seconds: seconds, memories })));
export const restore = (id: string) => post<ConversationView>(at(id, "/restore"));
export const usage = (id: string, signal?: AbortSignal) => get<UsageView>(at(id, "/usage"), signal);
/** `details` is Markdown with the steps, too. */
export const exportPath = (id: string, format: "md" | "details" | "json" | "jsonl") =>
  at(id, `/export${query(format === "details" ? { format: "md", details: true } : { format })}`);
