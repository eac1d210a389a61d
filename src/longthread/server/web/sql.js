// SQL with its words told apart by colour.

import { el } from "./dom.js";

const KEYWORDS = new Set(
  ("select from where group by order having limit offset as on join left right inner outer full cross and or not in is " +
    "null like ilike between case when then else end distinct union all intersect except with recursive over partition " +
    "rows range asc desc exists cast using filter values explain")
    .split(" "),
);
const TOKEN = /(--[^\n]*|\/\*[\s\S]*?\*\/)|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?|`[^`]*`?|\[[^\]]*\])|(\b\d+(?:\.\d+)?\b)|([A-Za-z_][\w$]*)|(\s+|.)/gu;
const LONGEST = 20_000;

export function sqlNodes(sql) {
  if (sql.length > LONGEST) return [sql];
  const nodes = [];
  for (const [text, comment, string, , digits, word] of sql.matchAll(TOKEN)) {
    if (comment) nodes.push(el("span.sql-comment", {}, text));
    else if (string) nodes.push(el("span.sql-string", {}, text));
    else if (digits) nodes.push(el("span.sql-number", {}, text));
    else if (word && KEYWORDS.has(word.toLowerCase())) nodes.push(el("span.sql-word", {}, text));
    else nodes.push(text);
  }
  return nodes;
}
