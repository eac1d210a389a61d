// What the model saw, and what a conversation remembers.

import { at, get, query } from "./client";
import type { CallList, CallView, StateView } from "./types";

export const calls = (
  thread: string,
  asked: { limit?: number; before?: string | null; run?: string },
  signal?: AbortSignal,
) => get<CallList>(at(thread, `/calls${query({ ...asked })}`), signal);
export const call = (thread: string, step: number, signal?: AbortSignal) =>
  get<CallView>(at(thread, `/calls/${step}`), signal);
export const state = (thread: string, signal?: AbortSignal) =>
  get<StateView>(`/api/state${query({ thread_id: thread })}`, signal);
