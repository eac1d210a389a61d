import { Suspense, lazy } from "react";
import { useT } from "../i18n";
import type { Run } from "../stream/types";
import { useLate } from "../ui";
import { Elapsed, Pulse } from "./Elapsed";
import styles from "./Turn.module.css";
import { activeSince, activityOf } from "./activity";

const Offer = lazy(() => import("../notify/load").then(({ load }) => load()));
const LONG_MS = 10_000;

/** What a run that is under way does now, with what the model thinks. Text that turned out to be a thought stays until it is one. */
export function Working({ run }: { run: Run }) {
  const t = useT();
  const thought = run.text?.withdrawn ? run.text.text : run.thought;
  const isLong = useLate(LONG_MS);
  // A step says so itself.
  const isStep = run.steps.some((step) => step.status === "running");
  return (
    <>
      {thought && <p className={styles["thought"]}>{thought}</p>}
      {!isStep && (
        <p className={styles["working"]}>
          <Pulse />
          {activityOf(run, t)} <Elapsed since={activeSince(run)} />
        </p>
      )}
      {isLong && (
        <Suspense>
          <Offer />
        </Suspense>
      )}
    </>
  );
}
