// A result of a query, as this folder's parts see it.

import type { ColumnFormat } from "../formats/columnFormat";

/** A cell as the API gives it. Whole numbers beyond 2^53 are texts; lists and objects are values of nested columns. */
export type Cell = string | number | boolean | null | readonly unknown[] | { readonly [key: string]: unknown };
export type Row = readonly Cell[];

export interface QueryResult {
  /** The step whose result it is; null outside runs, where the server has no pages of it. */
  readonly step: number | null;
  /** Its label, such as `q3`. */
  readonly label: string | null;
  readonly sql: string;
  readonly columns: readonly string[];
  /** The first rows, at most those that the model saw. */
  readonly rows: readonly Row[];
  /** Null: nobody counted. */
  readonly total: number | null;
  /** How columns are written, by name, as far as their source says so. */
  readonly formats?: Readonly<Record<string, ColumnFormat>>;
}

/** A cell as text, exact, as it is copied. NULL is empty. */
export function cellText(cell: Cell | undefined): string {
  if (cell === null || cell === undefined) return "";
  return typeof cell === "object" ? JSON.stringify(cell) : String(cell);
}
