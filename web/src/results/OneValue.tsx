import { useMemo } from "react";
import { useGiven } from "../formats/chosen";
import { TEXT, formatsOf } from "../formats/guess";
import { headingOf } from "../formats/heading";
import { shortened, written } from "../formats/written";
import { locale } from "../i18n";
import styles from "./ResultCard.module.css";
import type { QueryResult } from "./result";
import { useWords } from "./words";

/** Characters of a number that have room. */
const ROOM = 16;

/** A result that is one number, as that number. */
export function OneValue({ threadId, result }: { threadId: string; result: QueryResult }) {
  const words = useWords();
  const given = useGiven(threadId, result);
  const [format = TEXT] = useMemo(() => formatsOf(result.columns, result.rows, given), [result, given]);
  const [[cell] = []] = result.rows;
  const [column = ""] = result.columns;
  const whole = written(cell, format, locale());
  const heading = headingOf(column, words);
  return (
    <p className={styles["value"]}>
      <b title={whole}>{whole.length > ROOM ? shortened(cell, format, locale()) : whole}</b>{" "}
      <span title={heading === column ? undefined : column}>{heading}</span>
    </p>
  );
}
