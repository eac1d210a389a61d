// Tags of conversations, and what people think of answers.

import { at, get, query, request } from "./client";
import type { FeedbackList, NewFeedback, TagList } from "./types";

export const tags = (signal?: AbortSignal) => get<TagList>("/api/tags", signal);

export const feedback = (thread_id: string, signal?: AbortSignal) =>
  get<FeedbackList>(`/api/feedback${query({ thread_id, limit: 200 })}`, signal);
const pathOf = (thread: string, message: string) => at(thread, `/messages/${encodeURIComponent(message)}/feedback`);
export const judge = (thread: string, message: string, body: NewFeedback) =>
  request<void>("PUT", pathOf(thread, message), { body });
export const takeBack = (thread: string, message: string) => request<void>("DELETE", pathOf(thread, message));
