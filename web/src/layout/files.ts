// The files of a source, where people uploaded some.

import { useSources } from "../api/server";
import type { SourceView } from "../api/types";

/** The source that a name means, or the address that a conversation keeps. */
export const sourceOf = (spec: string | null, sources: readonly SourceView[] = []): SourceView | null =>
  sources.find(({ name, upload }) => name === spec || (upload !== null && spec?.includes(upload))) ?? null;

export const filesOf = ({ files }: SourceView): string => files.join(", ");

/** The names of the uploaded files that a source is of; null: it is of none. */
export function useFiles(spec: string | null): string | null {
  const { data } = useSources(spec !== null && spec !== "demo");
  const found = sourceOf(spec, data?.sources);
  return found?.upload ? filesOf(found) : null;
}
