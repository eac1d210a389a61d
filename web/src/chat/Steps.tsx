import { useState } from "react";
import { useT } from "../i18n";
import type { Decided, Step } from "../stream/types";
import { Disclosure } from "../ui";
import { StepView } from "./StepView";
import styles from "./Steps.module.css";
import { summaryOf } from "./stepText";

interface StepsProps {
  threadId: string;
  steps: readonly Step[];
  decided: readonly Decided[];
  /** Whether the run is under way: then the present step is open, else all fold to one line. */
  running: boolean;
}

export function Steps({ threadId, steps, decided, running }: StepsProps) {
  const t = useT();
  const [open, setOpen] = useState(false);
  if (steps.length === 0) return null;
  const list = (
    <ol className={styles["steps"]}>
      {steps.map((step, place) => (
        <StepView
          key={step.callId || place}
          threadId={threadId}
          step={step}
          decided={decided}
          present={running && step.status === "running"}
        />
      ))}
    </ol>
  );
  if (running) return list;
  return (
    <div className={styles["fold"]}>
      <Disclosure summary={summaryOf(steps, t)} open={open} onOpenChange={setOpen}>
        {list}
      </Disclosure>
      <Links steps={steps} />
    </div>
  );
}

/** The conversations of agents that were asked stay in sight. */
function Links({ steps }: { steps: readonly Step[] }) {
  const asked = steps.filter((step) => step.asked);
  return asked.map((step) => <StepView.Link key={step.callId} step={step} />);
}
