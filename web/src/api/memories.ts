// What is remembered: of a user, and of a conversation.

import { at, get, query, request } from "./client";
import type { ConversationMemory, MemoryBody, MemoryList, MemoryView, NewMemory } from "./types";

const of = (id: string) => `/api/memories/${encodeURIComponent(id)}`;

export const memories = (q: string, signal?: AbortSignal) =>
  get<MemoryList>(`/api/memories${query({ q, limit: 200 })}`, signal);
export const memoryOf = (thread: string, signal?: AbortSignal) =>
  get<ConversationMemory>(at(thread, "/memory"), signal);
export const remember = (content: string) =>
  request<MemoryView>("POST", "/api/memories", { body: { content } satisfies NewMemory });
export const change = (id: string, fields: MemoryBody) => request<MemoryView>("PATCH", of(id), { body: fields });
export const forget = (id: string) => request<void>("DELETE", of(id));
