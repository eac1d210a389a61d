import { useMemo, useState } from "react";
import { formattedSpec } from "../formats/chart";
import { useGiven } from "../formats/chosen";
import { useT } from "../i18n";
import { number } from "../i18n/format";
import { sentence } from "../i18n/sentence";
import { Button, Icon, Skeleton, later } from "../ui";
import styles from "./ChartPanel.module.css";
import { ChartView } from "./ChartView";
import type { ChartChoice, ChartEdit } from "./choices";
import type { Spec } from "./forms";
import { useScope } from "./receiptScope";
import type { QueryResult } from "./result";
import { useSpec } from "./useSpec";
import { useWords } from "./words";

interface ChartPanelProps {
  threadId: string;
  result: QueryResult | null;
  choices: readonly ChartChoice[];
  chosen: ChartChoice;
  onChoose: (choice: ChartChoice | undefined) => void;
  edit: ChartEdit | null;
}

/** Its code and words come when a chart is first edited. */
const ChartEditor = later(async () => (await import("./load")).load());

/** The chart of a result, and the other forms that it may have. */
export function ChartPanel({ threadId, result, choices, chosen, onChoose, edit }: ChartPanelProps) {
  const t = useT();
  const { reads } = useScope();
  const [edits, setEdits] = useState(false);
  const { data, error, refetch } = useSpec(threadId, result, chosen);
  const given = useGiven(threadId, result);
  const words = useWords();
  const spec = useMemo(() => data && formattedSpec(data, given, words), [data, given, words]);
  return (
    <>
      {(choices.length > 1 || (result && !reads)) && (
        <div className={styles["forms"]} role="group" aria-label={t("results.forms")}>
          {choices.map((choice) => (
            <button
              key={choice.key}
              type="button"
              className={styles["form"]}
              aria-pressed={choice.key === chosen.key}
              onClick={() => onChoose(choice)}
            >
              {choice.isEdited ? t("results.edited") : choice.mark ? t(`results.mark.${choice.mark}`) : choice.title}
            </button>
          ))}
          {result && !reads && (
            <button type="button" className={styles["edit"]} aria-expanded={edits} onClick={() => setEdits(!edits)}>
              <Icon name="edit" size={14} /> {t("results.editChart")}
            </button>
          )}
        </div>
      )}
      {edits && result && (
        <ChartEditor
          threadId={threadId}
          result={result}
          chosen={chosen}
          edit={edit}
          onEdit={() => onChoose(undefined)}
          onDone={() => setEdits(false)}
          fallback={<Skeleton label={t("results.drawing")} lines={3} />}
        />
      )}
      {spec && <ChartView spec={spec} title={chosen.title} />}
      {data && !chosen.form && <Drawn spec={data} total={result ? result.total : 0} />}
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

/** How many rows a chart of the model draws, where they are not all; null: nobody counted all. The page's own charts draw all. */
function Drawn({ spec, total }: { spec: Spec; total: number | null }) {
  const t = useT();
  const n = (spec["data"] as { values?: unknown[] } | undefined)?.values?.length ?? 0;
  if (total !== null && n >= total) return null;
  return (
    <p className={styles["drawn"]}>
      {total === null
        ? t("results.drawnOfMany", { n: number(n) })
        : t("results.drawn", { n: number(n), total: number(total) })}
    </p>
  );
}
