import { useRef } from "react";
import { useT } from "../i18n";
import { number } from "../i18n/format";
import { sentence } from "../i18n/sentence";
import { Skeleton } from "../ui";
import styles from "./ChartView.module.css";
import type { Spec } from "./forms";
import { type Told, useDrawing } from "./useDrawing";
import { named, useWords } from "./words";

/** A chart as wide as its place. One that cannot be drawn says why. */
export function ChartView({ spec, title }: { spec: Spec; title: string }) {
  const t = useT();
  const box = useRef<HTMLDivElement>(null);
  const { busy, error, told } = useDrawing(box, spec, useWords());
  return (
    <figure className={styles["place"]}>
      {/* A wide one scrolls, and what scrolls is reached by the keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div ref={box} tabIndex={0} className={styles["box"]} role="img" aria-label={saidOf(spec, title, t)} />
      {busy && <Skeleton label={t("results.drawing")} lines={6} />}
      {error !== null && (
        <p role="alert" className={styles["wrong"]}>
          {t("results.chartFailed", { reason: sentence(error) })}
        </p>
      )}
      {told && <Tip told={told} />}
    </figure>
  );
}

/** What the picture shows, for who does not see it; its rows are in the table. */
function saidOf(spec: Spec, title: string, t: ReturnType<typeof useT>): string {
  const mark = spec["mark"] as string | { type?: string } | undefined;
  const kind = (typeof mark === "string" ? mark : mark?.type) ?? "";
  const channels = Object.values((spec["encoding"] ?? {}) as Record<string, { title?: unknown; field?: unknown }>);
  const rows = (spec["data"] as { values?: unknown[] } | undefined)?.values?.length ?? 0;
  const names = channels.map((channel) => channel.title ?? channel.field).filter((name) => typeof name === "string");
  return [
    named(`results.mark.${kind}`, kind, t),
    title,
    names.join(" · "),
    t("results.rows", { n: rows, shown: number(rows) }),
  ]
    .filter(Boolean)
    .join(" · ");
}

function Tip({ told }: { told: Told }) {
  const left = Math.min(told.x + 14, window.innerWidth - 220);
  return (
    <div
      className={styles["tip"]}
      style={{ left, top: Math.max(4, told.y - 12 - 20 * told.lines.length) }}
      aria-hidden="true"
    >
      {told.lines.map((line) => (
        <div key={line}>{line}</div>
      ))}
    </div>
  );
}
