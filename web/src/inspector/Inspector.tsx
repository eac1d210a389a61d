import { Suspense, lazy } from "react";
import { useT } from "../i18n";
import { Skeleton } from "../ui";
import type { Selection } from "./selection";

export interface InspectorProps {
  threadId: string;
  selection: Selection;
  onClose: () => void;
}

const InspectorPanel = lazy(async () => ({ default: (await import("./InspectorPanel")).InspectorPanel }));

/** The inspector. Its code comes when it is first opened. */
export function Inspector(props: InspectorProps) {
  const t = useT();
  return (
    <Suspense fallback={<Skeleton label={t("inspector.loading")} lines={6} />}>
      <InspectorPanel {...props} />
    </Suspense>
  );
}
