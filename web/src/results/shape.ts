// What a result is, and so how it is shown first: one number, a series over time, or a table.

import type { ChartChoice } from "./choices";
import { kindsOf } from "./columns";
import type { QueryResult } from "./result";

/** Moments from which a series is seen better in its chart than in rows. */
const FEWEST = 3;

export function isOneNumber(result: QueryResult | null): boolean {
  return (
    result !== null &&
    result.total === 1 &&
    result.rows.length === 1 &&
    result.columns.length === 1 &&
    kindsOf(result.columns, result.rows)[0] === "number"
  );
}

/** Whether the rows are one value, or several, for each of some moments. */
export const isSeries = (result: QueryResult | null, [first]: readonly ChartChoice[]): boolean =>
  first?.form?.mark === "line" && (result?.rows.length ?? 0) >= FEWEST;
