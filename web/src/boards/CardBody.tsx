import { useMemo } from "react";
import type { SharedCard } from "../api/types";
import { formattedSpec } from "../formats/chart";
import { useT } from "../i18n";
import { dayAndTime, number } from "../i18n/format";
import { ChartView } from "../results/ChartView";
import { OneValue } from "../results/OneValue";
import { ResultTable } from "../results/ResultTable";
import type { Spec } from "../results/forms";
import type { QueryResult } from "../results/result";
import { isOneNumber } from "../results/shape";
import { useWords } from "../results/words";
import { type Look, resultOfCard, specOfCard } from "./look";

/** A card's rows as it shows them. */
export interface Shown {
  readonly result: QueryResult;
  /** Its chart, if its rows can be one. */
  readonly spec: Spec | null;
}

export function useShown(card: SharedCard, look: Look): Shown {
  return useMemo(() => {
    const result = resultOfCard(card, look);
    return { result, spec: specOfCard(look, result) };
  }, [card, look]);
}

const ROWS = 10;

/** A number, a chart or a table. */
export function CardBody({ card, look, shown: { result, spec } }: { card: SharedCard; look: Look; shown: Shown }) {
  const words = useWords();
  const drawn = useMemo(() => spec && formattedSpec(spec, result.formats ?? {}, words), [spec, result, words]);
  if (isOneNumber(result)) return <OneValue threadId={`b/${card.id}`} result={result} />;
  if (look.view === "chart" && drawn) return <ChartView spec={drawn} title={card.title} />;
  return <ResultTable threadId={`b/${card.id}`} result={{ ...result, label: card.title }} size={ROWS} />;
}

/** When a card's rows were read, and whether there are more. */
export function CardNote({ card: { result, read_at } }: { card: SharedCard }) {
  const t = useT();
  const { rows, total } = result;
  const [n, all] = [number(rows.length), total === null ? "" : number(total)];
  const more =
    total === rows.length
      ? null
      : total === null
        ? t("boards.card.rowsAtLeast", { n })
        : t("boards.card.rows", { n, total: all });
  return <>{[t("boards.card.read", { when: dayAndTime(read_at) }), more].filter(Boolean).join(" · ")}</>;
}
