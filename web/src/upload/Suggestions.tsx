import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useSources } from "../api/server";
import { preview } from "../api/sources";
import { t, useT } from "../i18n";
import { Questions } from "../layout/Welcome";
import { sourceOf } from "../layout/files";
import { suggest } from "./suggest";

interface SuggestionsProps {
  source: string;
  onAsk: (question: string) => void;
  /** What is drawn until they are known, or where none are. */
  otherwise: ReactNode;
}

/** Questions about files, by the columns that they have. A database of many tables is not read for them. */
export function Suggestions({ source, onAsk, otherwise }: SuggestionsProps) {
  useT();
  const { data } = useSources();
  const found = sourceOf(source, data?.sources);
  const isOfFiles = found !== null && (found.upload !== null || !/:\/\//.test(found.address ?? ""));
  const { data: seen } = useQuery({ queryKey: ["preview", source, found?.files], queryFn: ({ signal }) => preview(source, signal), enabled: isOfFiles, retry: false, staleTime: 60_000 });
  const questions = suggest(seen?.tables ?? []).map(({ id, values }) => t(id, values));
  return questions.length > 0 ? <Questions questions={questions} onAsk={onAsk} /> : otherwise;
}
