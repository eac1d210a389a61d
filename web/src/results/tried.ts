// Results of queries that were edited and run, and are in no conversation: the tab keeps them, one for each query.

import { type Store, createStore } from "../store";
import type { Step } from "../stream/types";

const stores = new Map<string, Store<Step | null>>();

/** What the edited query of a step gave last; null: nothing. */
export function triedOf(threadId: string, step: number | null): Store<Step | null> {
  const key = `${step} ${threadId}`;
  const store = stores.get(key) ?? createStore<Step | null>(null);
  stores.set(key, store);
  return store;
}
