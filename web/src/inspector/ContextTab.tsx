import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import * as api from "../api/calls";
import type { CallView } from "../api/types";
import { useT } from "../i18n";
import { sentence } from "../i18n/sentence";
import { useConversation } from "../stream/useConversation";
import { Button, say } from "../ui";
import { Bar } from "./Bar";
import { Changes } from "./Changes";
import styles from "./Inspector.module.css";
import { Empty, Stepper, Waiting } from "./Parts";
import { Segments } from "./Segments";
import { openInspector } from "./selection";
import { useCalls } from "./useCalls";

/** What a call of the model saw; where none was chosen, the last one of the branch that is shown. */
export function ContextTab({ threadId, call }: { threadId: string; call: number | undefined }) {
  const t = useT();
  const { run } = useConversation(threadId);
  const { asked, calls } = useCalls(threadId, run ? `${run.id} ${run.status} ${run.steps.length}` : "");
  // The newest calls may be those of another branch.
  const own = calls?.findLast(({ run_id }) => run_id === run?.id);
  const { hasNextPage, isFetching, fetchNextPage } = asked;
  const looks = call === undefined && run !== null && !run.editedBy && calls !== undefined && !own && hasNextPage;
  useEffect(() => {
    if (looks && !isFetching) void fetchNextPage();
  }, [looks, isFetching, fetchNextPage]);
  if (!calls || looks) return <Waiting asked={asked} />;
  const last = own ?? calls.at(-1);
  if (call === undefined && run?.editedBy)
    return <Unasked last={last && (() => openInspector({ tab: "context", call: last.step }))} />;
  const place = calls.findIndex(({ step }) => step === (call ?? last?.step));
  const shown = calls[place];
  if (!shown) return <Empty>{t("inspector.noCalls")}</Empty>;
  const to = (at: number) => {
    const next = calls[at];
    return next ? () => openInspector({ tab: "context", call: next.step }) : null;
  };
  const earlier = asked.hasNextPage ? () => void asked.fetchNextPage() : null;
  return (
    <>
      <Stepper
        text={t("inspector.callPlace", { at: shown.number, of: shown.of })}
        before={t("inspector.callBefore")}
        next={t("inspector.callNext")}
        onBefore={to(place - 1) ?? earlier}
        onNext={to(place + 1)}
      />
      <Call threadId={threadId} step={shown.step} />
    </>
  );
}

/** A run of an edited query saw nothing: no model was asked. */
function Unasked({ last }: { last: (() => void) | undefined }) {
  const t = useT();
  return (
    <>
      <Empty>{t("inspector.unasked")}</Empty>
      {last && <Button onClick={last}>{t("inspector.lastCall")}</Button>}
    </>
  );
}

function Call({ threadId, step }: { threadId: string; step: number }) {
  const t = useT();
  const [changes, setChanges] = useState(false);
  const asked = useQuery({
    queryKey: ["call", threadId, step],
    queryFn: ({ signal }) => api.call(threadId, step, signal),
  });
  if (!asked.data) return <Waiting asked={asked} />;
  const call = asked.data;
  return (
    <div className={styles["stack"]}>
      <Bar call={call} />
      <div className={styles["line"]}>
        {call.difference ? (
          <label className={styles["check"]}>
            <input type="checkbox" checked={changes} onChange={(event) => setChanges(event.target.checked)} />
            {t("inspector.changes")}
          </label>
        ) : (
          <span className={styles["note"]}>{t("inspector.firstCall")}</span>
        )}
        <Button kind="quiet" onClick={() => void copy(call, t)}>
          {t("inspector.copyJson")}
        </Button>
      </div>
      {changes && call.difference ? (
        <Changes threadId={threadId} call={call} difference={call.difference} />
      ) : (
        <Segments threadId={threadId} call={call} />
      )}
    </div>
  );
}

async function copy(call: CallView, t: ReturnType<typeof useT>) {
  try {
    await navigator.clipboard.writeText(JSON.stringify(call, null, 2));
    say({ text: t("inspector.copied") });
  } catch (error) {
    say({ text: sentence(error), kind: "bad" });
  }
}
