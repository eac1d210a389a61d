import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useSources } from "../api/server";
import { preview } from "../api/sources";
import type { SourceView } from "../api/types";
import { t, useT } from "../i18n";
import { Awaited, Questions } from "../layout/Welcome";
import { sourceOf } from "../layout/files";
import { type Suggested, suggest } from "./suggest";

interface SuggestionsProps {
  source: string;
  onAsk: (question: string) => void;
}

/** Questions about files, by the columns that they have. A database of many tables is not read for them. */
export function Suggestions({ source, onAsk }: SuggestionsProps) {
  const { data, isPending } = useSources();
  if (isPending) return <Awaited />;
  const found = sourceOf(source, data?.sources);
  return <Known key={found?.files.join("\n")} source={source} found={found} onAsk={onAsk} />;
}

const ANY: readonly Suggested[] = [{ id: "shell.questionAny", values: {} }];

/** Those of a source as its files are now: once they stand there, they stay. */
function Known({ source, found, onAsk }: SuggestionsProps & { found: SourceView | null }) {
  useT();
  const isOfFiles = found !== null && (found.upload !== null || !/:\/\//.test(found.address ?? ""));
  const { data, isLoading } = useQuery({
    queryKey: ["preview", source, found?.files],
    queryFn: ({ signal }) => preview(source, signal),
    enabled: isOfFiles,
    retry: false,
    staleTime: 60_000,
  });
  const [suggested, setSuggested] = useState<readonly Suggested[] | null>(null);
  if (suggested === null && !isLoading) {
    const questions = suggest(data?.tables ?? []);
    setSuggested(questions.length > 0 ? questions : ANY);
  }
  return suggested === null ? (
    <Awaited />
  ) : (
    <Questions questions={suggested.map(({ id, values }) => t(id, values))} onAsk={onAsk} />
  );
}
