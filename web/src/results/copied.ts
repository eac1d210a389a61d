// How values look in a copy of a table.

import { withoutTail } from "../formats/written";
import { type Cell, type Row, cellText } from "./result";

/** Rows as a spreadsheet takes them: separated by tabs; a cell with a tab, a line or a quote is quoted. */
export function asTsv(columns: readonly string[], rows: readonly Row[]): string {
  return [columns, ...rows].map((row) => row.map((cell) => field(cell)).join("\t")).join("\n");
}

function field(cell: Cell): string {
  const text = cellText(typeof cell === "number" ? withoutTail(cell) : cell);
  return /["\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
