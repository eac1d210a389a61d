// Tables that are pasted: as spreadsheets write them, values between tabs, or as HTML.

import { t } from "../i18n";
import { bringFiles } from "./messages";
import { offer } from "./offered";

export interface Pasted {
  plain: string;
  html: string;
}

/** Offers what was pasted as a file, or hands it back as text where it is no table. */
export async function offerTable(pasted: Pasted, asText: () => void) {
  const table = tableIn(pasted);
  if (table === null) return asText();
  await bringFiles();
  offer([new File([table], `${t("files.pasted")}.tsv`)], asText);
}

/** The table as values between tabs; null: it is none, of at least two rows and two columns. */
export function tableIn({ plain, html }: Pasted): string | null {
  if (isTable(rowsOf(plain))) return plain;
  const rows = html === "" ? [] : rowsOfHtml(html);
  return isTable(rows) ? rows.map((row) => row.map(written).join("\t")).join("\n") : null;
}

/** Rows of one width. Text that is indented by tabs has nothing in its first column. */
function isTable(rows: readonly (readonly string[])[]): boolean {
  const width = rows[0]?.length ?? 0;
  return rows.length > 1 && width > 1 && rows.every((row) => row.length === width) && rows.some(([first]) => first);
}

/** Values between tabs. One with line breaks, tabs or quotes in it stands in quotes, which are doubled. */
export function rowsOf(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (const [, quoted, plain = "", end] of text
    .replace(/(\r?\n)+$/, "")
    .matchAll(/(?:"((?:[^"]|"")*)"(?=[\t\r\n]|$)|([^\t\r\n]*))(\t|\r?\n|\r|$)/g)) {
    row.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === "\t") continue;
    rows.push(row);
    row = [];
    if (end === "") break;
  }
  return rows;
}

/** The page's policy forbids them, also in what is only parsed. */
const STYLES = /<style[\s>][^]*?<\/style>|\sstyle\s*=\s*("[^"]*"|'[^']*')/gi;

/** The rows of the only table in HTML that is nothing else; none in any other. A cell over several columns fills the first. */
function rowsOfHtml(html: string): string[][] {
  const page = new DOMParser().parseFromString(html.replace(STYLES, ""), "text/html");
  const [table, ...others] = page.querySelectorAll("table");
  if (!table || others.length > 0) return [];
  const rows = [...table.rows].map((row) =>
    [...row.cells].flatMap((cell) => [
      cell.textContent.trim(),
      ...Array<string>(Math.min(cell.colSpan, 1000) - 1).fill(""),
    ]),
  );
  table.remove();
  for (const each of page.querySelectorAll("script")) each.remove();
  return page.body.textContent.trim() === "" ? rows : [];
}

const written = (value: string): string => (/["\t\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
