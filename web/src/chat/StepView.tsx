import { useState } from "react";
import { useT } from "../i18n";
import { duration } from "../i18n/format";
import { toConversation } from "../route";
import type { Decided, Step } from "../stream/types";
import { Disclosure, Icon } from "../ui";
import { Elapsed, Pulse } from "./Elapsed";
import { Link } from "./Link";
import { Observed } from "./Observed";
import styles from "./Steps.module.css";
import { doing } from "./activity";
import { foundOf, titleOf } from "./stepText";

interface StepViewProps {
  threadId: string;
  step: Step;
  decided: readonly Decided[];
  /** It is the one under way: open, until somebody folds it. */
  present: boolean;
}

/** One step: a line that opens to the thought, the arguments, and what came out. */
export function StepView({ threadId, step, decided, present }: StepViewProps) {
  const t = useT();
  const [chosen, setChosen] = useState<boolean | null>(null);
  const open = chosen ?? present;
  const found = foundOf(step, decided, t);
  const summary = (
    <span className={styles["line"]} data-status={step.status}>
      {present && <Pulse />}
      <span>{present ? doing(step, t) : titleOf(step, decided, t)}</span>
      {found && <span className={styles["found"]}>{found}</span>}
      <span className={styles["time"]}>
        {present ? <Elapsed since={step.startedAt} /> : step.elapsedMs === null ? "" : duration(step.elapsedMs)}
      </span>
    </span>
  );
  // Below the line, which stays in its place when it is opened; while it is under way the thought came first.
  const thought = step.thought && <p className={styles["thought"]}>{step.thought}</p>;
  return (
    <li data-step={step.index} data-query={step.query} className={styles["step"]}>
      {present && thought}
      <Disclosure summary={summary} open={open} onOpenChange={setChosen}>
        {!present && thought}
        {open && <Observed threadId={threadId} step={step} decided={decided} />}
      </Disclosure>
      {present && <StepView.Link step={step} />}
    </li>
  );
}

/** The way to the conversation of the agent that a step asked. */
StepView.Link = function LinkBelow({ step }: { step: Step }) {
  const t = useT();
  if (!step.asked?.threadId) return null;
  return (
    <Link to={toConversation(step.asked.threadId)} className={styles["below"]}>
      <Icon name="right" size={14} />
      {t("chat.toAgent", { agent: step.asked.agent })}
      {step.asked.status === "waiting" && <span className={styles["waits"]}>{t("chat.waits")}</span>}
    </Link>
  );
};
