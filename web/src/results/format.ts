// How values look: in a table, in words, in a copy.

import type { Kind } from "./columns";
import { type Cell, cellText, type Row } from "./result";

/** A cell as it is shown. Numbers are grouped, and keep all of their digits. Not for NULL. */
export function shownCell(cell: Cell, kind: Kind, locale: string): string {
  const text = cellText(cell);
  if (kind === "number") return grouped(text, locale);
  if (kind === "time") return text.replace("T", " ");
  return text;
}

/** A number as text, its whole part grouped as the language does it. `1e+21` and other notations stay as they are. */
export function grouped(text: string, locale: string): string {
  const found = /^(-?)(\d+)(\.\d+)?$/.exec(text);
  if (!found) return text;
  const [, sign = "", whole = "", behind = ""] = found;
  const { format, point } = formatOf(locale);
  return `${sign}${format.format(BigInt(whole))}${behind.replace(".", point)}`;
}

const formats = new Map<string, { format: Intl.NumberFormat; point: string }>();

/** To make one takes longer than to format a page of numbers. */
function formatOf(locale: string) {
  const known = formats.get(locale);
  if (known) return known;
  const format = new Intl.NumberFormat(locale);
  const made = { format, point: format.formatToParts(0.5).find((part) => part.type === "decimal")?.value ?? "." };
  formats.set(locale, made);
  return made;
}

/** Rows as a spreadsheet takes them: separated by tabs; a cell with a tab, a line or a quote is quoted. */
export function asTsv(columns: readonly string[], rows: readonly Row[]): string {
  return [columns, ...rows].map((row) => row.map((cell) => field(cell)).join("\t")).join("\n");
}

function field(cell: Cell): string {
  const text = cellText(cell);
  return /["\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
