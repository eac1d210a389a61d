import { useSyncExternalStore } from "react";

/** A value that components watch, of the page and not of the server. */
export interface Store<Value> {
  get: () => Value;
  set: (value: Value) => void;
  subscribe: (listener: () => void) => () => void;
}

export function createStore<Value>(initial: Value): Store<Value> {
  let value = initial;
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      listeners.forEach((each) => each());
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

/** What the browser does not keep: it may be forbidden, or be full. The tab keeps it. */
const inTab = new Map<string, string | null>();

export function keptAt(key: string): string | null {
  try {
    return inTab.has(key) ? (inTab.get(key) ?? null) : localStorage.getItem(key);
  } catch {
    return null;
  }
}

/** Keeps a text in the browser; null: none. */
export function keepAt(key: string, text: string | null): void {
  try {
    if (text === null) localStorage.removeItem(key);
    else localStorage.setItem(key, text);
    inTab.delete(key);
  } catch {
    inTab.set(key, text);
  }
}

/** One that the browser keeps under `key`; what it keeps and `isValid` refuses is the initial value. */
export function createKept<Value extends string | number | boolean>(
  key: string,
  initial: Value,
  isValid: (value: unknown) => value is Value,
) {
  const kept = parsed(keptAt(key));
  const store = createStore(isValid(kept) ? kept : initial);
  return {
    ...store,
    set(value: Value) {
      keepAt(key, typeof value === "string" ? value : JSON.stringify(value));
      store.set(value);
    },
  };
}

/** Values that the browser keeps, one for each conversation; `read` takes what is kept, and `isNone` are not kept. */
export function keptByThread<Value>(
  prefix: string,
  read: (value: unknown) => Value,
  isNone: (value: Value) => boolean,
) {
  const stores = new Map<string, Store<Value>>();
  const of = (threadId: string): Store<Value> => {
    const store = stores.get(threadId) ?? createStore(read(parsed(keptAt(prefix + threadId))));
    stores.set(threadId, store);
    return store;
  };
  const keep = (threadId: string, value: Value) => {
    keepAt(prefix + threadId, isNone(value) ? null : JSON.stringify(value));
    of(threadId).set(value);
  };
  return { of, keep };
}

function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    return text;
  }
}

export const useStore = <Value>(store: Store<Value>) => useSyncExternalStore(store.subscribe, store.get);
