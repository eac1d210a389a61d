// The formats that a person chose for the columns of a conversation's results. The browser keeps them.

import { useMemo } from "react";
import type { QueryResult } from "../results/result";
import { keptByThread, useStore } from "../store";
import { type ColumnFormat, formatOfJson } from "./columnFormat";

export type Formats = Readonly<Record<string, ColumnFormat>>;

const NONE: Formats = {};
const kept = keptByThread("longthread.formats.", formatsOfJson, (formats) => !Object.keys(formats).length);

/** The formats by column in what was kept or sent; what is none is left out. */
export function formatsOfJson(value: unknown): Formats {
  if (typeof value !== "object" || value === null) return NONE;
  const found = Object.entries(value).flatMap(([name, each]) => {
    const format = formatOfJson(each);
    return format ? [[name, format] as const] : [];
  });
  return found.length ? Object.fromEntries(found) : NONE;
}

export const useChosen = (threadId: string): Formats => useStore(kept.of(threadId));
export const chosenIn = (threadId: string): Formats => kept.of(threadId).get();

/** Keeps the format of a column by its name, for all results of a conversation; null: as it was. */
export function choose(threadId: string, column: string, format: ColumnFormat | null): void {
  const { [column]: _, ...others } = chosenIn(threadId);
  kept.keep(threadId, format ? { ...others, [column]: format } : others);
}

/** The formats of a result's columns that are not guessed: those of its source, and those that were chosen. */
export function useGiven(threadId: string, result: QueryResult | null): Formats {
  const chosen = useChosen(threadId);
  return useMemo(() => ({ ...result?.formats, ...chosen }), [result, chosen]);
}
