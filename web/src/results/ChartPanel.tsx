import { useMemo } from "react";
import { formattedSpec } from "../formats/chart";
import { useGiven } from "../formats/chosen";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { Button, Skeleton } from "../ui";
import styles from "./ChartPanel.module.css";
import { ChartView, useWords } from "./ChartView";
import type { ChartChoice } from "./choices";
import type { QueryResult } from "./result";
import { useSpec } from "./useSpec";

interface ChartPanelProps {
  threadId: string;
  result: QueryResult | null;
  choices: readonly ChartChoice[];
  chosen: ChartChoice;
  onChoose: (choice: ChartChoice) => void;
}

/** The chart of a result, and the other forms that it may have. */
export function ChartPanel({ threadId, result, choices, chosen, onChoose }: ChartPanelProps) {
  const t = useT();
  const { data, error, refetch } = useSpec(threadId, result, chosen);
  const given = useGiven(threadId, result);
  const words = useWords();
  const spec = useMemo(() => data && formattedSpec(data, given, words), [data, given, words]);
  return (
    <>
      {choices.length > 1 && (
        <div className={styles["forms"]} role="group" aria-label={t("results.forms")}>
          {choices.map((choice) => (
            <button key={choice.key} type="button" className={styles["form"]} aria-pressed={choice.key === chosen.key} onClick={() => onChoose(choice)}>
              {choice.mark ? t(`results.mark.${choice.mark}`) : choice.title}
            </button>
          ))}
        </div>
      )}
      {spec && <ChartView spec={spec} title={chosen.title} />}
      {!spec && !error && <Skeleton label={t("results.drawing")} lines={6} />}
      {error && (
        <div role="alert" className={styles["wrong"]}>
          <span>{sentence(error)}</span>
          <Button onClick={() => void refetch()}>{t("shell.retry")}</Button>
        </div>
      )}
    </>
  );
}
