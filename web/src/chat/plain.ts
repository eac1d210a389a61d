// An answer as it is said: its words, without the signs of Markdown. Tables and code are read in their place.

import remarkParse from "remark-parse";
import { unified } from "unified";
import { readGfm } from "./gfm";

interface Node {
  type: string;
  value?: string;
  alt?: string | null;
  children?: Node[];
}

const parser = unified().use(remarkParse).use(readGfm).freeze();
const BETWEEN: Record<string, string> = {
  root: "\n",
  list: "\n",
  listItem: "\n",
  blockquote: "\n",
  footnoteDefinition: "\n",
};
/** Labels of queries, such as `[q1, q2]`. */
export const LABELS = /\s*\[q\d+(?:\s*,\s*q\d+)*\]/g;

export const plainText = (answer: string): string =>
  said(parser.parse(answer) as Node)
    .replace(LABELS, "")
    .trim();

function said({ type, value, alt, children }: Node): string {
  if (type === "break") return "\n";
  if (type === "table" || type === "code") return "";
  if (value !== undefined) return value;
  if (!children) return alt ?? "";
  return children
    .map(said)
    .filter(Boolean)
    .join(BETWEEN[type] ?? "");
}
