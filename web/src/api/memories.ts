// What is remembered: of a user, and of a conversation.

import { at, get, query, request } from "./client";

export type MemoryType = "episodic" | "semantic" | "procedural";

/** The messages of a conversation that a memory comes from, by their ids. */
export interface MemoryEntries {
  thread_id: string;
  entries: string[];
}

/** `pinned`: it is given to every run. `thread_id` is the conversation that it comes from, null where the user said it, or
 * where that was deleted, at `source_deleted_at`. `read` names what a model had read before it remembered this. */
export interface MemoryView {
  id: string;
  type: MemoryType;
  content: string;
  importance: number;
  pinned: boolean;
  agent: string;
  thread_id: string | null;
  source_deleted_at: string | null;
  sources: MemoryEntries[];
  read: string | null;
  created_at: string;
  said_at: string;
  expires_at: string | null;
}

export interface MemoryList {
  memories: MemoryView[];
  warnings: string[];
}

/** From `first` to `last`, by the ids of messages; null where one was deleted. */
export interface Stretch {
  first: string | null;
  last: string | null;
}

/** `memories` are those that the conversation `said`, and those that its runs `used`; those `only_here` may go with it. */
export interface ConversationMemory {
  thread_id: string;
  summary: (Stretch & { text: string; messages: number; model: string | null }) | null;
  topics: { topic: string; mentions: number; spans: Stretch[] }[];
  memories: MemoryView[];
  said: string[];
  used: string[];
  only_here: string[];
}

const of = (id: string) => `/api/memories/${encodeURIComponent(id)}`;

export const memories = (q: string, signal?: AbortSignal) => get<MemoryList>(`/api/memories${query({ q, limit: 200 })}`, signal);
export const memoryOf = (thread: string, signal?: AbortSignal) => get<ConversationMemory>(at(thread, "/memory"), signal);
export const remember = (content: string) => request<MemoryView>("POST", "/api/memories", { body: { content } });
export const change = (id: string, fields: { content?: string; pinned?: boolean }) => request<MemoryView>("PATCH", of(id), { body: fields });
export const forget = (id: string) => request<void>("DELETE", of(id));
