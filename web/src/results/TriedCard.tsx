import { useMutation } from "@tanstack/react-query";
import { useId, useMemo, useState } from "react";
import * as api from "../api/results";
import { CodeBlock } from "../chat/CodeBlock";
import { formattedSpec } from "../formats/chart";
import { useGiven } from "../formats/chosen";
import { useT } from "../i18n";
import { number } from "../i18n/format";
import { sentence } from "../i18n/sentence";
import { conversation } from "../stream/opened";
import type { Step } from "../stream/types";
import { Button, Skeleton } from "../ui";
import { ChartView } from "./ChartView";
import { Meta, Panel } from "./CardParts";
import { OneValue } from "./OneValue";
import styles from "./ResultCard.module.css";
import { ResultTable } from "./ResultTable";
import bar from "./SqlView.module.css";
import { type View, Views } from "./Views";
import { type ChartChoice, choicesOf } from "./choices";
import type { QueryResult } from "./result";
import { isOneNumber } from "./shape";
import { resultOf } from "./step";
import { triedOf } from "./tried";
import { useSpec } from "./useSpec";
import { useWords } from "./words";

interface TriedCardProps {
  threadId: string;
  /** The step whose query was edited. */
  step: number;
  tried: Step;
  /** Rows of one page of a table. */
  size: number;
}

/** What an edited query gave. The conversation does not have it until somebody goes on from it: that is a branch. */
export function TriedCard({ threadId, step, tried, size }: TriedCardProps) {
  const t = useT();
  const id = useId();
  const result = useMemo(() => hereOf(tried), [tried]);
  const choices = useMemo(() => choicesOf(result, []), [result]);
  const rows: View = isOneNumber(result) ? "value" : "table";
  const [view, setView] = useState<View>(rows);
  const discard = () => triedOf(threadId, step).set(null);
  const goOn = useMutation({
    mutationFn: () => conversation(threadId).did(api.runEdited(threadId, step, tried.sql ?? "")),
    onSuccess: discard,
  });
  if (!result) return null;
  const title = t("sql.tried", { label: t("results.title", { label: tried.query ?? "" }) });
  const isCut = tried.total === null || (tried.total ?? 0) > result.rows.length;
  const views: View[] = [rows, ...(choices.length ? (["chart"] as const) : []), "sql"];
  return (
    <section className={styles["card"]} aria-label={title} data-tried>
      <header className={styles["head"]}>
        <h3 className={styles["title"]}>{title}</h3>
        <Meta step={tried} />
        <Views id={id} views={views} view={views.includes(view) ? view : rows} onChoose={setView} />
      </header>
      <Panel id={id} of={rows} view={view === "chart" && !choices.length ? rows : view}>
        {rows === "value" ? (
          <OneValue threadId={threadId} result={result} />
        ) : (
          <ResultTable threadId={threadId} result={result} size={size} />
        )}
      </Panel>
      {choices[0] && (
        <Panel id={id} of="chart" view={view}>
          <Chart threadId={threadId} result={result} choice={choices[0]} />
        </Panel>
      )}
      <Panel id={id} of="sql" view={view}>
        <CodeBlock code={result.sql} language="sql" />
      </Panel>
      {goOn.error && (
        <p role="alert" className={bar["wrong"]}>
          {sentence(goOn.error)}
        </p>
      )}
      <div className={bar["bar"]}>
        <span className={bar["note"]}>
          {t("sql.triedAbout")} {isCut && t("sql.triedCut", { n: number(result.rows.length) })}
        </span>
        <Button kind="quiet" onClick={discard}>
          {t("sql.discard")}
        </Button>
        <Button kind="primary" onClick={() => goOn.mutate()} disabled={goOn.isPending}>
          {t(goOn.isPending ? "sql.goingOn" : "sql.goOn")}
        </Button>
      </div>
    </section>
  );
}

/** The rows that came; no step has the others. The label is one of its own: charts are kept by it. */
function hereOf(tried: Step): QueryResult | null {
  const result = resultOf(tried);
  return result && { ...result, label: `${result.label} ${tried.callId}`, total: result.rows.length };
}

function Chart({ threadId, result, choice }: { threadId: string; result: QueryResult; choice: ChartChoice }) {
  const t = useT();
  const words = useWords();
  const given = useGiven(threadId, result);
  const { data } = useSpec(threadId, result, choice);
  const spec = useMemo(() => data && formattedSpec(data, given, words), [data, given, words]);
  return spec ? <ChartView spec={spec} title="" /> : <Skeleton label={t("results.drawing")} lines={6} />;
}
