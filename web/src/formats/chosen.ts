// The formats that a person chose for the columns of a conversation's results. The browser keeps them.

import { useMemo } from "react";
import type { QueryResult } from "../results/result";
import { type Store, createStore, keepAt, keptAt, useStore } from "../store";
import { type ColumnFormat, formatOfJson } from "./columnFormat";

export type Formats = Readonly<Record<string, ColumnFormat>>;

const NONE: Formats = {};
const stores = new Map<string, Store<Formats>>();

const keyOf = (threadId: string) => `longthread.formats.${threadId}`;

function storeOf(threadId: string): Store<Formats> {
  const known = stores.get(threadId);
  if (known) return known;
  const store = createStore(kept(threadId));
  stores.set(threadId, store);
  return store;
}

function kept(threadId: string): Formats {
  try {
    return formatsOfJson(JSON.parse(keptAt(keyOf(threadId)) ?? "null"));
  } catch {
    return NONE;
  }
}

/** The formats by column in what was kept or sent; what is none is left out. */
export function formatsOfJson(value: unknown): Formats {
  if (typeof value !== "object" || value === null) return NONE;
  const found = Object.entries(value).flatMap(([name, each]) => {
    const format = formatOfJson(each);
    return format ? [[name, format] as const] : [];
  });
  return found.length ? Object.fromEntries(found) : NONE;
}

export const useChosen = (threadId: string): Formats => useStore(storeOf(threadId));
export const chosenIn = (threadId: string): Formats => storeOf(threadId).get();

/** Keeps the format of a column by its name, for all results of a conversation; null: as it was. */
export function choose(threadId: string, column: string, format: ColumnFormat | null): void {
  const { [column]: _, ...others } = chosenIn(threadId);
  const next = format ? { ...others, [column]: format } : others;
  keepAt(keyOf(threadId), Object.keys(next).length ? JSON.stringify(next) : null);
  storeOf(threadId).set(next);
}

/** The formats of a result's columns that are not guessed: those of its source, and those that were chosen. */
export function useGiven(threadId: string, result: QueryResult | null): Formats {
  const chosen = useChosen(threadId);
  return useMemo(() => ({ ...result?.formats, ...chosen }), [result, chosen]);
}
