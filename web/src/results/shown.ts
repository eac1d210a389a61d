// Of an answer what its cards show anyway is left out: a table that is a result, and the text of its query.

import type { Element, ElementContent, Root } from "hast";
import { type QueryResult, cellText } from "./result";

/** What the demo model says below a table of which it prints the first rows. */
const CUT = /^(?:Only the first (\d+) are printed here\.|这里只列出前 (\d+) 行。)$/;

/** A rehype plugin; `shown` are the results that stand below the answer. What differs in a cell, a row or a column stays. */
export function withoutShown(shown: readonly QueryResult[]) {
  return (tree: Root): void => {
    tree.children = tree.children.filter(
      (node) => node.type !== "element" || !shown.some((result) => isOf(node, result)),
    );
  };
}

function isOf(node: Element, result: QueryResult): boolean {
  if (node.tagName === "pre") return words(textOf(node)) === words(result.sql);
  return node.tagName === "table" ? isTableOf(node, result) : node.tagName === "p" && isCutOf(textOf(node), result);
}

/** Whether a text says that a result's table ends before its rows do: its card has them all. */
function isCutOf(text: string, { rows }: QueryResult): boolean {
  const [, english, chinese] = CUT.exec(text) ?? [];
  return rows.length > Number(english ?? chinese ?? Infinity);
}

const words = (sql: string) => sql.replace(/;\s*$/, "").split(/\s+/).filter(Boolean).join(" ");

/** Whether a table has the columns of a result, and its first rows. */
function isTableOf(table: Element, { columns, rows }: QueryResult): boolean {
  const [head, ...body] = rowsIn(table);
  if (head?.join("\t") !== columns.join("\t") || body.length > rows.length) return false;
  return body.every((cells, row) => cells.every((text, column) => isCell(text, cellText(rows[row]?.[column]))));
}

/** Whether a text is a cell as an answer writes it: a mark for NULL, on one line, a number with fewer digits. */
const isCell = (text: string, cell: string) =>
  words(text) === words(cell) ||
  (cell === "" && /^(?:null|-|–|—)$/i.test(text)) ||
  isNumberOf(text, cell) ||
  isDayOf(text, cell);

/** Whether a moment is at midnight of a day, or is written without its T. */
const isDayOf = (text: string, cell: string) =>
  /^\d{4}-\d{2}-\d{2}/.test(cell) &&
  (text === cell.replace("T", " ") ||
    (text === cell.slice(0, 10) && /^[T ]00:00(?::00(?:\.0+)?)?(?:Z|\+00(?::?00)?)?$/.test(cell.slice(10))));

/** Whether a text is a number, with separators and a unit, rounded to the decimals that the text has; or a share in percent. */
function isNumberOf(written: string, cell: string): boolean {
  const text = written.replace(/^(-?)[^\d-]{1,3}(?=\d)|(?<=\d)[^\d.,]{1,20}$/g, "$1").replace(/,(?=\d{3})/g, "");
  if (!/^-?\d+(?:\.\d+)?$/.test(text) || cell === "") return false;
  const [shown, whole] = [Number(text), Number(cell)];
  const decimals = text.split(".")[1]?.length ?? 0;
  const near = 0.5 * 10 ** -decimals + 1e-9;
  return (
    shown === whole ||
    (decimals > 0 && Math.abs(shown - whole) <= near) ||
    (written.endsWith("%") && Math.abs(shown - 100 * whole) <= near)
  );
}

function rowsIn(node: Element): string[][] {
  const parts = node.children.filter((child) => child.type === "element");
  if (node.tagName === "tr") return [parts.map((cell) => textOf(cell).trim())];
  return parts.flatMap((part) => rowsIn(part));
}

function textOf(node: ElementContent): string {
  if (node.type === "text") return node.value;
  return node.type === "element" ? node.children.map(textOf).join("") : "";
}
