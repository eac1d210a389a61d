import type { ReactNode } from "react";
import { useT } from "../i18n";
import { duration, number } from "../i18n/format";
import type { Step } from "../stream/types";
import styles from "./ResultCard.module.css";
import { type View, panelId, tabId } from "./Views";

/** What a tab shows; with `kept` it stays as it was left. */
export function Panel({
  id,
  of,
  view,
  kept = false,
  children,
}: {
  id: string;
  of: View;
  view: View;
  kept?: boolean;
  children: ReactNode;
}) {
  if (of !== view && !kept) return null;
  return (
    <div
      role="tabpanel"
      id={panelId(id, of)}
      aria-labelledby={tabId(id, of)}
      className={styles["panel"]}
      hidden={of !== view}
      tabIndex={-1}
    >
      {children}
    </div>
  );
}

/** How many rows, and how long the database took. */
export function Meta({ step }: { step: Step }) {
  const t = useT();
  const { total, rows, observation } = step;
  const took = observation?.data?.["elapsed_ms"];
  const many = total ?? rows?.length;
  const parts = [
    many === undefined
      ? null
      : t(total === null ? "results.rowsAtLeast" : "results.rows", { n: many, shown: number(many) }),
    typeof took === "number" ? duration(took) : null,
  ];
  return <span className={styles["meta"]}>{parts.filter(Boolean).join(" · ")}</span>;
}
