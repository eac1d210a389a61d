// The list of conversations, and what can be done with one as a whole.

import { at, get, query, request } from "./client";
import type { AgentList, ConversationList, ConversationView, Info, UsageView } from "./types";

export const info = (signal?: AbortSignal) => get<Info>("/api/info", signal);
export const agents = (signal?: AbortSignal) => get<AgentList>("/api/agents", signal);

export const conversations = (asked: { limit?: number; cursor?: string | null; q?: string; parent?: string }, signal?: AbortSignal) =>
  get<ConversationList>(`/api/conversations${query({ limit: 50, ...asked })}`, signal);
export const change = (id: string, fields: { label?: string; tags?: string[] }) =>
  request<ConversationView>("PATCH", at(id), { body: fields });
export const remove = (id: string) => request<void>("DELETE", at(id));
export const usage = (id: string, signal?: AbortSignal) => get<UsageView>(at(id, "/usage"), signal);
export const exportPath = (id: string, format: "md" | "json" | "jsonl") => at(id, `/export${query({ format })}`);
