import { keepPreviousData, useQuery } from "@tanstack/react-query";
import * as api from "../api/calls";
import { useT } from "../i18n";
import { duration, number, whole } from "../i18n/format";
import { type Told, told } from "../i18n/sentence";
import type { Run } from "../stream/types";
import { useConversation } from "../stream/useConversation";
import styles from "./Inspector.module.css";
import { Empty, Stepper, Waiting } from "./Parts";
import { Timeline } from "./Timeline";
import { openInspector } from "./selection";

/** How a run went, step by step; the last one where none was chosen. */
export function RunTab({ threadId, run }: { threadId: string; run: string | undefined }) {
  const t = useT();
  const { turns } = useConversation(threadId);
  const runs = turns.flatMap((turn) => (turn.run ? [turn.run] : []));
  const place = run === undefined ? runs.length - 1 : runs.findIndex(({ id }) => id === run);
  const shown = runs[place];
  if (!shown) return <Empty>{t("inspector.noRuns")}</Empty>;
  const to = (at: number) => {
    const next = runs[at];
    return next ? () => openInspector({ tab: "run", run: next.id }) : null;
  };
  return (
    <>
      {runs.length > 1 && (
        <Stepper
          text={t("inspector.runPlace", { at: place + 1, of: runs.length })}
          before={t("inspector.runBefore")}
          next={t("inspector.runNext")}
          onBefore={to(place - 1)}
          onNext={to(place + 1)}
        />
      )}
      <Details key={shown.id} threadId={threadId} run={shown} />
    </>
  );
}

function Details({ threadId, run }: { threadId: string; run: Run }) {
  const t = useT();
  const calls = useQuery({
    queryKey: ["calls", threadId, run.id, run.steps.length, run.status],
    queryFn: ({ signal }) => api.calls(threadId, { run: run.id }, signal),
    placeholderData: keepPreviousData,
  });
  return (
    <div className={styles["stack"]}>
      <dl className={styles["facts"]}>
        {factsOf(run, t).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {run.error && (
        <p role="alert" className={styles["wrong"]}>
          {told(run.error as Told)}
        </p>
      )}
      {run.warnings.map((warning) => (
        <p key={warning} className={styles["warn"]}>
          {warning}
        </p>
      ))}
      {/* Rows that came in between would move what somebody is about to press. */}
      {!calls.isPending && <Timeline run={run} calls={calls.data?.calls ?? []} />}
      {!calls.data && <Waiting asked={calls} />}
    </div>
  );
}

function factsOf(run: Run, t: ReturnType<typeof useT>): [string, string][] {
  const { startedAt, endedAt, usage } = run;
  const took = startedAt !== null && endedAt !== null ? duration(endedAt - startedAt) : null;
  const facts: [string, string | null][] = [
    [t("inspector.status"), t(`inspector.status.${run.status}`)],
    [t("inspector.model"), run.model || null],
    [t("inspector.source"), run.source],
    [t("inspector.started"), startedAt === null ? null : whole(new Date(startedAt).toISOString())],
    [t("inspector.took"), took],
    [
      t("inspector.used"),
      usage && t("inspector.inAndOut", { input: number(usage.input), output: number(usage.output) }),
    ],
    [t("inspector.editedBy"), run.editedBy],
  ];
  return facts.filter((fact): fact is [string, string] => fact[1] !== null);
}
