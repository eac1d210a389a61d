import { useId, useMemo, useState } from "react";
import { useT } from "../i18n";
import { useStore } from "../store";
import type { Step } from "../stream/types";
import { Skeleton, later } from "../ui";
import { CardMenu } from "./CardMenu";
import { Meta, Panel } from "./CardParts";
import type { ResultCardProps } from "./ResultCard";
import styles from "./ResultCard.module.css";
import { OneValue } from "./OneValue";
import { ResultTable } from "./ResultTable";
import { type ChartChoice, choicesOf } from "./choices";
import { useEdit } from "./edited";
import { useScope } from "./receiptScope";
import { isOneNumber, isSeries } from "./shape";
import { type View, Views } from "./Views";
import { resultOf } from "./step";
import { triedOf } from "./tried";

const NONE: readonly Step[] = [];
/** Rows of one page of a table. */
const ONE_PAGE = 20;
/** With what makes a chart's specification. */
const ChartPanel = later(async () => (await import("./ChartPanel")).ChartPanel);
/** With what runs an edited query. */
const SqlView = later(async () => (await import("./loadSql")).loadSqlView());
const TriedCard = later(async () => (await import("./loadSql")).loadTriedCard());

/** A result: one object, as a table, as a chart, and as its query. */
export function ResultCardView({ threadId, step, charts = NONE }: ResultCardProps) {
  const t = useT();
  const id = useId();
  const result = useMemo(() => resultOf(step), [step]);
  const { reads } = useScope();
  const edit = useEdit(threadId, reads ? null : result);
  const choices = useMemo(() => choicesOf(result, charts, edit), [result, charts, edit]);
  const rows: View = isOneNumber(result) ? "value" : "table";
  const views: View[] = [
    ...(result ? [rows] : []),
    ...(choices.length ? (["chart"] as const) : []),
    ...(result ? (["sql"] as const) : []),
  ];
  const [view, setView] = useState<View>(charts.length || edit || isSeries(result, choices) ? "chart" : rows);
  const [choice, setChoice] = useState<ChartChoice>();
  const [sqlSeen, setSqlSeen] = useState(false);
  const tried = useStore(triedOf(threadId, result?.step ?? null));
  const shown = choices.find(({ key }) => key === choice?.key) ?? choices[0];
  const title =
    (charts.length || view === "chart") && shown?.title
      ? shown.title
      : t("results.title", { label: result?.label ?? "" });
  const choose = (next: View) => {
    setView(next);
    if (next === "sql") setSqlSeen(true);
  };
  return (
    <>
      <section
        className={styles["card"]}
        data-fits={view === rows && result?.total !== null && (result?.total ?? 0) <= ONE_PAGE ? "" : undefined}
        aria-label={title}
        data-query={result?.label ?? undefined}
      >
        <header className={styles["head"]}>
          <h3 className={styles["title"]} dir="auto">
            {title}
          </h3>
          <Meta step={step} />
          <Views id={id} views={views} view={view} onChoose={choose} />
          <CardMenu threadId={threadId} result={result} chart={view === "chart" ? shown : undefined} />
        </header>
        {result && (
          <Panel id={id} of={rows} view={view}>
            {rows === "value" ? (
              <OneValue threadId={threadId} result={result} />
            ) : (
              <ResultTable threadId={threadId} result={result} size={ONE_PAGE} />
            )}
          </Panel>
        )}
        {result && (
          <Panel id={id} of="sql" view={view} kept={sqlSeen}>
            <SqlView threadId={threadId} step={result.step} sql={result.sql} label={result.label} fallback={null} />
          </Panel>
        )}
        {shown && (
          <Panel id={id} of="chart" view={view}>
            <ChartPanel
              threadId={threadId}
              result={result}
              choices={choices}
              chosen={shown}
              onChoose={setChoice}
              edit={edit}
              fallback={<Skeleton label={t("results.drawing")} lines={6} />}
            />
          </Panel>
        )}
      </section>
      {tried && result?.step != null && (
        <TriedCard threadId={threadId} step={result.step} tried={tried} size={ONE_PAGE} fallback={null} />
      )}
    </>
  );
}
