import { useT } from "../i18n";
import type { Step } from "../stream/types";
import { Skeleton, later } from "../ui";

export interface ResultCardProps {
  threadId: string;
  /** A query; or a chart of an earlier one, which stands by itself. */
  step: Step;
  /** The charts that the model made of it. */
  charts?: readonly Step[];
}

/** Its code comes beside the first conversation. */
export const ResultCardView = later(async () => (await import("./ResultCardView")).ResultCardView);

export function ResultCard(props: ResultCardProps) {
  const t = useT();
  return (
    <ResultCardView
      {...props}
      fallback={<Skeleton label={t("results.title", { label: props.step.query ?? "" })} lines={6} />}
    />
  );
}
