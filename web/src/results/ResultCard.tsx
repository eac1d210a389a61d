import { Suspense, lazy } from "react";
import { useT } from "../i18n";
import type { Step } from "../stream/types";
import { Skeleton } from "../ui";

export interface ResultCardProps {
  threadId: string;
  /** A query; or a chart of an earlier one, which stands by itself. */
  step: Step;
  /** The charts that the model made of it. */
  charts?: readonly Step[];
}

const ResultCardView = lazy(async () => ({ default: (await import("./ResultCardView")).ResultCardView }));

/** A result. Its code comes with the first one. */
export function ResultCard(props: ResultCardProps) {
  const t = useT();
  return (
    <Suspense fallback={<Skeleton label={t("results.title", { label: props.step.query ?? "" })} lines={6} />}>
      <ResultCardView {...props} />
    </Suspense>
  );
}
