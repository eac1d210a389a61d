import type { Root } from "hast";
import { readGfm } from "../chat/gfm";
import remarkParse from "remark-parse";
import remarkRehype from "remark-rehype";
import { unified } from "unified";
import { expect, test } from "vitest";

import type { QueryResult } from "./result";
import { withoutShown } from "./shown";

const result: QueryResult = {
  step: 1,
  label: "q1",
  sql: "SELECT a, b\nFROM t",
  columns: ["a", "b"],
  rows: [
    ["x", 1],
    [null, 2.5],
  ],
  total: 2,
};

function left(markdown: string, of = result): string[] {
  const process = unified().use(remarkParse).use(readGfm).use(remarkRehype);
  const tree = process.runSync(process.parse(markdown)) as Root;
  withoutShown([of])(tree);
  return tree.children.flatMap((node) => (node.type === "element" ? [node.tagName] : []));
}

const table = (...rows: string[]) => ["| a | b |", "|---|---|", ...rows].join("\n");

test.each<[string, string, string[]]>([
  ["its rows", `Rows:\n\n${table("| x | 1 |", "| NULL | 2.50 |")}`, ["p"]],
  ...["null", "-", "–", "—", ""].map((mark): [string, string, string[]] => [
    `NULL as "${mark}"`,
    table("| x | 1 |", `| ${mark} | 2.5 |`),
    [],
  ]),
  ["a value where NULL is", table("| x | 1 |", "| y | 2.5 |"), ["table"]],
  ["a mark where a value is", table("| — | 1 |"), ["table"]],
  ["its first rows", table("| x | 1 |"), []],
  ["its SQL", "```sql\nSELECT a,  b FROM t;\n```", []],
  ["another row", table("| x | 2 |"), ["table"]],
  ["rows in another order", table("| NULL | 2.5 |", "| x | 1 |"), ["table"]],
  ["a row more", table("| x | 1 |", "| NULL | 2.5 |", "| y | 3 |"), ["table"]],
  ["other columns", "| a | c |\n|---|---|\n| x | 1 |", ["table"]],
  ["other SQL", "```sql\nSELECT a FROM t\n```", ["pre"]],
])("%s", (_, markdown, tags) => {
  expect(left(markdown)).toEqual(tags);
});

test.each<[string, string, string[]]>([
  ["rounded", "| 0.3333 | two lines |", []],
  ["rounded to whole", "| 0 | two lines |", ["table"]],
  ["rounded wrongly", "| 0.3334 | two lines |", ["table"]],
])("a result with a long number and a break is %s", (_, row, tags) => {
  expect(left(table(row), { ...result, rows: [[1 / 3, "two\nlines"]], total: 1 })).toEqual(tags);
});

test("cells as people write them are the result's", () => {
  const written: QueryResult = {
    ...result,
    columns: ["day", "share", "price"],
    rows: [["2024-01-05T00:00:00", 0.956, 52838.549999999996]],
    total: 1,
  };
  const of = (...cells: string[]) =>
    left(["| day | share | price |", "|---|---|---|", `| ${cells.join(" | ")} |`].join("\n"), written);
  expect(of("2024-01-05", "95.6%", "€52,838.55")).toEqual([]);
  expect(of("2024-01-06", "95.6%", "€52,838.55")).toEqual(["table"]);
  expect(of("2024-01-05", "96.6%", "€52,838.55")).toEqual(["table"]);
});

test.each([
  ["Only the first ```1``` are printed here.", []],
  ["Only the first ```2``` are printed here.", ["p"]],
  ["这里只列出前 ```1 行```。", []],
  ["这里只列出前 ```2 行```。", ["p"]],
  ["Only the first ```1``` are printed here, as you asked.", ["p"]],
])("where a table of it is cut: %s", (said, tags) => {
  expect(left(said)).toEqual(tags);
});
