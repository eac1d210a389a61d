import { useT } from "../i18n";
import { number } from "../i18n/format";
import { IconButton } from "../ui";
import styles from "./ResultTable.module.css";
import type { Rows } from "./useRows";

/** From page to page; nothing where there is one. */
export function Pager({ rows, size }: { rows: Rows; size: number }) {
  const t = useT();
  const { offset, total } = rows;
  const last = offset + rows.rows.length;
  const isLast = total === null ? rows.rows.length < size : last >= total;
  if (offset === 0 && isLast) return null;
  const values = { from: number(offset + 1), to: number(last), total: total === null ? "" : number(total) };
  return (
    <div className={styles["pager"]}>
      <span aria-live="polite">{t(total === null ? "results.placeOfMany" : "results.place", values)}</span>
      <IconButton
        icon="left"
        label={t("results.before")}
        disabled={offset === 0}
        onClick={() => rows.go(Math.max(0, offset - size))}
      />
      <IconButton icon="right" label={t("results.next")} disabled={isLast} onClick={() => rows.go(offset + size)} />
    </div>
  );
}
