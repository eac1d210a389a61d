import type { Element, Root } from "hast";
import { readGfm } from "../chat/gfm";
import remarkParse from "remark-parse";
import remarkRehype from "remark-rehype";
import { unified } from "unified";
import { expect, test } from "vitest";

import { CITATION, RECEIPT, numbersOf, receipts } from "./mark";
import { tracer } from "./receipts";
import type { QueryResult } from "./result";

const countries: QueryResult = {
  step: 7,
  label: "q1",
  sql: "SELECT",
  columns: ["country", "rockets_count"],
  total: 3,
  rows: [
    ["China", 15],
    ["United States", 11],
    ["Russia", 5],
  ],
};
const trace = tracer([countries]);

function tree(markdown: string): Root {
  const process = unified().use(remarkParse).use(readGfm).use(remarkRehype);
  return process.runSync(process.parse(markdown)) as Root;
}

function marked(markdown: string): string {
  const root = tree(markdown);
  expect(receipts(trace)(root), "what a plugin gives back takes the tree's place").toBeUndefined();
  const text = (node: Root | Element): string =>
    node.children
      .map((child) => {
        if (child.type === "text") return child.value;
        if (child.type !== "element") return "";
        if (child.tagName === RECEIPT) return `<${text(child)}>`;
        return child.tagName === CITATION ? `{${text(child)}}` : text(child);
      })
      .join("");
  return text(root).trim();
}

test.each([
  ["**China** has **15** rockets [q1].", "China has <15> rockets {[q1]}."],
  ["- China: 15\n- Russia: 5, not 6", "China: <15>\nRussia: <5>, not 6"],
  ["1. China 15\n2. Russia 11", "China <15>\nRussia 11"],
  ["China has `15` and\n\n```sql\nLIMIT 15\n```", "China has 15 and\nLIMIT 15"],
  ["`China` has 15.", "China has <15>."],
  ["> China has 15.", "China has <15>."],
  ["- China\n\n  has 15, and Russia has 5", "China\nhas 15, and Russia has <5>"],
  ["[China 15](https://a.b/15)", "China 15"],
])("%s", (markdown, shown) => {
  expect(marked(markdown).replace(/\n+/g, "\n")).toBe(shown);
});

test("a row of a table is traced by its own cells", () => {
  expect(
    marked("| country | n |\n|---|--:|\n| China | 15 |\n| Russia | 5 |\n| Peru | 11 |").replace(/\s+/g, " "),
  ).toContain("China <15> Russia <5> Peru 11");
});

test("what is counted is what is seen", () => {
  const all = numbersOf(tree("China has 15, Russia 5, Peru 77. See [q1] and `99`, since 2015."), trace);
  expect(all.map(({ text, source }) => [text, source !== null])).toEqual([
    ["15", true],
    ["5", true],
    ["77", false],
  ]);
});
