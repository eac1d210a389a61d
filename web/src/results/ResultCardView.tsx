import { Tabs } from "@base-ui/react/tabs";
import { useMemo, useState } from "react";
import { useT } from "../i18n";
import { duration, number } from "../i18n/format";
import type { Step } from "../stream/types";
import { CardMenu } from "./CardMenu";
import { ChartPanel } from "./ChartPanel";
import type { ResultCardProps } from "./ResultCard";
import styles from "./ResultCard.module.css";
import { ResultTable } from "./ResultTable";
import { SqlView } from "./SqlView";
import { type ChartChoice, choicesOf } from "./choices";
import { resultOf } from "./step";

type View = "table" | "chart" | "sql";

const NONE: readonly Step[] = [];

/** A result: one object, as a table, as a chart, and as its query. */
export function ResultCardView({ threadId, step, charts = NONE }: ResultCardProps) {
  const t = useT();
  const result = useMemo(() => resultOf(step), [step]);
  const choices = useMemo(() => choicesOf(result, charts), [result, charts]);
  const views: View[] = [...(result ? (["table"] as const) : []), ...(choices.length ? (["chart"] as const) : []), ...(result ? (["sql"] as const) : [])];
  const [view, setView] = useState<View>(charts.length ? "chart" : "table");
  const [choice, setChoice] = useState<ChartChoice | undefined>(choices[0]);
  const [sqlSeen, setSqlSeen] = useState(false);
  const shown = choices.find(({ key }) => key === choice?.key) ?? choices[0];
  const title = charts.length && shown?.title ? shown.title : t("results.title", { label: result?.label ?? "" });
  const choose = (next: View) => {
    setView(next);
    if (next === "sql") setSqlSeen(true);
  };
  return (
    <Tabs.Root className={styles["card"]} value={view} onValueChange={choose} render={<section aria-label={title} />} data-query={result?.label ?? undefined}>
      <header className={styles["head"]}>
        <h3 className={styles["title"]} dir="auto">
          {title}
        </h3>
        <Meta step={step} />
        <Tabs.List className={styles["tabs"]} aria-label={t("results.views")}>
          {views.map((each) => (
            <Tabs.Tab key={each} value={each} className={styles["tab"]}>
              {t(`results.view.${each}`)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <CardMenu threadId={threadId} result={result} chart={view === "chart" ? shown : undefined} />
      </header>
      {result && (
        <>
          <Tabs.Panel value="table" className={styles["panel"]} tabIndex={-1}>
            <ResultTable threadId={threadId} result={result} />
          </Tabs.Panel>
          <Tabs.Panel value="sql" className={styles["panel"]} tabIndex={-1} keepMounted={sqlSeen}>
            <SqlView threadId={threadId} step={result.step} sql={result.sql} label={result.label} />
          </Tabs.Panel>
        </>
      )}
      {shown && (
        <Tabs.Panel value="chart" className={styles["panel"]} tabIndex={-1}>
          <ChartPanel threadId={threadId} result={result} choices={choices} chosen={shown} onChoose={setChoice} />
        </Tabs.Panel>
      )}
    </Tabs.Root>
  );
}

/** How many rows, and how long the database took. */
function Meta({ step }: { step: Step }) {
  const t = useT();
  const { total, rows, observation } = step;
  const took = observation?.data?.["elapsed_ms"];
  const many = total ?? rows?.length;
  const parts = [
    many === undefined ? null : t(total === null ? "results.rowsAtLeast" : "results.rows", { n: many, shown: number(many) }),
    typeof took === "number" ? duration(took) : null,
  ];
  return <span className={styles["meta"]}>{parts.filter(Boolean).join(" · ")}</span>;
}
